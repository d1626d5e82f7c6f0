#include "onset/train/objective.h"

#include "onset/base/error.h"

namespace onset {

std::int64_t micro_batch_count(std::size_t examples, std::int64_t batch) {
  return (static_cast<std::int64_t>(examples) + batch - 1) / batch;
}

std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, std::int64_t micro_batch) {
  // Steele, Lea and Flood's SplitMix64 finisher over the three numbers.
  std::uint64_t mixed = seed;
  for (const std::int64_t part : {step, micro_batch}) {
    mixed += 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(part) + 1);
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31U;
  }
  return mixed;
}

OrderedJson json_of(const DataPosition& position) {
  return {{"epoch", position.epoch}, {"index", position.index}};
}

DataPosition position_of(const OrderedJson& progress) {
  const Json plain = progress;
  const auto epoch = find_int(plain, "epoch", "the saved place in the data");
  const auto index = find_int(plain, "index", "the saved place in the data");
  require_input(epoch && index, "the saved place in the data has no epoch and index");
  return {.epoch = *epoch, .index = *index};
}

}  // namespace onset
