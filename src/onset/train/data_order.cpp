#include "onset/train/data_order.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/mixing.h"
#include "onset/eval/index_draws.h"

namespace onset {
std::vector<std::int64_t> epoch_order(std::int64_t size, std::optional<std::uint64_t> seed,
                                      std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  if (!seed) return order;
  IndexDraws draws(derived_seed(*seed, epoch));
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[draws.below(static_cast<std::uint32_t>(left))]);
  }
  return order;
}

DataCursor::DataCursor(std::int64_t size, std::optional<std::uint64_t> seed, DataPosition start)
    : size_(size), seed_(seed), position_(start) {
  require_input(size >= 1 && size <= UINT32_MAX, "data of ", size, " examples cannot be walked");
  require_input(start.epoch >= 0 && start.index >= 0 && start.index < size,
                "the run is at example ", start.index, " of epoch ", start.epoch,
                ", and the data have ", size, " examples: they are not those that it began with");
  order_ = epoch_order(size_, seed_, position_.epoch);
}

std::vector<std::int64_t> DataCursor::take(std::int64_t count) {
  const std::int64_t taken = std::min(std::max<std::int64_t>(count, 1), size_ - position_.index);
  const auto begin = order_.begin() + position_.index;
  std::vector<std::int64_t> result(begin, begin + taken);
  position_.index += taken;
  if (position_.index == size_) {
    position_ = {position_.epoch + 1, 0};
    order_ = epoch_order(size_, seed_, position_.epoch);
  }
  return result;
}

double DataCursor::epochs() const {
  return static_cast<double>(position_.epoch) +
         static_cast<double>(position_.index) / static_cast<double>(size_);
}

bool is_held_out(std::string_view prompt, std::int64_t parts) {
  constexpr std::size_t digits = 8;
  constexpr int base = 16;
  const std::string hash = ContentHash().add(prompt).hex().substr(0, digits);
  const auto number = std::strtoull(hash.c_str(), nullptr, base);
  return number % static_cast<std::uint64_t>(parts) == 0;
}

}  // namespace onset
