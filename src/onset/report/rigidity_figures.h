// The pictures of rigidity: their data and captions. Formulas: docs/rigidity.md. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/massive/rigidity.h"
#include "onset/report/page.h"

namespace onset {

struct RigidityFiguresInput {
  const RigidityResult& result;
  std::optional<std::int64_t> me_layer = {};
  std::optional<std::int64_t> last_massive_layer = {};
  std::vector<std::string> prompts = {};     // [P] texts for the labels, may be empty; plain text
  std::string token_name = "massive token";  // "token 3" where it was named
  std::string baseline_name = "baseline token";
};

// Cosines between layers at each site, mean over prompts, the token beside the baseline.
[[nodiscard]] Figure layer_cosine_figure(const RigidityFiguresInput& input);
// Cosines between prompts at each site, at the ME layer and others. Wants two prompts.
[[nodiscard]] Figure prompt_cosine_figure(const RigidityFiguresInput& input);
// Effective rank, cosine between prompts and with the layer before, as lines. Wants two prompts.
[[nodiscard]] Figure rank_figure(const RigidityFiguresInput& input);
// Those that there are: all three, or the first for one prompt.
[[nodiscard]] std::vector<Figure> rigidity_figures(const RigidityFiguresInput& input);

}  // namespace onset
