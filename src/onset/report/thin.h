// A matrix of magnitudes made small enough for a picture. Cells are maxima over blocks, never
// samples: a massive activation is one entry among millions, and a stride would step over it.
// Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onset {

// Indices [begin, end).
struct Block {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const Block&, const Block&) = default;
};

// Divides [0, count) into consecutive blocks of (nearly) one size, at most `most` of them. Each
// index in `alone` gets a block of its own, so that a massive token does not swallow its
// neighbours; those come on top of `most`. Indices outside [0, count) are ignored.
[[nodiscard]] std::vector<Block> divide_evenly(std::int64_t count, std::int64_t most,
                                               std::span<const std::int64_t> alone = {});

// Maxima of |x| over blocks of rows x blocks of columns, and where in the block each one lies.
struct BlockMaxima {
  struct Cell {
    float value = 0;  // |x|
    std::int64_t row = 0;
    std::int64_t column = 0;
  };

  BlockMaxima() = default;
  // Without any data yet: zeros at each block's first entry.
  BlockMaxima(std::vector<Block> row_blocks, std::vector<Block> column_blocks);

  // Takes in rows [first_row, ...) of the matrix, row-major and as wide as the column blocks
  // together. Rows may come in any order and portion; ties stay with the earlier one.
  void take(std::int64_t first_row, std::span<const float> values);

  [[nodiscard]] const Cell& at(std::size_t row_block, std::size_t column_block) const {
    return cells[row_block * columns.size() + column_block];
  }
  // Does every cell stand for one entry?
  [[nodiscard]] bool exact() const;

  std::vector<Block> rows;
  std::vector<Block> columns;
  std::vector<Cell> cells;  // rows.size() * columns.size(), row-major
};

// The whole matrix [count, width] at once.
[[nodiscard]] BlockMaxima block_maxima(std::span<const float> values, std::vector<Block> rows,
                                       std::vector<Block> columns);

// The largest cell of each row; empty where a block covers several rows.
[[nodiscard]] std::vector<float> row_maxima(const BlockMaxima& maxima);

}  // namespace onset
