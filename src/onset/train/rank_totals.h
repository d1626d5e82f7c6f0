// What micro-batches of all ranks add up to.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

#include "onset/base/ranks.h"

namespace onset {

// The totals of all ranks, merged by += in the order of the ranks, on each of them.
template <class Totals>
[[nodiscard]] Totals merged(const Totals& mine, const Ranks& ranks) {
  static_assert(std::is_trivially_copyable_v<Totals>);
  if (ranks.count() == 1) return mine;
  std::string bytes(sizeof(Totals), '\0');
  std::memcpy(bytes.data(), &mine, sizeof(Totals));
  Totals all;
  for (const std::string& one : ranks.gather(bytes)) {
    Totals totals;
    std::memcpy(&totals, one.data(), sizeof(Totals));
    all += totals;
  }
  return all;
}

}  // namespace onset
