// The states that a report draws: one prompt's residual stream, thinned while it is observed, so
// that memory does not grow with tokens x dims x layers. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/scan.h"
#include "onset/report/thin.h"

namespace onset {

class Model;

// Blocks at most, for pictures: a surface of more cells is no clearer and slow to turn.
inline constexpr std::int64_t most_dim_blocks = 640;
inline constexpr std::int64_t most_token_blocks = 96;
inline constexpr std::int64_t most_layer_blocks = 128;

// What to look at.
struct PictureView {
  std::int64_t layer = 0;           // whose output is drawn over tokens x dims
  std::int64_t token = 0;           // whose state is drawn over layers x dims
  std::vector<std::int64_t> alone;  // tokens that get rows of their own
};

struct PromptStates {
  PictureView view;
  std::vector<std::vector<StateEntry>> largest;  // after each layer: the three largest entries
  BlockMaxima tokens;                            // tokens x dims, after view.layer
  BlockMaxima layers;                            // layers x dims, of view.token
};

// The prompt's view: the ME layer and the token of its largest entry there; without one, the scan's
// candidate where it is this prompt's, else the largest entry anywhere. The first token and the
// massive ones (up to 16 in all) stand alone.
[[nodiscard]] PictureView view_of(const ScanResult& result, std::size_t prompt);

// Runs the prompt through the blocks once more. The layer is known only after a scan, and keeping
// all states of the scan for it would cost more than this. `without_experts` as in the scan.
[[nodiscard]] PromptStates observe_states(const Model& model, const std::vector<std::int64_t>& ids,
                                          const PictureView& view, const Log& log = {},
                                          std::span<const ExpertId> without_experts = {});

}  // namespace onset
