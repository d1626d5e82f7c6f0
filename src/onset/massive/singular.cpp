// The leading singular values of a down projection, by subspace iteration on W W^T: a few products
// instead of a full decomposition, which takes minutes for a large model.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "onset/massive/attribution.h"
#include "onset/massive/block_rows.h"
#include "onset/massive/super_weights.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::int64_t subspace = 16;
constexpr int most_iterations = 200;
constexpr double converged = 1e-9;  // relative change of sigma_1 and sigma_2

struct Leading {
  double sigma1 = 0;
  double sigma2 = 0;
  at::Tensor left;  // [D] float64
};

// Start vectors without randomness: cosines of many frequencies, orthonormalised.
at::Tensor start_vectors(std::int64_t rows, std::int64_t count) {
  const at::Tensor i = at::arange(rows, at::kDouble).unsqueeze(1) + 0.5;
  const at::Tensor j = at::arange(count, at::kDouble).unsqueeze(0) * 7.0 + 1.0;
  return (i * j * (M_PI / static_cast<double>(rows))).cos() + 1e-3 * (i * (j + 0.37)).sin();
}

Leading leading_singular(const at::Tensor& weight) {
  const at::Tensor w = weight.to(at::kDouble);  // [D, F]
  const std::int64_t count = std::min({subspace, w.size(0), w.size(1)});
  at::Tensor basis = std::get<0>(at::linalg_qr(start_vectors(w.size(0), count)));
  Leading result;
  for (int step = 0; step < most_iterations; ++step) {
    const at::Tensor projected = at::matmul(w.t(), basis);  // [F, count]
    // Rayleigh-Ritz: singular values of W^T restricted to the subspace.
    const auto [u, s, vh] = at::linalg_svd(projected, /*full_matrices=*/false);
    const auto first = s[0].item<double>();
    const double second = count > 1 ? s[1].item<double>() : 0.0;
    result.left = at::matmul(basis, vh.select(0, 0));
    const bool done = std::fabs(first - result.sigma1) <= converged * first &&
                      std::fabs(second - result.sigma2) <= converged * first;
    result.sigma1 = first;
    result.sigma2 = second;
    if (done) break;
    basis = std::get<0>(at::linalg_qr(at::matmul(w, projected)));
  }
  return result;
}

// |cosine| of the module's output of one token with the vector, from its product.
double cosine_with(const at::Tensor& left, const at::Tensor& weight, const at::Tensor& product) {
  const at::Tensor out = at::mv(weight.to(at::kDouble), product.to(at::kDouble));
  const auto norm = out.norm().item<double>();
  return norm > 0 ? std::fabs(at::dot(out, left).item<double>()) / norm : 0.0;
}

const FfnModule* module_named(const std::vector<FfnModule>& modules, const std::string& name) {
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [&](const FfnModule& module) { return module.name == name; });
  return found == modules.end() ? nullptr : &*found;
}

}  // namespace

SingularReading read_singular(const Model& model, const std::vector<std::int64_t>& ids,
                              std::int64_t layer, std::int64_t token,
                              const std::vector<std::int64_t>& dims, const Hooks* interventions) {
  const c10::InferenceMode inference;
  const std::vector<EntryPlace> place{{.layer = layer, .token = token, .dim = dims.front()}};
  const EntryAttribution entry = attribute_entries(model, ids, place, 1, interventions).front();
  const auto writer = std::max_element(
      entry.modules.begin(), entry.modules.end(), [](const auto& a, const auto& b) {
        return std::fabs(a.contribution) < std::fabs(b.contribution);
      });
  std::vector<BlockPlace> places;
  for (std::int64_t t = 0; t < std::ssize(ids); ++t) places.push_back({.layer = layer, .token = t});
  const std::vector<BlockRow> rows = capture_block_rows(model, ids, places, interventions);

  SingularReading result;
  result.layer = layer;
  result.module = writer->module;
  std::vector<double> others;
  at::Tensor weight;
  Leading leading;
  const auto own = ffn_modules(model, rows[static_cast<std::size_t>(token)]);
  const FfnModule& module = *module_named(own, writer->module);
  weight = module.weights->down.dense(at::kFloat);
  leading = leading_singular(weight);
  result.sigma1 = leading.sigma1;
  result.sigma2 = leading.sigma2;
  result.frobenius = weight.to(at::kDouble).norm().item<double>();
  result.cosine = cosine_with(leading.left, weight, module.product);
  for (const std::int64_t dim : dims) {
    result.energy_at_dims.push_back(std::pow(leading.left.select(0, dim).item<double>(), 2));
  }
  for (const BlockRow& row : rows) {
    if (row.token == token) continue;
    const auto modules = ffn_modules(model, row);
    const FfnModule* other = module_named(modules, writer->module);
    if (other != nullptr) others.push_back(cosine_with(leading.left, weight, other->product));
  }
  result.others_cosine = std::numeric_limits<double>::quiet_NaN();
  if (!others.empty()) {
    const auto middle = others.begin() + (std::ssize(others) - 1) / 2;
    std::nth_element(others.begin(), middle, others.end());
    result.others_cosine = *middle;
  }
  return result;
}

}  // namespace onset
