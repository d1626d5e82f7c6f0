#include "onset/kernels/tile_product.h"

#include <algorithm>
#include <vector>

#include "onset/base/cpu.h"
#include "onset/kernels/tile_kernels.h"

namespace onset {
namespace {

template <typename Visit>
void for_each_block(const TileRows& x, const TileWeights& weights, const TileWords& words,
                    const Visit& visit) {
  thread_local std::vector<float> sums;
  sums.resize(static_cast<std::size_t>(weights.count * x.block(0).lanes));
  for (std::int64_t b = 0; b < x.blocks(); ++b) {
    const TileBlock at = x.block(b);
    visit(tiles::Product{.x = x.packed(at) + words.first * at.lanes,
                         .x_rows = at.rows,
                         .lanes = at.lanes,
                         .weights = weights.rows,
                         .count = weights.count,
                         .words = words.count > 0 ? words.count : x.words(),
                         .next = b == 0 ? weights.next : std::span<const std::byte>(),
                         .more_x = weights.more.x == nullptr ? nullptr : weights.more.x->packed(at),
                         .more_weights = weights.more.rows,
                         .more_words = weights.more.x == nullptr ? 0 : weights.more.x->words(),
                         .sums = sums.data()},
          at);
  }
}

}  // namespace

bool has_tiles(TileType type) {
  return type == TileType::bf16 ? cpu_has_bf16() : best_cpu_level() == CpuLevel::avx512;
}

TileRows::TileRows(TileType type, std::int64_t n, std::int64_t columns)
    : type_(type), n_(n), words_(type == TileType::bf16 ? (columns + 1) / 2 : columns) {
  const std::int64_t vectors = (n + 15) / 16;
  blocks_ = vectors == 1 ? 1 : vectors / 2;
  first_lanes_ = vectors == 1 ? 16 : 32 + vectors % 2 * 16;
  packed_ =
      std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(vectors * 16 * words_));
}

TileBlock TileRows::block(std::int64_t b) const {
  const std::int64_t first = b == 0 ? 0 : first_lanes_ + (b - 1) * 32;
  const std::int64_t lanes = b == 0 ? first_lanes_ : 32;
  return {.first = first, .rows = std::min(lanes, n_ - first), .lanes = lanes};
}

void TileRows::pack(const float* x, std::int64_t b) {
  const std::int64_t columns = type_ == TileType::bf16 ? 2 * words_ : words_;
  const TileBlock at = block(b);
  const tiles::Source source{
      .x = x + at.first * columns, .rows = at.rows, .columns = columns, .lanes = at.lanes};
  float* to = packed_.get() + at.first * words_;
  type_ == TileType::bf16 ? tiles::pack_bf16(source, to) : tiles::pack_f32(source, to);
}

void TileRows::pack_columns(const MatrixPart& part, std::int64_t first) {
  const bool bf16 = type_ == TileType::bf16;
  const std::int64_t value_bytes = part.is_bf16 ? 2 : 4;
  for (std::int64_t b = 0; b < blocks_; ++b) {
    const TileBlock at = block(b);
    MatrixPart own = part;
    own.values = static_cast<const std::byte*>(part.values) + at.first * value_bytes;
    own.columns = at.rows;
    float* to = packed_.get() + at.first * words_ + (bf16 ? first / 2 : first) * at.lanes;
    bf16 ? tiles::pack_columns_bf16(own, at.lanes, to) : tiles::pack_columns_f32(own, at.lanes, to);
  }
}

void multiply_tiles(const TileRows& x, const TileWeights& weights, float* out,
                    std::int64_t out_stride) {
  for_each_block(x, weights, {}, [&](const tiles::Product& product, const TileBlock& at) {
    float* to = out + at.first * out_stride;
    x.type() == TileType::bf16 ? tiles::multiply_bf16(product, to, out_stride)
                               : tiles::multiply_f32(product, to, out_stride);
  });
}

void multiply_tiles_turned(const TileRows& x, const TileWeights& weights, float* out,
                           std::int64_t out_stride, bool add, const TileWords& words) {
  for_each_block(x, weights, words, [&](const tiles::Product& product, const TileBlock& at) {
    float* to = out + at.first;
    x.type() == TileType::bf16 ? tiles::multiply_turned_bf16(product, to, out_stride, add)
                               : tiles::multiply_turned_f32(product, to, out_stride, add);
  });
}

void add_product(const PlainProduct& product) { tiles::accumulate(product); }

void turn_for_tiles(TileType type, const MatrixPart& part, std::int64_t words, void* to) {
  type == TileType::bf16 ? tiles::turn_bf16(part, words, to) : tiles::turn_f32(part, words, to);
}

void take_for_tiles(TileType type, const MatrixPart& part, std::int64_t words, void* to) {
  type == TileType::bf16 ? tiles::round_bf16(part, words, to) : tiles::take_f32(part, words, to);
}

}  // namespace onset
