#include "onset/train/sft.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <array>

#include "onset/base/error.h"
#include "onset/train/policy.h"
#include "onset/train/sft_loss.h"

namespace onset {
namespace {

std::vector<const SftExample*> documents(const std::vector<PackedRow>& rows,
                                         std::span<const std::int64_t> chosen) {
  std::vector<const SftExample*> all;
  for (const std::int64_t row : chosen) {
    for (const SftExample& document : rows[static_cast<std::size_t>(row)]) all.push_back(&document);
  }
  return all;
}

struct Size {
  std::int64_t tokens = 0;
  std::int64_t trained = 0;
};

Size size_of(const std::vector<const SftExample*>& documents) {
  Size size;
  for (const SftExample* document : documents) {
    size.tokens += static_cast<std::int64_t>(document->ids.size());
    size.trained += trained_count(*document);
  }
  return size;
}

}  // namespace

SftObjective::SftObjective(Policy& policy, std::vector<PackedRow> rows,
                           std::vector<PackedRow> held_out, const SftOptions& options,
                           const Ranks& ranks)
    : policy_(policy),
      rows_(std::move(rows)),
      held_out_(std::move(held_out)),
      options_(options),
      ranks_(ranks),
      walk_(rows_.size(), options.shuffle_seed) {}

std::int64_t SftObjective::steps_per_epoch() const {
  return micro_batch_count(rows_.size(), options_.window.examples(ranks_));
}

Metrics SftObjective::accumulate(std::int64_t step) {
  const std::vector<std::int64_t> window = walk_.take(options_.window.examples(ranks_));
  const Size size = size_of(documents(rows_, window));
  require_input(size.trained > 0, "update ", step + 1, " has no token to train");
  std::array<double, 2> sums{};  // the loss, and tokens that were the most likely ones
  for_own_micro_batches(
      window, options_.window.batch, ranks_, [&](auto chosen, std::int64_t micro_batch) {
        policy_.draw_dropout(dropout_seed(options_.seed, step, micro_batch));
        const TokenLogps logps = policy_.logps(documents(rows_, chosen), {.equal_gradients = true});
        if (logps.values.numel() == 0) return;
        const at::Tensor loss = sft_loss(logps.values, static_cast<double>(size.trained));
        loss.backward();
        sums[0] += loss.item<double>();
        sums[1] += static_cast<double>(logps.correct);
      });
  ranks_.add(sums);
  walk_.add_tokens(static_cast<double>(size.tokens));
  Metrics metrics{{"loss", sums[0]},
                  {"mean_token_accuracy", sums[1] / static_cast<double>(size.trained)}};
  walk_.add_metrics(metrics);
  return metrics;
}

Metrics SftObjective::evaluate() {
  if (held_out_.empty()) return {};
  const c10::NoGradGuard no_grad;
  const std::vector<std::int64_t> all = all_numbers(held_out_.size());
  std::array<double, 3> sums{};  // -log p, correct tokens, tokens
  for_own_micro_batches(all, options_.eval_batch, ranks_, [&](auto chosen, std::int64_t) {
    const TokenLogps logps = policy_.logps(documents(held_out_, chosen));
    sums[0] -= logps.values.sum(at::kDouble).item<double>();
    sums[1] += static_cast<double>(logps.correct);
    sums[2] += static_cast<double>(logps.values.numel());
  });
  ranks_.add(sums);
  require_input(sums[2] > 0, "the held-out data have no token to score");
  return {{"eval_loss", sums[0] / sums[2]}, {"eval_mean_token_accuracy", sums[1] / sums[2]}};
}

OrderedJson SftObjective::progress() const { return walk_.progress(); }

void SftObjective::restore(const OrderedJson& progress) { walk_.restore(progress); }

}  // namespace onset
