#include "onset/train/dpo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "onset/train/completion_logps.h"
#include "onset/train/loss_metrics.h"
#include "onset/train/rank_totals.h"

namespace onset {
namespace {

constexpr double not_computed = std::numeric_limits<double>::quiet_NaN();

// The pairs' completions behind their prompts, the chosen ones first.
std::vector<SftExample> both_completions(const std::vector<PreferencePair>& pairs,
                                         std::span<const std::int64_t> chosen) {
  std::vector<SftExample> examples;
  for (const auto side : {&PreferencePair::chosen, &PreferencePair::rejected}) {
    for (const std::int64_t index : chosen) {
      const PreferencePair& pair = pairs[static_cast<std::size_t>(index)];
      examples.push_back(completion_example(pair.prompt, pair.*side));
    }
  }
  return examples;
}

at::Tensor reference_tensor(const std::vector<double>& values, std::span<const std::int64_t> chosen,
                            const at::Tensor& like) {
  std::vector<double> picked;
  for (const std::int64_t index : chosen) {
    picked.push_back(values[static_cast<std::size_t>(index)]);
    if (std::isnan(picked.back())) {
      throw std::logic_error("DpoObjective: a pair without the reference's log-probabilities");
    }
  }
  return at::tensor(picked, at::kDouble).to(like.options().requires_grad(false));
}

Metrics with_loss(const DpoTotals& totals) {
  Metrics metrics{{"loss", totals.loss / totals.pairs}};
  for (const Metric& metric : metrics_of(totals)) metrics.push_back(metric);
  return metrics;
}

}  // namespace

DpoObjective::Pairs DpoObjective::without_reference(std::vector<PreferencePair> pairs) {
  Pairs set;
  set.pairs = std::move(pairs);
  set.chosen.assign(set.pairs.size(), not_computed);
  set.rejected.assign(set.pairs.size(), not_computed);
  return set;
}

DpoObjective::DpoObjective(Policy& policy, std::vector<PreferencePair> pairs,
                           std::vector<PreferencePair> held_out, const DpoOptions& options,
                           const Ranks& ranks)
    : policy_(policy),
      train_(without_reference(std::move(pairs))),
      held_out_(without_reference(std::move(held_out))),
      options_(options),
      ranks_(ranks),
      walk_(train_.pairs.size(), options.shuffle_seed) {
  check(options_.loss);
}

void DpoObjective::compute_reference(Pairs& set, const std::vector<std::int64_t>& wanted,
                                     const std::function<void()>& done) {
  // Computed as the updates compute it, gradients recorded: the kernels of a pass without them
  // round otherwise, and the first loss is ln 2 to the last digit only where both are the same.
  const c10::AutoGradMode record(true);
  std::vector<double> chosen(set.pairs.size());
  std::vector<double> rejected(set.pairs.size());
  for_own_micro_batches(wanted, options_.window.batch, ranks_, [&](auto part, std::int64_t) {
    const auto examples = both_completions(set.pairs, part);
    const at::Tensor sums = summed_logps(policy_, examples, {.masked = options_.reference_masked})
                                .sums.detach()
                                .to(at::kDouble);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto pair = static_cast<std::size_t>(part[i]);
      const auto row = static_cast<std::int64_t>(i);
      chosen[pair] = sums[row].item<double>();
      rejected[pair] = sums[row + static_cast<std::int64_t>(part.size())].item<double>();
    }
    if (done) done();
  });
  ranks_.add(chosen);
  ranks_.add(rejected);
  for (const std::int64_t index : wanted) {
    const auto pair = static_cast<std::size_t>(index);
    set.chosen[pair] = chosen[pair];
    set.rejected[pair] = rejected[pair];
  }
}

