// The formats that few_rows reads, for the files compiled for AVX-512 alone (see
// tile_strips_avx512.h for what that forbids). The layouts of blocks and their arithmetic are those
// of convert_impl.h: a scale is applied and then an offset, each rounded to float32.
//
// A format has blocks of `values` columns in `bytes` bytes. What is common to a block is opened
// once; its groups are then decoded, `vectors` vectors of 16 columns each. Where a weight has 4 or
// 5 bits all it can be in a block is computed first and then looked up.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace onset::few_rows {
namespace {

using U8 = std::uint8_t;

// As what the weights are multiplied: as they are, or rounded to bfloat16.
template <bool bf16>
inline __m512 weight(__m512 value) {
  if constexpr (bf16) {
    const __m256bh halves = _mm512_cvtneps_pbh(value);
    const __m512i wide = _mm512_cvtepu16_epi32(reinterpret_cast<const __m256i&>(halves));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  } else {
    return value;
  }
}

inline __m128i load_16(const U8* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// One float16 in all lanes.
inline __m512 half_everywhere(const U8* at) {
  std::int16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
}

inline __m512 codes_from(int first) {
  const __m512i counts = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_cvtepi32_ps(_mm512_add_epi32(counts, _mm512_set1_epi32(first)));
}

inline __m512 scaled(__m512 codes, __m512 scale) { return _mm512_mul_ps(codes, scale); }
inline __m512 scaled(__m512 codes, __m512 scale, __m512 offset) {
  return _mm512_add_ps(_mm512_mul_ps(codes, scale), offset);
}

inline __m512 signed_codes(__m128i bytes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

inline __m512 lane_everywhere(__m512 values, std::int64_t lane) {
  return _mm512_permutexvar_ps(_mm512_set1_epi32(static_cast<int>(lane)), values);
}

// What sixteen codes can mean, by their low four bits.
inline __m512 looked_up(__m512i codes, __m512 table) { return _mm512_permutexvar_ps(codes, table); }
// The same of thirty-two, the upper sixteen where `fifth` is set.
inline __m512 looked_up(__m512i codes, __mmask16 fifth, __m512 low, __m512 high) {
  return _mm512_mask_permutexvar_ps(_mm512_permutexvar_ps(codes, low), fifth, codes, high);
}

// Sixteen bytes of two nibbles: the low ones, then the high ones.
struct Nibbles {
  __m512i low;  // with bits above the nibble that are not part of it
  __m512i high;
  explicit Nibbles(const U8* at)
      : low(_mm512_cvtepu8_epi32(load_16(at))), high(_mm512_srli_epi32(low, 4)) {}
};

// Thirty-two weights of four bits, the nibbles of sixteen bytes at `at`.
inline void look_up_nibbles(const U8* at, __m512 table, __m512* to) {
  const Nibbles codes(at);
  to[0] = looked_up(codes.low, table);
  to[1] = looked_up(codes.high, table);
}

// Thirty-two weights of five bits: their fifth bits in four bytes at `at`, then the nibbles.
inline void look_up_fives(const U8* at, __m512 low, __m512 high, __m512* to) {
  std::uint16_t fifth[2];  // NOLINT(modernize-avoid-c-arrays)
  std::memcpy(fifth, at, sizeof fifth);
  const Nibbles codes(at + sizeof fifth);
  to[0] = looked_up(codes.low, fifth[0], low, high);
  to[1] = looked_up(codes.high, fifth[1], low, high);
}

// A block of its own, one group.
struct SmallBlock {
  static constexpr std::int64_t values = 32;
  static constexpr int groups = 1;
  static constexpr int vectors = 2;
  using Block = const U8*;
  static Block open(const U8* at) { return at; }
  static std::int64_t column(std::int64_t /*group*/, std::int64_t vector) { return 16 * vector; }
};

template <bool bf16>
struct Q40 : SmallBlock {
  static constexpr std::int64_t bytes = 18;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 table = weight<bf16>(scaled(codes_from(-8), half_everywhere(at)));
    look_up_nibbles(at + 2, table, to);
  }
};

template <bool bf16>
struct Q41 : SmallBlock {
  static constexpr std::int64_t bytes = 20;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 table =
        weight<bf16>(scaled(codes_from(0), half_everywhere(at), half_everywhere(at + 2)));
    look_up_nibbles(at + 4, table, to);
  }
};

template <bool bf16>
struct Q50 : SmallBlock {
  static constexpr std::int64_t bytes = 22;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 scale = half_everywhere(at);
    const __m512 low = weight<bf16>(scaled(codes_from(-16), scale));
    const __m512 high = weight<bf16>(scaled(codes_from(0), scale));
    look_up_fives(at + 2, low, high, to);
  }
};

