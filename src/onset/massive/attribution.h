// Which FFN neurons and attention heads write one entry of the residual stream, exactly: a block's
// output at (token, dim) is resid_pre + attn_out + ffn_out, ffn_out the sum over neurons j of
// product_j * W_down[dim, j], and attn_out the sum over heads of head_h * W_o[dim, columns of h].
// After a post-norm each is scaled by gain_dim / rms of the module's own output. Sums are in
// float64. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace onset {

class Hooks;
class Model;

// A term of a projection's sum: input_dim * weight.
struct ProjectionTerm {
  std::int64_t dim = 0;
  double input = 0;  // the FFN's input (after the norm) in that dim
  double weight = 0;
  double contribution = 0;
};

struct NeuronPart {
  std::string module;  // "ffn"; in mixtures "experts.E" or "shared"
  std::int64_t neuron = 0;
  double gate = 0;  // before the activation
  double up = 0;
  double product = 0;       // act(gate) * up
  double weight = 0;        // W_down[dim, neuron]
  double contribution = 0;  // to the entry, all factors included
  // contribution / the sum over all neurons; empty where that sum is below 1 in magnitude.
  std::optional<double> share = {};
  // What the neuron reads: the largest terms of its gate and of its up projection, and what the
  // attributed dim itself contributes to each.
  std::vector<ProjectionTerm> gate_terms = {};
  std::vector<ProjectionTerm> up_terms = {};
  double gate_from_dim = 0;
  double up_from_dim = 0;
};

struct HeadPart {
  std::int64_t head = 0;
  double contribution = 0;
};

// An FFN-like module of the block, and the sum of its neurons.
struct ModulePart {
  std::string module;
  double contribution = 0;  // its bias included
};

struct EntryAttribution {
  std::int64_t layer = 0;
  std::int64_t token = 0;
  std::int64_t dim = 0;
  float resid_pre = 0;  // signed values at (token, dim)
  float attn_out = 0;
  float ffn_out = 0;
  float resid_post = 0;
  std::vector<ModulePart> modules;
  std::int64_t neuron_count = 0;
  std::vector<NeuronPart> neurons;   // in falling order of |contribution|
  std::vector<NeuronPart> opposing;  // those whose sign is opposite to resid_pre's, the same order
  double neuron_sum = 0;             // over all neurons and biases; ffn_out by another way
  double ffn_difference = 0;         // neuron_sum - ffn_out
  double largest_neuron = 0;         // the largest |contribution|
  // How many of the largest neurons it takes for 90 % of the sum of all |contributions|.
  std::int64_t neurons_for_90_percent = 0;
  std::vector<HeadPart> heads;  // all, in the order of their numbers
  double head_sum = 0;          // with o_proj's bias; attn_out by another way
  double attn_difference = 0;
  // gain_dim / rms of the module's own output, where a norm follows it; else 1.
  double ffn_factor = 1;
  double attn_factor = 1;
  // The gain of the norm before the FFN at dim: how much of the entry the FFN reads. Empty where
  // there is no such norm.
  std::optional<double> ffn_norm_gain;
};

struct EntryPlace {
  std::int64_t layer = 0;
  std::int64_t token = 0;
  std::int64_t dim = 0;
};

// One pass over the prompt, edited by the interventions, if any. `top`: how many neurons are
// listed. Throws a usage error for a place that the model or the prompt does not have.
[[nodiscard]] std::vector<EntryAttribution> attribute_entries(const Model& model,
                                                              const std::vector<std::int64_t>& ids,
                                                              std::span<const EntryPlace> places,
                                                              std::int64_t top = 10,
                                                              const Hooks* interventions = nullptr);

}  // namespace onset
