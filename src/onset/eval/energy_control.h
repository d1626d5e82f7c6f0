// The control of a mask that takes as much away: random dims, as many as the mask has, that hold
// the same share of the attention input's energy. Torch-free.
//
// A random mask of k dims removes about k / D of the input's sum of squares; WeMask's dims, chosen
// by their gain, may hold far more or less of it. Without this control "which dims" and "how much"
// are one question.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

// By masked layer: D shares x_d^2 / sum x^2 of the masked tokens' attention input before the mask,
// the mean over these tokens of all prompts, each layer's input being what the masked layers before
// it leave. Runs the prompts under the mask. Layers where no token was masked have none.
[[nodiscard]] std::map<std::int64_t, std::vector<double>> input_energy(
    const Model& model, const MaskSpec& spec,
    const std::vector<std::vector<std::int64_t>>& prompts);

// k different dims with shares that add up to `target`, by (seed, layer) alone: random ones, of
// which random members are exchanged as long as that brings the sum nearer, until it is within
// `energy_tolerance`. Where no k dims come so near (the target is that of the k largest), the
// nearest that were found. 1 <= k <= number of shares.
inline constexpr double energy_tolerance = 0.001;
[[nodiscard]] std::vector<std::int64_t> energy_matched_dims(std::span<const double> shares,
                                                            std::int64_t k, double target,
                                                            std::uint64_t seed, std::int64_t layer);

// The control of `mask`, which must have dims of its own (weight, random, lowest, given): the same
// in everything but the dims, as a mask of criterion `given`.
[[nodiscard]] MaskSpec energy_control(const Model& model, const MaskSpec& mask,
                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                      std::uint64_t seed);
// The same where the energies are at hand, for several seeds.
[[nodiscard]] MaskSpec energy_control(const MaskSpec& mask,
                                      const std::map<std::int64_t, std::vector<double>>& energy,
                                      std::uint64_t seed);

}  // namespace onset
