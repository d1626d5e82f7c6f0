// Rows of a matrix shared among threads, in panels that stay in the second-level cache while they
// are multiplied.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

namespace onset {

// Rows of that many bytes in a panel: as many panels to each thread, as far as the rows go.
[[nodiscard]] inline std::int64_t panel_rows(std::int64_t all_rows, std::int64_t row_bytes) {
  constexpr std::int64_t panel_bytes = std::int64_t{512} << 10;
  constexpr std::int64_t fewest = 16;
  constexpr std::int64_t most = 128;
  const auto up = [](std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step * step;
  };
  const std::int64_t fitting = std::clamp(panel_bytes / row_bytes / 16 * 16, fewest, most);
  const std::int64_t panels = up((all_rows + fitting - 1) / fitting, at::get_num_threads());
  return std::clamp(up((all_rows + panels - 1) / panels, fewest), fewest, fitting);
}

// Calls visit(first, count) for every panel of rows, on all threads.
template <typename Visit>
void for_each_panel(std::int64_t all_rows, std::int64_t row_bytes, const Visit& visit) {
  if (all_rows == 0) return;
  const std::int64_t rows = panel_rows(all_rows, row_bytes);
  const std::int64_t panels = (all_rows + rows - 1) / rows;
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t first = panel * rows;
      visit(first, std::min(rows, all_rows - first));
    }
  });
}

}  // namespace onset
