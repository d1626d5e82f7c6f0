#include "onset/train/report_words.h"

#include <cmath>

#include "onset/base/error.h"

namespace onset {

std::string percent(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t scale = 1000;
  const auto tenths = std::llround(static_cast<double>(part) / static_cast<double>(whole) * scale);
  return str_cat(tenths / 10, ".", tenths % 10);
}

std::string memory_words(std::int64_t bytes) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  if (bytes < 1024 * mib) return str_cat((bytes + mib / 2) / mib, " MiB");
  const std::int64_t tenths = (bytes + 51 * mib) / (1024 * mib / 10);
  return str_cat(tenths / 10, ".", tenths % 10, " GiB");
}

}  // namespace onset
