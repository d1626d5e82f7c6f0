// Super weights: single entries of a down projection that carry a massive activation (Yu et al.
// 2411.07191). Their procedure: one forward pass; of each layer the largest input and the largest
// output of down_proj; where both stand out, the weight that joins the two channels. Then without
// it once more. And how far the whole projection is of rank one. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/log.h"

namespace onset {

class Hooks;
class Model;

// One layer's down projection in one pass (in a mixture: that of the expert with the largest
// output).
struct DownSpike {
  std::int64_t layer = 0;
  std::string module;  // "ffn"; in mixtures "experts.E" or "shared"
  float input = 0;     // the largest by magnitude, signed
  std::int64_t input_token = 0;
  std::int64_t neuron = 0;
  float output = 0;  // before a post-norm
  std::int64_t output_token = 0;
  std::int64_t dim = 0;
  // The block writes against a large entry that was there before: it takes away, as the last
  // layers do, and makes no massive activation.
  bool opposes = false;
};

struct SuperWeight {
  std::int64_t layer = 0;
  std::string module;
  std::int64_t dim = 0;     // row of W_down
  std::int64_t neuron = 0;  // column
  double weight = 0;
  float input = 0;
  float output = 0;
};

// One pass, with the weights found before taken out.
struct SuperWeightLook {
  std::vector<DownSpike> layers;
  std::optional<SuperWeight> found;
};

struct SuperWeightOptions {
  // Input and output must both exceed this (the default of the authors' scripts).
  double threshold = 100.0;
  std::int64_t looks = 3;
};

struct SuperWeightResult {
  SuperWeightOptions options;
  std::vector<SuperWeightLook> looks;
};

// Of the layers where both exceed the threshold, and which do not take away what is there, the one
// with the largest output counts. Later looks pass over the input channels of the weights found.
[[nodiscard]] SuperWeightResult find_super_weights(const Model& model,
                                                   const std::vector<std::int64_t>& ids,
                                                   const SuperWeightOptions& options = {},
                                                   const Log& log = {},
                                                   const Hooks* interventions = nullptr);

// A block's down projection as a matrix: its two largest singular values, and how far one token's
// output lies along the first left singular vector (|cosine|; before a post-norm).
struct SingularReading {
  std::int64_t layer = 0;
  std::string module;
  double sigma1 = 0;
  double sigma2 = 0;
  double frobenius = 0;  // sqrt of the sum of all squared singular values
  double cosine = 0;
  double others_cosine = 0;  // median |cosine| of the other tokens; NaN without
  // The massive dims' entries of the first left singular vector, squared: shares of its energy.
  std::vector<double> energy_at_dims;
};

// Of the module that writes the largest part of the entry (token, dims[0]).
[[nodiscard]] SingularReading read_singular(const Model& model,
                                            const std::vector<std::int64_t>& ids,
                                            std::int64_t layer, std::int64_t token,
                                            const std::vector<std::int64_t>& dims,
                                            const Hooks* interventions = nullptr);

}  // namespace onset
