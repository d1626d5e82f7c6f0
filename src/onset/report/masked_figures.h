// The pictures of what a mask changes: the same measurements without and with it, side by side.
// Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onset/massive/rigidity.h"
#include "onset/massive/scan.h"
#include "onset/massive/sinks.h"
#include "onset/report/page.h"

namespace onset {

// The masked results are of the same prompts, samples and tokens.
struct MaskedFiguresInput {
  const PromptScan& unmasked;
  const PromptScan& masked;
  std::int64_t from_layer = 0;         // the first masked
  const SinksResult* sinks = nullptr;  // both or none
  const SinksResult* masked_sinks = nullptr;
  std::vector<std::int64_t> windows = {};    // [L] each layer's sliding window, 0 for none
  const RigidityResult* rigidity = nullptr;  // both or none
  const RigidityResult* masked_rigidity = nullptr;
};

// Two lines by layer: magnitudes, and sinks and rigidity where they were measured.
[[nodiscard]] Figure masked_layers_figure(const MaskedFiguresInput& input);
// Alpha of every head by layer: unmasked, masked, the difference. Wants sinks.
[[nodiscard]] Figure masked_heads_figure(const MaskedFiguresInput& input);
// Cosines of the massive token between layers, unmasked beside masked. Wants rigidity.
[[nodiscard]] Figure masked_cosines_figure(const MaskedFiguresInput& input);
// Those that there are.
[[nodiscard]] std::vector<Figure> masked_figures(const MaskedFiguresInput& input);

}  // namespace onset
