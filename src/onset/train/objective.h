// What a kind of training does between two updates. The trainer (trainer.h) does the rest.
// Torch-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onset/base/json.h"
#include "onset/base/ranks.h"
#include "onset/train/data_order.h"
#include "onset/train/metrics.h"

namespace onset {

// How much an update is made of: `micro_batches` on each rank, of `batch` examples (pairs,
// completions) each, all in memory at a time.
struct WindowShape {
  std::int64_t batch = 8;
  std::int64_t micro_batches = 1;
  [[nodiscard]] std::int64_t examples(const Ranks& ranks) const {
    return batch * micro_batches * ranks.count();
  }
};

class Objective {
 public:
  Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;
  virtual ~Objective() = default;

  // Updates in one pass over the data.
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  // Adds this rank's share of the gradients of update `step` (from 0) to the trained tensors, which
  // have none before, and returns the metrics of all ranks together.
  [[nodiscard]] virtual Metrics accumulate(std::int64_t step) = 0;
  // On data held out, of all ranks together; nothing where there are none.
  [[nodiscard]] virtual Metrics evaluate() = 0;
  // Whether a run can go on from here by what progress() says: not while completions wait that were
  // sampled by earlier weights.
  [[nodiscard]] virtual bool can_be_saved() const { return true; }
  [[nodiscard]] virtual OrderedJson progress() const = 0;
  // Throws an input error for what is not such a progress.
  virtual void restore(const OrderedJson& progress) = 0;
};

// Examples `order` of a window in micro-batches of `batch`, and which of them this rank does: the
// cut is the same on any number of ranks. A last micro-batch may be smaller, and a rank may have
// none.
template <class Visit>
void for_own_micro_batches(std::span<const std::int64_t> order, std::int64_t batch,
                           const Ranks& ranks, const Visit& visit) {
  const auto size = static_cast<std::size_t>(batch);
  std::int64_t number = 0;
  for (std::size_t first = 0; first < order.size(); first += size, ++number) {
    if (number % ranks.count() != ranks.rank()) continue;
    visit(order.subspan(first, std::min(size, order.size() - first)), number);
  }
}
[[nodiscard]] std::int64_t micro_batch_count(std::size_t examples, std::int64_t batch);

// A number for the dropout of one micro-batch.
[[nodiscard]] std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step,
                                         std::int64_t micro_batch);

// 0 to count - 1.
[[nodiscard]] std::vector<std::int64_t> all_numbers(std::size_t count);

// Where an objective is in its data, and how many tokens it has had.
class DataWalk {
 public:
  DataWalk(std::size_t examples, std::optional<std::uint64_t> shuffle_seed);

  [[nodiscard]] std::vector<std::int64_t> take(std::int64_t count) { return cursor_.take(count); }
  void add_tokens(double tokens) { tokens_ += tokens; }
  // num_tokens and epoch.
  void add_metrics(Metrics& metrics) const;

  [[nodiscard]] OrderedJson progress() const;
  // Throws an input error for what is not such a progress.
  void restore(const OrderedJson& progress);

 private:
  std::int64_t examples_;
  std::optional<std::uint64_t> shuffle_seed_;
  DataCursor cursor_;
  double tokens_ = 0;
};

}  // namespace onset
