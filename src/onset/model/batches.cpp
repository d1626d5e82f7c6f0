#include "onset/model/batches.h"

namespace onset {

std::vector<PromptRange> divide(std::span<const std::int64_t> lengths, std::int64_t rows) {
  std::vector<PromptRange> ranges;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (ranges.empty() || sum + lengths[i] > rows) {
      ranges.push_back({i, i});
      sum = 0;
    }
    sum += lengths[i];
    ranges.back().end = i + 1;
  }
  return ranges;
}

}  // namespace onset
