// How well a model predicts a text, in windows, with or without interventions. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onset/base/log.h"

namespace onset {

class Hooks;
class Model;

struct WindowOptions {
  std::int64_t window = 512;  // positions of a window, its BOS included
  // New tokens a window: where it is smaller than the window, the rest of a window repeats tokens
  // for context that were scored before. 0: no overlap.
  std::int64_t stride = 0;
  std::optional<std::int64_t> bos = std::nullopt;  // the id that begins each window, if any
};

// Negative log-likelihoods in nats. Without a BOS and without overlap the first token of each
// window has nothing before it and is not scored.
struct TextScore {
  std::int64_t windows = 0;
  std::int64_t scored_tokens = 0;
  double nll = 0;                      // summed
  std::vector<double> nll_per_window;  // summed over each window's scored tokens
  // exp(nll / scored_tokens); NaN where nothing was scored.
  [[nodiscard]] double perplexity() const;
};

// One window as the model is given it.
struct TextWindow {
  std::vector<std::int64_t> ids;
  std::int64_t first_scored = 0;  // index into ids; all from there on are scored
  [[nodiscard]] std::int64_t scored_tokens() const {
    const auto length = static_cast<std::int64_t>(ids.size());
    return length > first_scored ? length - first_scored : 0;
  }
};

// The windows of a text, and the nll of each of some of them; score_text() is both. Throws as it
// does.
[[nodiscard]] std::vector<TextWindow> text_windows(std::span<const std::int64_t> ids,
                                                   const WindowOptions& options);
[[nodiscard]] std::vector<double> score_windows(const Model& model,
                                                std::span<const TextWindow> windows,
                                                const Hooks* hooks = nullptr, const Log& log = {});

// `ids` is the text without BOS; each window is a sequence of its own, from position 0 on. `hooks`
// may hold interventions. Throws a usage error for windows that make no sense and for a text of
// which no token would be scored.
[[nodiscard]] TextScore score_text(const Model& model, std::span<const std::int64_t> ids,
                                   const WindowOptions& options, const Hooks* hooks = nullptr,
                                   const Log& log = {});

}  // namespace onset
