#include "onset/model/routing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

namespace onset {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

// Puts the indices of the `count` largest scores first, the larger before the smaller and the lower
// index first on ties.
void select_largest(std::span<const double> scores, std::int64_t count,
                    std::vector<std::int64_t>& indices) {
  indices.resize(scores.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto better = [&](std::int64_t a, std::int64_t b) {
    const double left = scores[static_cast<std::size_t>(a)];
    const double right = scores[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::partial_sort(indices.begin(), indices.begin() + count, indices.end(), better);
}

// How good a group of experts is: its best, or its two best together. An expert that cannot be
// chosen counts for nothing, and does not bar the others of its group.
double group_score(std::span<const double> scores, bool two) {
  double best = never;
  double second = never;
  for (const double score : scores) {
    if (score > best) {
      second = best;
      best = score;
    } else if (score > second) {
      second = score;
    }
  }
  return two && second != never ? best + second : best;
}

// Leaves out the experts of all groups but the best.
void keep_best_groups(const MixtureConfig& mixture, std::vector<double>& scores,
                      std::vector<std::int64_t>& indices) {
  const auto size = scores.size() / static_cast<std::size_t>(mixture.groups);
  std::vector<double> groups;
  for (std::size_t begin = 0; begin < scores.size(); begin += size) {
    groups.push_back(
        group_score(std::span(scores).subspan(begin, size), mixture.score == RouterScore::sigmoid));
  }
  select_largest(groups, mixture.chosen_groups, indices);
  for (auto i = static_cast<std::size_t>(mixture.chosen_groups); i < indices.size(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(indices[i]) * size);
    std::fill_n(scores.begin() + begin, size, never);
  }
}

// The choice for every token, by scores that have no gradient.
at::Tensor choose(const at::Tensor& scores, const at::Tensor& logits,
                  const MixtureConfig& mixture) {
  const at::Tensor by = scores.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor raw = logits.detach().to(at::kCPU, at::kDouble).contiguous();
  const std::int64_t tokens = by.size(0);
  const auto count = static_cast<std::size_t>(by.size(1));
  at::Tensor experts = at::empty({tokens, mixture.chosen}, at::kLong);
  auto* out = experts.mutable_data_ptr<std::int64_t>();
  std::vector<double> row(count);
  std::vector<std::int64_t> indices;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double* score = by.const_data_ptr<double>() + t * by.size(1);
    const double* logit = raw.const_data_ptr<double>() + t * by.size(1);
    for (std::size_t e = 0; e < count; ++e) {
      // NaN has no place in an order; the state that it came from is reported elsewhere.
      const bool out_of_choice = logit[e] == never || std::isnan(score[e]);
      row[e] = out_of_choice ? never : score[e];
    }
    if (mixture.groups > 1) keep_best_groups(mixture, row, indices);
    select_largest(row, mixture.chosen, indices);
    std::sort(indices.begin(), indices.begin() + mixture.chosen);
    out = std::copy_n(indices.begin(), mixture.chosen, out);
  }
  return experts.to(logits.device());
}

}  // namespace

Routing route(const at::Tensor& logits, const MixtureConfig& mixture,
              const at::Tensor& correction_bias) {
  const at::Tensor scores =
      mixture.score == RouterScore::sigmoid ? at::sigmoid(logits) : at::softmax(logits, -1);
  const at::Tensor experts =
      choose(correction_bias.defined() ? scores.add(correction_bias) : scores, logits, mixture);
  at::Tensor weights = scores.gather(1, experts);
  if (mixture.normalised) {
    // The small number keeps a token whose scores are all 0 from dividing by 0.
    weights = weights.div(weights.sum(-1, /*keepdim=*/true).add(1e-20));
  }
  return {experts, mixture.scale == 1.0 ? weights : weights.mul(mixture.scale)};
}

std::vector<ExpertRows> group_by_expert(const at::Tensor& experts, std::int64_t expert_count) {
  const at::Tensor chosen = experts.cpu().contiguous();
  const auto* expert = chosen.const_data_ptr<std::int64_t>();
  std::vector<ExpertRows> groups(static_cast<std::size_t>(expert_count));
  for (std::int64_t slot = 0; slot < chosen.numel(); ++slot) {
    if (expert[slot] < 0 || expert[slot] >= expert_count) {
      throw std::logic_error("an intervention at router.experts chose an expert that is not there");
    }
    ExpertRows& group = groups[static_cast<std::size_t>(expert[slot])];
    group.rows.push_back(slot / chosen.size(1));
    group.slots.push_back(slot);
  }
  std::vector<ExpertRows> used;
  for (std::size_t e = 0; e < groups.size(); ++e) {
    if (groups[e].rows.empty()) continue;
    groups[e].expert = static_cast<std::int64_t>(e);
    used.push_back(std::move(groups[e]));
  }
  return used;
}

}  // namespace onset
