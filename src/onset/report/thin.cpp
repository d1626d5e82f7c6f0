#include "onset/report/thin.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace onset {
namespace {

// Blocks over [begin, end) of `size` entries; the last may be shorter.
void append_blocks(std::vector<Block>& blocks, std::int64_t begin, std::int64_t end,
                   std::int64_t size) {
  for (; begin < end; begin += size) blocks.push_back({begin, std::min(begin + size, end)});
}

std::int64_t ceil_divide(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace

std::vector<Block> divide_evenly(std::int64_t count, std::int64_t most,
                                 std::span<const std::int64_t> alone) {
  std::vector<std::int64_t> cuts;
  for (const std::int64_t index : alone) {
    if (index >= 0 && index < count) cuts.push_back(index);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  // The stretches between the lone indices; the block size is the smallest with few enough blocks,
  // where each stretch may end with a short one.
  std::vector<Block> stretches;
  std::int64_t begin = 0;
  for (const std::int64_t cut : cuts) {
    stretches.push_back({begin, cut});
    begin = cut + 1;
  }
  stretches.push_back({begin, count});
  const auto blocks_of = [&](std::int64_t size) {
    std::int64_t blocks = 0;
    for (const Block& stretch : stretches) blocks += ceil_divide(stretch.size(), size);
    return blocks;
  };
  const auto nonempty = std::count_if(stretches.begin(), stretches.end(),
                                      [](const Block& stretch) { return stretch.size() > 0; });
  const auto limit = std::max<std::int64_t>({most, nonempty, 1});
  auto size = std::max<std::int64_t>(1, ceil_divide(count, limit));
  while (blocks_of(size) > limit) ++size;

  std::vector<Block> blocks;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    append_blocks(blocks, stretches[i].begin, stretches[i].end, size);
    if (i < cuts.size()) blocks.push_back({cuts[i], cuts[i] + 1});
  }
  return blocks;
}

BlockMaxima::BlockMaxima(std::vector<Block> row_blocks, std::vector<Block> column_blocks)
    : rows(std::move(row_blocks)), columns(std::move(column_blocks)) {
  cells.reserve(rows.size() * columns.size());
  for (const Block& row : rows) {
    for (const Block& column : columns) cells.push_back({0, row.begin, column.begin});
  }
}

void BlockMaxima::take(std::int64_t first_row, std::span<const float> values) {
  if (rows.empty() || columns.empty()) return;
  const std::int64_t width = columns.back().end;
  const std::int64_t end_row = first_row + static_cast<std::int64_t>(values.size()) / width;
  auto block = std::partition_point(rows.begin(), rows.end(),
                                    [&](const Block& b) { return b.end <= first_row; });
  for (std::int64_t row = first_row; row < end_row && block != rows.end(); ++row) {
    if (row >= block->end) ++block;
    if (block == rows.end()) return;
    const float* entries = values.data() + (row - first_row) * width;
    Cell* cell = cells.data() + static_cast<std::size_t>(block - rows.begin()) * columns.size();
    for (const Block& column : columns) {
      for (std::int64_t c = column.begin; c < column.end; ++c) {
        const float size = std::fabs(entries[c]);
        if (size > cell->value) *cell = {size, row, c};
      }
      ++cell;
    }
  }
}

bool BlockMaxima::exact() const {
  const auto single = [](const Block& block) { return block.size() == 1; };
  return std::all_of(rows.begin(), rows.end(), single) &&
         std::all_of(columns.begin(), columns.end(), single);
}

BlockMaxima block_maxima(std::span<const float> values, std::vector<Block> rows,
                         std::vector<Block> columns) {
  BlockMaxima maxima(std::move(rows), std::move(columns));
  maxima.take(0, values);
  return maxima;
}

std::vector<float> row_maxima(const BlockMaxima& maxima) {
  std::vector<float> largest;
  for (std::size_t r = 0; r < maxima.rows.size(); ++r) {
    if (maxima.rows[r].size() != 1) return {};
    float& most = largest.emplace_back(0.0F);
    for (std::size_t c = 0; c < maxima.columns.size(); ++c) {
      most = std::max(most, maxima.at(r, c).value);
    }
  }
  return largest;
}

}  // namespace onset