template <bool bf16>
struct Q51 : SmallBlock {
  static constexpr std::int64_t bytes = 24;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 scale = half_everywhere(at);
    const __m512 offset = half_everywhere(at + 2);
    const __m512 low = weight<bf16>(scaled(codes_from(0), scale, offset));
    const __m512 high = weight<bf16>(scaled(codes_from(16), scale, offset));
    look_up_fives(at + 4, low, high, to);
  }
};

template <bool bf16>
struct Q80 : SmallBlock {
  static constexpr std::int64_t bytes = 34;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 scale = half_everywhere(at);
    to[0] = weight<bf16>(scaled(signed_codes(load_16(at + 2)), scale));
    to[1] = weight<bf16>(scaled(signed_codes(load_16(at + 18)), scale));
  }
};

// Sixteen levels that are not evenly spaced.
inline __m512 iq4_levels() {
  return _mm512_setr_ps(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
}

template <bool bf16>
struct Iq4Nl : SmallBlock {
  static constexpr std::int64_t bytes = 18;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m512 table = weight<bf16>(scaled(iq4_levels(), half_everywhere(at)));
    look_up_nibbles(at + 2, table, to);
  }
};

// Superblocks of 256 in groups of 64.
struct SuperBlock {
  static constexpr std::int64_t values = 256;
  static constexpr int groups = 4;
  static constexpr int vectors = 4;
};

// Twelve bytes hold eight pairs of a 6-bit scale and a 6-bit minimum: to scale 0 .. 7, minimum 0 ..
// 7, each times its factor.
inline __m512 k4_scales(const U8* at) {
  std::uint32_t word[3];  // NOLINT(modernize-avoid-c-arrays)
  std::memcpy(word, at + 4, sizeof word);
  constexpr std::uint32_t six = 0x3f3f3f3fU;
  constexpr std::uint32_t four = 0x0f0f0f0fU;
  constexpr std::uint32_t two = 0x30303030U;
  const std::uint32_t scales_high = (word[2] & four) | (word[0] >> 2U & two);
  const std::uint32_t minima_high = (word[2] >> 4U & four) | (word[1] >> 2U & two);
  const __m128i packed =
      _mm_setr_epi32(static_cast<int>(word[0] & six), static_cast<int>(scales_high),
                     static_cast<int>(word[1] & six), static_cast<int>(minima_high));
  const __m512 factor =
      _mm512_mask_mov_ps(half_everywhere(at), __mmask16{0xff00}, half_everywhere(at + 2));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(packed)), factor);
}

struct K4Block : SuperBlock {
  struct Block {
    const U8* at;
    __m512 scales;
  };
  static Block open(const U8* at) { return {at, k4_scales(at)}; }
  static std::int64_t column(std::int64_t group, std::int64_t vector) {
    return 64 * group + 16 * vector;
  }
  // What the codes from `first` on mean in part 0 .. 7 of the block.
  template <bool bf16>
  static __m512 meanings(const Block& block, std::int64_t part, int first) {
    return weight<bf16>(
        _mm512_sub_ps(scaled(codes_from(first), lane_everywhere(block.scales, part)),
                      lane_everywhere(block.scales, part + 8)));
  }
};

template <bool bf16>
struct Q4K : K4Block {
  static constexpr std::int64_t bytes = 144;
  static void decode(const Block& block, std::int64_t group, __m512* to) {
    const __m512 first = meanings<bf16>(block, 2 * group, 0);
    const __m512 second = meanings<bf16>(block, 2 * group + 1, 0);
    for (std::int64_t i = 0; i < 2; ++i) {
      const Nibbles codes(block.at + 16 + 32 * group + 16 * i);
      to[i] = looked_up(codes.low, first);
      to[2 + i] = looked_up(codes.high, second);
    }
  }
};