void DpoObjective::take_reference(std::int64_t steps, const Progress& progress) {
  std::set<std::int64_t> used;
  DataCursor cursor(static_cast<std::int64_t>(train_.pairs.size()), options_.shuffle_seed);
  for (std::int64_t step = 0; step < steps && used.size() < train_.pairs.size(); ++step) {
    const auto window = cursor.take(options_.window.examples(ranks_));
    used.insert(window.begin(), window.end());
  }
  // Pairs of like lengths in one pass are no faster: nothing is padded.
  const std::vector<std::int64_t> wanted(used.begin(), used.end());
  const std::vector<std::int64_t> held_out = all_numbers(held_out_.pairs.size());
  const std::int64_t all = (micro_batch_count(wanted.size(), options_.window.batch) +
                            micro_batch_count(held_out.size(), options_.window.batch)) /
                           ranks_.count();
  std::int64_t count = 0;
  const auto done = [&] {
    if (progress) progress(++count, std::max(all, count));
  };
  compute_reference(train_, wanted, done);
  compute_reference(held_out_, held_out, done);
}

std::int64_t DpoObjective::steps_per_epoch() const {
  return micro_batch_count(train_.pairs.size(), options_.window.examples(ranks_));
}

DpoLoss DpoObjective::loss_of(const Pairs& set, std::span<const std::int64_t> chosen,
                              double window_pairs) const {
  const auto pairs = static_cast<std::int64_t>(chosen.size());
  const auto examples = both_completions(set.pairs, chosen);
  const SummedLogps logps = summed_logps(policy_, examples, {});
  const at::Tensor lengths =
      at::tensor(logps.counts, at::kLong).to(logps.sums.options().requires_grad(false));
  return dpo_loss({.policy_chosen = logps.sums.narrow(0, 0, pairs),
                   .policy_rejected = logps.sums.narrow(0, pairs, pairs),
                   .reference_chosen = reference_tensor(set.chosen, chosen, logps.sums),
                   .reference_rejected = reference_tensor(set.rejected, chosen, logps.sums),
                   .chosen_lengths = lengths.narrow(0, 0, pairs),
                   .rejected_lengths = lengths.narrow(0, pairs, pairs)},
                  options_.loss, window_pairs);
}

Metrics DpoObjective::accumulate(std::int64_t step) {
  const std::vector<std::int64_t> window = walk_.take(options_.window.examples(ranks_));
  DpoTotals totals;
  for_own_micro_batches(
      window, options_.window.batch, ranks_, [&](auto chosen, std::int64_t micro_batch) {
        policy_.draw_dropout(dropout_seed(options_.seed, step, micro_batch));
        const DpoLoss loss = loss_of(train_, chosen, static_cast<double>(window.size()));
        loss.loss.backward();
        totals += loss.totals;
      });
  totals = merged(totals, ranks_);
  for (const std::int64_t index : window) {
    const PreferencePair& pair = train_.pairs[static_cast<std::size_t>(index)];
    walk_.add_tokens(
        static_cast<double>(2 * pair.prompt.size() + pair.chosen.size() + pair.rejected.size()));
  }
  Metrics metrics = with_loss(totals);
  walk_.add_metrics(metrics);
  return metrics;
}

Metrics DpoObjective::evaluate() {
  if (held_out_.pairs.empty()) return {};
  const c10::NoGradGuard no_grad;
  const std::vector<std::int64_t> all = all_numbers(held_out_.pairs.size());
  DpoTotals totals;
  for_own_micro_batches(all, options_.eval_batch, ranks_, [&](auto chosen, std::int64_t) {
    totals += loss_of(held_out_, chosen, static_cast<double>(all.size())).totals;
  });
  Metrics metrics;
  for (const auto& [name, value] : with_loss(merged(totals, ranks_))) {
    metrics.emplace_back("eval_" + name, value);
  }
  return metrics;
}

OrderedJson DpoObjective::progress() const { return walk_.progress(); }

void DpoObjective::restore(const OrderedJson& progress) { walk_.restore(progress); }

}  // namespace onset
