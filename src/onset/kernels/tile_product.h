// Products of packed rows of x with rows of weights that are read where they lie. Torch-free.
//
// Written for what no library in libtorch offers: weights that are multiplied straight from mapped
// memory or from a converted panel, without a copy in a layout of the library's own, which costs
// more than the product where few rows of x meet a weight (experts, batches of decoding); and sums
// of float32 in chains of 192 terms (`tile_depth`), since one large term early in a long chain
// costs all that follow their last digits: what massive activations do to products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace onset {

// Terms that are added before a sum is put aside. A bfloat16 term is the sum of two products.
inline constexpr std::int64_t tile_depth = 192;

enum class TileType { f32, bf16 };

// Whether this CPU runs the kernels: AVX-512 (F, BW, VL, DQ), for bf16 also AVX-512 BF16.
[[nodiscard]] bool has_tiles(TileType type);

// Rows of x that are multiplied side by side: lanes, in vectors of 16.
struct TileBlock {
  std::int64_t first = 0;  // row of x
  std::int64_t rows = 0;
  std::int64_t lanes = 0;  // 16, 32 or 48; those past `rows` are zero
};

// Some rows of a matrix, float32 or bfloat16, each of `columns` values side by side.
struct MatrixPart {
  const void* values = nullptr;
  bool is_bf16 = false;
  std::int64_t stride = 0;  // values from a row to the next
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// x [n, columns] in the order the kernels read it: block by block, in a block one column (f32) or
// two (bf16) of all lanes after the other. All blocks have 32 lanes, but for the first, which has
// 48 where that saves a block of 16, and a single one of 16.
class TileRows {
 public:
  // bf16: pack() wants an even number of columns.
  TileRows(TileType type, std::int64_t n, std::int64_t columns);

  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] TileBlock block(std::int64_t b) const;
  // Fills block b from x, float32 and contiguous; bf16 rounds to nearest even. Blocks may be filled
  // on several threads at a time.
  void pack(const float* x, std::int64_t b);
  // Fills the columns [first, first + part.rows) of all blocks from rows of the transpose of x,
  // [columns, n]. bf16: `first` must be even, and part.rows too but for the last columns.
  void pack_columns(const MatrixPart& part, std::int64_t first);

  [[nodiscard]] TileType type() const { return type_; }
  [[nodiscard]] std::int64_t rows() const { return n_; }
  [[nodiscard]] std::int64_t words() const { return words_; }
  [[nodiscard]] const float* packed(const TileBlock& block) const {
    return packed_.get() + block.first * words_;
  }

 private:
  TileType type_;
  std::int64_t n_;
  std::int64_t words_;  // 32-bit words of a row
  std::int64_t blocks_;
  std::int64_t first_lanes_;
  std::unique_ptr<float[]> packed_;  // NOLINT(modernize-avoid-c-arrays): not initialised
};

// A further product in float32, added while the sums still lie in the cache: rows [count, words]
// times an x of as many rows as the first. For the low-rank change of a weight.
struct TileAddend {
  const TileRows* x = nullptr;  // none: nothing is added
  const float* rows = nullptr;
};

// Rows [count, columns] of weights, contiguous: float32, or bfloat16 where x was packed as bf16.
struct TileWeights {
  const void* rows = nullptr;
  std::int64_t count = 0;
  // What will be read after this product; brought towards the cache meanwhile. May be empty.
  std::span<const std::byte> next = {};
  TileAddend more = {};
};

// Words [first, first + count) of the rows of x; count 0: all.
struct TileWords {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// out[i, r] = sum_c x[i, c] rows[r, c] and what `more` adds, a row of `out` out_stride values
// behind the one before it. Runs on the calling thread; several may call it at a time. has_tiles()
// must hold.
void multiply_tiles(const TileRows& x, const TileWeights& weights, float* out,
                    std::int64_t out_stride);

// The transpose of that, out[r, i], written or (`add`) added to what is there; of some words alone,
// which are then all that the weights have.
void multiply_tiles_turned(const TileRows& x, const TileWeights& weights, float* out,
                           std::int64_t out_stride, bool add, const TileWords& words = {});

// out[r, c] += sum_n weights[r, n] x[n, c], all float32 and row-major, read as they lie. One chain
// of sums for each call: `words`, of n, should be few.
struct PlainProduct {
  const float* weights = nullptr;
  std::int64_t weight_stride = 0;
  std::int64_t count = 0;  // of r
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t words = 0;
  std::int64_t columns = 0;  // of c
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

void add_product(const PlainProduct& product);

// What the weights of a product are made from. Words as in TileRows: a float32, or two bfloat16
// of which the last may be a zero put behind an odd number.
//
// The transpose of the part, [part.columns, words].
void turn_for_tiles(TileType type, const MatrixPart& part, std::int64_t words, void* to);
// The part itself, [part.rows, words].
void take_for_tiles(TileType type, const MatrixPart& part, std::int64_t words, void* to);

}  // namespace onset