template <bool bf16>
struct Q5K : K4Block {
  static constexpr std::int64_t bytes = 176;
  static void decode(const Block& block, std::int64_t group, __m512* to) {
    const __m512 first_low = meanings<bf16>(block, 2 * group, 0);
    const __m512 first_high = meanings<bf16>(block, 2 * group, 16);
    const __m512 second_low = meanings<bf16>(block, 2 * group + 1, 0);
    const __m512 second_high = meanings<bf16>(block, 2 * group + 1, 16);
    for (std::int64_t i = 0; i < 2; ++i) {
      const Nibbles codes(block.at + 48 + 32 * group + 16 * i);
      const __m128i fifth = load_16(block.at + 16 + 16 * i);
      const auto bit = [&](std::int64_t place) {
        return _mm_test_epi8_mask(fifth, _mm_set1_epi8(static_cast<char>(1U << place)));
      };
      to[i] = looked_up(codes.low, bit(2 * group), first_low, first_high);
      to[2 + i] = looked_up(codes.high, bit(2 * group + 1), second_low, second_high);
    }
  }
};

template <bool bf16>
struct Q6K : SuperBlock {
  static constexpr std::int64_t bytes = 210;
  struct Block {
    const U8* at;
    __m512 scales;
  };
  static Block open(const U8* at) {
    return {at, _mm512_mul_ps(signed_codes(load_16(at + 192)), half_everywhere(at + 208))};
  }
  // Groups of 16 lanes of each quarter of a half.
  static std::int64_t column(std::int64_t group, std::int64_t vector) {
    return 128 * (group / 2) + 16 * (group % 2) + 32 * vector;
  }
  static void decode(const Block& block, std::int64_t group, __m512* to) {
    const std::int64_t half = group / 2;
    const std::int64_t side = group % 2;
    const __m128i four = _mm_set1_epi8(0x0f);
    const __m128i two = _mm_set1_epi8(0x30);
    const __m128i a = load_16(block.at + 64 * half + 16 * side);
    const __m128i b = load_16(block.at + 64 * half + 32 + 16 * side);
    const __m128i top = load_16(block.at + 128 + 32 * half + 16 * side);
    const auto joined = [&](__m128i low, __m128i high) {
      const __m128i code = _mm_or_si128(_mm_and_si128(low, four), _mm_and_si128(high, two));
      return signed_codes(_mm_sub_epi8(code, _mm_set1_epi8(32)));
    };
    // Bits shifted in from the neighbouring byte are masked away.
    const __m512 codes[4] = {joined(a, _mm_slli_epi16(top, 4)), joined(b, _mm_slli_epi16(top, 2)),
                             joined(_mm_srli_epi16(a, 4), top),
                             joined(_mm_srli_epi16(b, 4), _mm_srli_epi16(top, 2))};
    for (std::int64_t v = 0; v < 4; ++v) {
      const __m512 scale = lane_everywhere(block.scales, 8 * half + side + 2 * v);
      to[v] = weight<bf16>(scaled(codes[v], scale));
    }
  }
};

// Sixteen plain numbers.
struct PlainBlock {
  static constexpr std::int64_t values = 16;
  static constexpr int groups = 1;
  static constexpr int vectors = 1;
  using Block = const U8*;
  static Block open(const U8* at) { return at; }
  static std::int64_t column(std::int64_t /*group*/, std::int64_t /*vector*/) { return 0; }
};

template <bool bf16>
struct F32 : PlainBlock {
  static constexpr std::int64_t bytes = 64;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    to[0] = weight<bf16>(_mm512_loadu_ps(at));
  }
};

template <bool bf16>
struct F16 : PlainBlock {
  static constexpr std::int64_t bytes = 32;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    to[0] = weight<bf16>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))));
  }
};

struct BF16 : PlainBlock {
  static constexpr std::int64_t bytes = 32;
  static void decode(Block at, std::int64_t /*group*/, __m512* to) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    to[0] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
};

}  // namespace
}  // namespace onset::few_rows
