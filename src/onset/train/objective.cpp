#include "onset/train/objective.h"

#include <numeric>

#include "onset/base/error.h"
#include "onset/base/mixing.h"

namespace onset {

std::int64_t micro_batch_count(std::size_t examples, std::int64_t batch) {
  return (static_cast<std::int64_t>(examples) + batch - 1) / batch;
}

std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, std::int64_t micro_batch) {
  return derived_seed(derived_seed(seed, step), micro_batch);
}

std::vector<std::int64_t> all_numbers(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

DataWalk::DataWalk(std::size_t examples, std::optional<std::uint64_t> shuffle_seed)
    : examples_(static_cast<std::int64_t>(examples)),
      shuffle_seed_(shuffle_seed),
      cursor_(examples_, shuffle_seed_) {}

void DataWalk::add_metrics(Metrics& metrics) const {
  metrics.emplace_back("num_tokens", tokens_);
  metrics.emplace_back("epoch", cursor_.epochs());
}

OrderedJson DataWalk::progress() const {
  const DataPosition position = cursor_.position();
  return {{"epoch", position.epoch}, {"index", position.index}, {"tokens", tokens_}};
}

void DataWalk::restore(const OrderedJson& progress) {
  constexpr const char* where = "the saved place in the data";
  const Json plain = progress;
  const auto epoch = find_int(plain, "epoch", where);
  const auto index = find_int(plain, "index", where);
  require_input(epoch && index, where, " has no epoch and index");
  cursor_ = DataCursor(examples_, shuffle_seed_, {.epoch = *epoch, .index = *index});
  tokens_ = find_number(plain, "tokens", where).value_or(0);
}

}  // namespace onset
