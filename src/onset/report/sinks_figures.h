// The pictures of attention sinks: their data and captions. Formulas: docs/sinks.md. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "onset/massive/sinks.h"
#include "onset/report/page.h"

namespace onset {

struct SinksFiguresInput {
  const SinksResult& result;
  std::span<const std::int64_t> windows;  // [L] each layer's sliding window, 0 for none
  // Where the layers are known to be massive (scan): marked, and compared with the others.
  std::optional<std::int64_t> me_layer = {};
  std::optional<std::int64_t> last_massive_layer = {};
  // One token repeated, measured in the same way; null where it was not.
  const SinksResult* control = nullptr;
  std::string control_token = {};  // "\" the\"", "id 281"; plain text
};

// Alpha of every head by layer; the share of samples above the threshold; scores.
[[nodiscard]] Figure sink_heads_figure(const SinksFiguresInput& input);
// Sink rate and mean alpha by layer with what even attention would give, the threshold and the
// control; scores apart from them, since they are logits.
[[nodiscard]] Figure sink_layers_figure(const SinksFiguresInput& input);

}  // namespace onset
