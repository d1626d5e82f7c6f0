#include "onset/train/grpo_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "onset/base/error.h"

namespace onset {
namespace {

bool counts(const GrpoCompletions& completions, std::size_t index) {
  return completions.counted.empty() || completions.counted[index] != 0;
}

void check_sizes(const GrpoCompletions& completions, const GrpoLossOptions& options,
                 const GrpoWindow& window) {
  const auto& lengths = completions.lengths;
  const bool lengths_are_valid =
      std::all_of(lengths.begin(), lengths.end(), [](std::int64_t length) { return length >= 0; });
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.dim() == 1 && tensor.numel() == tokens;
  };
  const bool has_reference = completions.reference_logps.defined();
  if (!lengths_are_valid || !fits(completions.logps) || !fits(completions.old_logps) ||
      (has_reference && !fits(completions.reference_logps))) {
    throw usage_error("log-probabilities and lengths of the completions differ in number");
  }
  if (completions.advantages.size() != lengths.size() ||
      (!completions.counted.empty() && completions.counted.size() != lengths.size())) {
    throw usage_error(str_cat(lengths.size(), " completions have ", completions.advantages.size(),
                              " advantages and ", completions.counted.size(), " flags"));
  }
  if (options.beta > 0 && !has_reference) {
    throw usage_error("a KL term needs the reference's log-probabilities", "or set beta to 0");
  }
  if (window.completions < static_cast<double>(lengths.size()) || !(window.micro_batches >= 1) ||
      window.tokens < static_cast<double>(counted_tokens(completions))) {
    throw usage_error("the window has fewer completions or tokens than one of its micro-batches");
  }
}

// What each completion's tokens are weighted with in the sum that is the loss.
double weight_of(std::int64_t length, double micro_batch_tokens, const GrpoLossOptions& options,
                 const GrpoWindow& window) {
  switch (options.type) {
    case GrpoLossType::grpo:
      return 1 / (window.completions * static_cast<double>(length));
    case GrpoLossType::bnpo:
      return 1 / (window.micro_batches * micro_batch_tokens);
    case GrpoLossType::dapo:
      return 1 / window.tokens;
    case GrpoLossType::dr_grpo:
      break;
  }
  return 1 / (window.completions * static_cast<double>(options.max_completion_length));
}

// The counted tokens: where they stand among all, and their completion's weight and advantage.
struct Counted {
  std::vector<std::int64_t> rows;
  std::vector<double> weights;
  std::vector<double> advantages;
};

Counted counted_of(const GrpoCompletions& completions, const GrpoLossOptions& options,
                   const GrpoWindow& window) {
  const auto tokens = static_cast<double>(counted_tokens(completions));
  Counted counted;
  std::int64_t row = 0;
  for (std::size_t c = 0; c < completions.lengths.size(); ++c) {
    const std::int64_t end = row + completions.lengths[c];
    if (!counts(completions, c) || row == end) {
      row = end;
      continue;
    }
    const double weight = weight_of(completions.lengths[c], tokens, options, window);
    for (; row < end; ++row) {
      counted.rows.push_back(row);
      counted.weights.push_back(weight);
      counted.advantages.push_back(completions.advantages[c]);
    }
  }
  return counted;
}

// Copies to the type and device of `like`.
at::Tensor tensor_of(const std::vector<double>& values, const at::Tensor& like) {
  return at::tensor(values, at::kDouble).to(like.options().requires_grad(false));
}

double total(const at::Tensor& values) { return values.sum(at::kDouble).item<double>(); }

GrpoTotals totals_of(const at::Tensor& ratio, const at::Tensor& advantages, const at::Tensor& k3,
                     const GrpoLossOptions& options) {
  GrpoTotals totals;
  totals.tokens = static_cast<double>(ratio.numel());
  if (ratio.numel() == 0) return totals;
  const double low = 1 - options.epsilon_low;
  const double high = 1 + options.epsilon_high;
  if (k3.defined()) totals.kl = total(k3);
  totals.clipped_low = total((ratio < low).logical_and(advantages < 0));
  totals.clipped_high = total((ratio > high).logical_and(advantages > 0));
  totals.ratio_min = ratio.min().item<double>();
  totals.ratio_max = ratio.max().item<double>();
  totals.nearest_ratio_to_clip_bound =
      at::minimum((ratio - low).abs(), (ratio - high).abs()).min().item<double>();
  return totals;
}

}  // namespace

GrpoTotals& GrpoTotals::operator+=(const GrpoTotals& other) {
  tokens += other.tokens;
  loss += other.loss;
  kl += other.kl;
  clipped_low += other.clipped_low;
  clipped_high += other.clipped_high;
  ratio_min = std::min(ratio_min, other.ratio_min);
  ratio_max = std::max(ratio_max, other.ratio_max);
  nearest_ratio_to_clip_bound =
      std::min(nearest_ratio_to_clip_bound, other.nearest_ratio_to_clip_bound);
  return *this;
}

double GrpoTotals::mean_kl() const { return tokens > 0 ? kl / tokens : 0; }

double GrpoTotals::clip_fraction() const {
  return tokens > 0 ? (clipped_low + clipped_high) / tokens : 0;
}

double GrpoTotals::ratio_error() const {
  return tokens > 0 ? std::max(ratio_max - 1, 1 - ratio_min) : 0;
}

std::int64_t counted_tokens(const GrpoCompletions& completions) {
  std::int64_t tokens = 0;
  for (std::size_t c = 0; c < completions.lengths.size(); ++c) {
    if (counts(completions, c)) tokens += completions.lengths[c];
  }
  return tokens;
}

GrpoLoss grpo_loss(const GrpoCompletions& completions, const GrpoLossOptions& options,
                   const GrpoWindow& window) {
  check(options);
  check_sizes(completions, options, window);
  // Tokens that do not count are left out before anything is computed: 0 times a ratio that
  // overflowed would be NaN.
  const Counted counted = counted_of(completions, options, window);
  const at::Tensor rows = at::tensor(counted.rows, at::kLong).to(completions.logps.device());
  const at::Tensor logps = completions.logps.index_select(0, rows);  // [n]
  const at::Tensor weights = tensor_of(counted.weights, logps);
  const at::Tensor advantages = tensor_of(counted.advantages, logps);
  const at::Tensor ratio = (logps - completions.old_logps.detach().index_select(0, rows)).exp();
  const at::Tensor clipped = ratio.clamp(1 - options.epsilon_low, 1 + options.epsilon_high);
  at::Tensor losses = -at::minimum(ratio * advantages, clipped * advantages);
  at::Tensor k3;
  if (completions.reference_logps.defined()) {
    const at::Tensor gap = completions.reference_logps.detach().index_select(0, rows) - logps;
    k3 = gap.exp() - gap - 1;
    if (options.beta > 0) {
      losses = losses + (options.kl_times_ratio ? k3 * ratio : k3) * options.beta;
    }
    k3 = k3.detach();
  }
  GrpoLoss result;
  result.loss = (losses * weights).sum();
  result.totals = totals_of(ratio.detach(), advantages, k3, options);
  result.totals.loss = result.loss.item<double>();
  return result;
}

}  // namespace onset
