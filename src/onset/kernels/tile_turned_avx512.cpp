// What turns and rounds matrices for the products of tile_product.h, compiled for AVX-512; called
// only where the CPU has it.
#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

// Values [first, first + 16) of a row as 16 numbers in 32 bits: float32, or bfloat16 in the lower
// halves. Those past the end are zero, as is a row that is not there.
inline __m512i values_of(const MatrixPart& part, std::int64_t row, std::int64_t first) {
  if (row >= part.rows) return _mm512_setzero_si512();
  const __mmask16 some = first_lanes(part.columns - first);
  const std::int64_t at = row * part.stride + first;
  if (part.is_bf16) {
    const auto* from = static_cast<const std::uint16_t*>(part.values) + at;
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from));
  }
  return _mm512_castps_si512(
      _mm512_maskz_loadu_ps(some, static_cast<const float*>(part.values) + at));
}

inline __m512 f32_row(const MatrixPart& part, std::int64_t row, std::int64_t first) {
  const __m512i values = values_of(part, row, first);
  return _mm512_castsi512_ps(part.is_bf16 ? _mm512_slli_epi32(values, 16) : values);
}

// Rows `row` and the next in words: the first in the lower halves.
inline __m512 bf16_pair(const MatrixPart& part, std::int64_t row, std::int64_t first) {
  const __m512i even = values_of(part, row, first);
  const __m512i odd = values_of(part, row + 1, first);
  if (part.is_bf16) return _mm512_castsi512_ps(_mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
  const auto rounded = reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_castsi512_ps(odd), _mm512_castsi512_ps(even)));
  // From 16 of the one and 16 of the other to pairs.
  alignas(line_bytes) static constexpr std::uint16_t order[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(order), rounded));
}

template <TileType type>
inline __m512 word_row(const MatrixPart& part, std::int64_t word, std::int64_t first) {
  if constexpr (type == TileType::bf16) {
    return bf16_pair(part, 2 * word, first);
  } else {
    return f32_row(part, word, first);
  }
}

template <TileType type>
std::int64_t words_of(const MatrixPart& part) {
  return type == TileType::bf16 ? (part.rows + 1) / 2 : part.rows;
}

template <TileType type>
void pack_columns(const MatrixPart& part, std::int64_t lanes, float* to) {
  for (std::int64_t word = 0; word < words_of<type>(part); ++word) {
    for (std::int64_t lane = 0; lane < lanes; lane += vector_lanes) {
      _mm512_storeu_ps(to + word * lanes + lane, word_row<type>(part, word, lane));
    }
  }
}

template <TileType type>
void turn(const MatrixPart& part, std::int64_t words, float* to) {
  const std::int64_t filled = words_of<type>(part);
  for (std::int64_t word = 0; word < filled; word += vector_lanes) {
    const __mmask16 some = first_lanes(filled - word);
    for (std::int64_t column = 0; column < part.columns; column += vector_lanes) {
      Block block;
      for (std::int64_t i = 0; i < vector_lanes; ++i) {
        block[i] = word_row<type>(part, word + i, column);
      }
      transpose(block);
      const std::int64_t count = std::min<std::int64_t>(vector_lanes, part.columns - column);
      for (std::int64_t i = 0; i < count; ++i) {
        _mm512_mask_storeu_ps(to + (column + i) * words + word, some, block[i]);
      }
    }
  }
}

}  // namespace

void pack_columns_f32(const MatrixPart& part, std::int64_t lanes, float* to) {
  pack_columns<TileType::f32>(part, lanes, to);
}

void pack_columns_bf16(const MatrixPart& part, std::int64_t lanes, float* to) {
  pack_columns<TileType::bf16>(part, lanes, to);
}

void turn_f32(const MatrixPart& part, std::int64_t words, void* to) {
  turn<TileType::f32>(part, words, static_cast<float*>(to));
}

void turn_bf16(const MatrixPart& part, std::int64_t words, void* to) {
  turn<TileType::bf16>(part, words, static_cast<float*>(to));
}

void take_f32(const MatrixPart& part, std::int64_t words, void* to) {
  auto* words_to = static_cast<float*>(to);
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t word = 0; word < words; word += vector_lanes) {
      _mm512_mask_storeu_ps(words_to + row * words + word, first_lanes(words - word),
                            f32_row(part, row, word));
    }
  }
}

void round_bf16(const MatrixPart& part, std::int64_t words, void* to) {
  auto* words_to = static_cast<float*>(to);
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t word = 0; word < words; word += vector_lanes) {
      const __m512 low = f32_row(part, row, 2 * word);
      const __m512 high = f32_row(part, row, 2 * word + vector_lanes);
      _mm512_mask_storeu_ps(
          words_to + row * words + word, first_lanes(words - word),
          _mm512_castsi512_ps(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low))));
    }
  }
}

}  // namespace onset::tiles
