#include "onset/eval/energy_control.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onset/base/error.h"
#include "onset/eval/index_draws.h"
#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/selection.h"

namespace onset {
namespace {

// Exchanges that are tried for each dim of the input.
constexpr std::int64_t tries_per_dim = 200;

double sum_of(std::span<const double> shares, const std::vector<std::int64_t>& dims) {
  double sum = 0;
  for (const std::int64_t dim : dims) sum += shares[static_cast<std::size_t>(dim)];
  return sum;
}

}  // namespace

std::map<std::int64_t, std::vector<double>> input_energy(
    const Model& model, const MaskSpec& spec,
    const std::vector<std::vector<std::int64_t>>& prompts) {
  const c10::InferenceMode inference;
  std::map<std::int64_t, std::vector<double>> energy;
  std::map<std::int64_t, std::int64_t> tokens;
  Hooks hooks(model.config().layer_count());
  add_mask(hooks, spec, model,
           [&](const SiteContext& context, std::int64_t, const std::vector<std::int64_t>&,
               std::span<const float> input) {
             double all = 0;
             for (const float x : input) all += static_cast<double>(x) * static_cast<double>(x);
             if (!(all > 0)) return;
             auto& shares = energy[context.site.layer];
             shares.resize(input.size());
             ++tokens[context.site.layer];
             for (std::size_t d = 0; d < input.size(); ++d) {
               shares[d] += static_cast<double>(input[d]) * static_cast<double>(input[d]) / all;
             }
           });
  for (const auto& prompt : prompts) {
    const std::vector<SequenceInput> batch{{.ids = prompt, .cache = nullptr}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks, spec.to_layer + 1));
  }
  for (auto& [layer, shares] : energy) {
    for (double& share : shares) share /= static_cast<double>(tokens.at(layer));
  }
  return energy;
}

std::vector<std::int64_t> energy_matched_dims(std::span<const double> shares, std::int64_t k,
                                              double target, std::uint64_t seed,
                                              std::int64_t layer) {
  const auto size = static_cast<std::int64_t>(shares.size());
  // All dims in random order; the first k are the mask.
  std::vector<std::int64_t> dims = random_dims(seed, layer, size, size);
  const auto share = [&](std::size_t place) {
    return shares[static_cast<std::size_t>(dims[place])];
  };
  double sum = sum_of(shares, {dims.begin(), dims.begin() + k});
  IndexDraws draws(seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(layer));
  for (std::int64_t i = 0; k < size && i < tries_per_dim * size; ++i) {
    if (std::abs(sum - target) <= energy_tolerance) break;
    const std::size_t inside = draws.below(static_cast<std::uint32_t>(k));
    const std::size_t outside =
        static_cast<std::size_t>(k) + draws.below(static_cast<std::uint32_t>(size - k));
    const double after = sum - share(inside) + share(outside);
    if (std::abs(after - target) >= std::abs(sum - target)) continue;
    std::swap(dims[inside], dims[outside]);
    sum = after;
  }
  dims.resize(static_cast<std::size_t>(k));
  return dims;
}

MaskSpec energy_control(const MaskSpec& mask,
                        const std::map<std::int64_t, std::vector<double>>& energy,
                        std::uint64_t seed) {
  MaskSpec control = mask;
  control.criterion = MaskCriterion::given;
  control.seed = seed;
  for (auto& [layer, dims] : control.dims) {
    const auto found = energy.find(layer);
    if (found == energy.end()) {
      throw input_error(str_cat("no token of the prompts is masked in layer ", layer,
                                ", so that its energy is not known"));
    }
    const auto k = static_cast<std::int64_t>(dims.size());
    dims = energy_matched_dims(found->second, k, sum_of(found->second, dims), seed, layer);
  }
  return control;
}

MaskSpec energy_control(const Model& model, const MaskSpec& mask,
                        const std::vector<std::vector<std::int64_t>>& prompts, std::uint64_t seed) {
  return energy_control(mask, input_energy(model, mask, prompts), seed);
}

}  // namespace onset
