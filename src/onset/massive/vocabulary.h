// Which tokens can carry the massive value: every vocabulary entry alone at position 0. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/base/log.h"

namespace onset {

class Hooks;
class Model;

struct VocabularyQuestion {
  std::int64_t layer = 0;
  std::vector<std::int64_t> dims;  // the massive dims
  // An entry counts as massive above this. A token that stands alone has no other tokens whose
  // median could be the yardstick: take it from ordinary prompts.
  double threshold = 100.0;
  std::int64_t listed = 64;  // tokens listed at each end
};

struct VocabularyToken {
  std::int64_t id = 0;
  float largest = 0;     // M = max |x| after the layer
  std::int64_t dim = 0;  // where
};

struct VocabularyResult {
  std::int64_t layer = 0;
  double threshold = 0;
  std::int64_t tokens = 0;
  std::int64_t massive = 0;          // M above the threshold
  std::int64_t massive_at_dims = 0;  // of these, with the largest entry in one of the dims
  std::vector<double> levels;        // of the quantiles: 0, 0.01, 0.05, 0.25, 0.5, ..
  std::vector<double> quantiles;     // of M
  // Counts of M between 10^edges[i] and 10^edges[i + 1].
  std::vector<double> edges;
  std::vector<std::int64_t> counts;
  std::vector<VocabularyToken> small;    // those that stay below, the smallest first
  std::vector<VocabularyToken> largest;  // the largest first
  std::vector<float> values;             // [V] M of each id
};

// Blocks 0 to the layer only, thousands of tokens at once.
// Throws an input error for an id whose state holds NaN or infinity.
[[nodiscard]] VocabularyResult scan_vocabulary(const Model& model,
                                               const VocabularyQuestion& question,
                                               const Log& log = {},
                                               const Hooks* interventions = nullptr);

}  // namespace onset
