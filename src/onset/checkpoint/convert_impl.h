// The conversions themselves, included once by each convert_<level>.cpp. Everything here has
// internal linkage and calls nothing but memcpy: a shared inline function compiled with AVX-512
// could otherwise be the copy the linker keeps for all. Arithmetic follows ggml-quants.c
// (dequantize_row_*): a scale is applied and then an offset, each rounded to float32.
//
// Quantised blocks are decoded in two steps, both of which compilers turn into vector code: the
// integers into bytes, then groups of them times a scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "onset/checkpoint/convert.h"
#include "onset/checkpoint/convert_vectors.h"

namespace onset::convert {
namespace {

// --- plain types ---

inline void copy_f32(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  std::memcpy(values, bytes, n * sizeof(float));
}

inline void from_f64(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    double value = 0;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    values[i] = static_cast<float>(value);
  }
}

inline void from_f16(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  std::size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 2 * i));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(halves));
  }
#endif
  for (; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, sizeof half);
    values[i] = half_to_float(half);
  }
}

inline void from_bf16(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t top = 0;
    std::memcpy(&top, bytes + 2 * i, sizeof top);
    const U32 bits = static_cast<U32>(top) << 16U;
    std::memcpy(values + i, &bits, sizeof bits);
  }
}

// OCP 8-bit floating point: e5m2 is the upper half of a float16; e4m3 (the "fn" variant) has no
// infinities and one NaN.
inline void from_f8_e5m2(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = half_to_float(static_cast<U32>(bytes[i]) << 8U);
  }
}

inline void from_f8_e4m3(const U8* __restrict bytes, float* __restrict values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const U32 byte = bytes[i];
    const U32 sign = (byte & 0x80U) << 24U;
    const U32 rest = byte & 0x7FU;
    const U32 normal = (rest << 20U) + (120U << 23U);
    const U32 subnormal = bits_of(static_cast<float>(rest) * 0x1.0p-9F);
    const U32 finite = rest < 8 ? subnormal : normal;
    values[i] = float_from(sign | (rest == 0x7FU ? 0x7FC00000U : finite));
  }
}

// --- blocks of 32 ---

// Sixteen low nibbles, then the high ones; `zero` is subtracted.
inline void unpack_nibbles(const U8* bytes, U8 zero, I8* q) {
  const U8x16 nibbles = load_16(bytes);
  store_16(nibbles & 15, zero, q);
  store_16(nibbles >> 4, zero, q + 16);
}

inline void from_q4_0(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 18, values += 32) {
    I8 q[32];
    unpack_nibbles(block + 2, 8, q);
    scaled<32>(q, load_half(block), values);
  }
}

inline void from_q4_1(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 20, values += 32) {
    I8 q[32];
    unpack_nibbles(block + 4, 0, q);
    scaled_offset<32>(q, load_half(block), load_half(block + 2), values);
  }
}

// Sixteen bits as bytes of 0 or 16.
inline U8x16 fifth_bits(const U8* bits) {
  constexpr std::uint64_t every_byte = 0x0101010101010101U;
  const std::uint64_t spread[2] = {bits[0] * every_byte, bits[1] * every_byte};
  constexpr U8x16 place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  U8x16 value;
  std::memcpy(&value, spread, sizeof value);
  return reinterpret_cast<U8x16>((value & place) == place) & 16;
}

// Nibbles and the fifth bits of all 32 values, bit i for value i; `zero` is subtracted.
inline void unpack_q5(const U8* high, const U8* bytes, U8 zero, I8* q) {
  const U8x16 nibbles = load_16(bytes);
  store_16((nibbles & 15) | fifth_bits(high), zero, q);
  store_16((nibbles >> 4) | fifth_bits(high + 2), zero, q + 16);
}

inline void from_q5_0(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 22, values += 32) {
    I8 q[32];
    unpack_q5(block + 2, block + 6, 16, q);
    scaled<32>(q, load_half(block), values);
  }
}

inline void from_q5_1(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 24, values += 32) {
    I8 q[32];
    unpack_q5(block + 4, block + 8, 0, q);
    scaled_offset<32>(q, load_half(block), load_half(block + 2), values);
  }
}

inline void from_q8_0(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 34, values += 32) {
    I8 q[32];
    std::memcpy(q, block + 2, sizeof q);
    scaled<32>(q, load_half(block), values);
  }
}

// The 16 levels of IQ4, by nibble.
inline constexpr I8 iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

inline void unpack_iq4(const U8* __restrict nibbles, I8* __restrict q) {
#if defined(__AVX2__)
  const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(iq4_levels));
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles));
  const __m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm_shuffle_epi8(levels, low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), _mm_shuffle_epi8(levels, high));
#else
  for (std::size_t i = 0; i < 16; ++i) {
    q[i] = iq4_levels[nibbles[i] & 15U];
    q[i + 16] = iq4_levels[nibbles[i] >> 4U];
  }
#endif
}

inline void from_iq4_nl(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 18, values += 32) {
    I8 q[32];
    unpack_iq4(block + 2, q);
    scaled<32>(q, load_half(block), values);
  }
}

// --- superblocks of 256 ---

// Block: scales 16 (4-bit scale, 4-bit minimum), qs 64 (2 bits), d, dmin.
inline void from_q2_k(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 84, values += 256) {
    const float d = load_half(block + 80);
    const float dmin = load_half(block + 82);
    I8 q[256];
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t pair = 0; pair < 4; ++pair) {
        for (std::size_t i = 0; i < 32; ++i) {
          q[128 * half + 32 * pair + i] =
              static_cast<I8>(block[16 + 32 * half + i] >> (2 * pair) & 3U);
        }
      }
    }
    for (std::size_t g = 0; g < 16; ++g) {
      const float scale = d * static_cast<float>(block[g] & 15U);
      const float minimum = dmin * static_cast<float>(block[g] >> 4U);
      scaled_offset<16>(q + 16 * g, scale, -minimum, values + 16 * g);
    }
  }
}

// Twelve bytes hold sixteen 6-bit scales: low nibbles in the first eight, high pairs in the rest.
inline void unpack_q3_scales(const U8* __restrict packed, I8* __restrict scales) {
  for (std::size_t g = 0; g < 16; ++g) {
    const unsigned low = (g < 8 ? packed[g] : packed[g - 8] >> 4U) & 15U;
    const unsigned high = packed[8 + g % 4] >> (2 * (g / 4)) & 3U;
    scales[g] = signed_minus(low | high << 4U, 32);
  }
}

// Block: hmask 32 (third bits), qs 64 (2 bits), scales 12, d.
inline void from_q3_k(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 110, values += 256) {
    const float d = load_half(block + 108);
    I8 scales[16];
    unpack_q3_scales(block + 96, scales);
    I8 q[256];
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t pair = 0; pair < 4; ++pair) {
        for (std::size_t i = 0; i < 32; ++i) {
          const unsigned low = block[32 + 32 * half + i] >> (2 * pair) & 3U;
          const unsigned high = block[i] >> (4 * half + pair) & 1U;
          q[128 * half + 32 * pair + i] = signed_minus(low | high << 2U, 4);
        }
      }
    }
    for (std::size_t g = 0; g < 16; ++g) {
      scaled<16>(q + 16 * g, d * static_cast<float>(scales[g]), values + 16 * g);
    }
  }
}

// Twelve bytes hold eight pairs of a 6-bit scale and a 6-bit minimum (get_scale_min_k4).
inline void unpack_k4_scales(const U8* __restrict packed, U8* __restrict scales,
                             U8* __restrict minima) {
  for (std::size_t g = 0; g < 4; ++g) {
    scales[g] = static_cast<U8>(packed[g] & 63U);
    minima[g] = static_cast<U8>(packed[g + 4] & 63U);
    scales[g + 4] = static_cast<U8>((packed[g + 8] & 15U) | (packed[g] >> 6U) << 4U);
    minima[g + 4] = static_cast<U8>((packed[g + 8] >> 4U) | (packed[g + 4] >> 6U) << 4U);
  }
}

// The second step of Q4_K and Q5_K; `block` begins with d, dmin and the packed scales.
inline void apply_k4_scales(const U8* __restrict block, const I8* __restrict q,
                            float* __restrict values) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  U8 scales[8];
  U8 minima[8];
  unpack_k4_scales(block + 4, scales, minima);
  for (std::size_t g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(scales[g]);
    const float minimum = dmin * static_cast<float>(minima[g]);
    scaled_offset<32>(q + 32 * g, scale, -minimum, values + 32 * g);
  }
}

// Block: d, dmin, scales 12, qs 128 (4 bits).
inline void from_q4_k(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 144, values += 256) {
    I8 q[256];
    for (std::size_t g = 0; g < 4; ++g) {
      for (std::size_t i = 0; i < 32; ++i) {
        q[64 * g + i] = static_cast<I8>(block[16 + 32 * g + i] & 15U);
        q[64 * g + 32 + i] = static_cast<I8>(block[16 + 32 * g + i] >> 4U);
      }
    }
    apply_k4_scales(block, q, values);
  }
}

// Block: d, dmin, scales 12, qh 32 (fifth bits), qs 128 (4 bits).
inline void from_q5_k(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 176, values += 256) {
    I8 q[256];
    for (std::size_t g = 0; g < 4; ++g) {
      for (std::size_t i = 0; i < 32; ++i) {
        const unsigned nibbles = block[48 + 32 * g + i];
        const unsigned high = block[16 + i] >> (2 * g);
        q[64 * g + i] = static_cast<I8>((nibbles & 15U) | (high & 1U) << 4U);
        q[64 * g + 32 + i] = static_cast<I8>(nibbles >> 4U | (high >> 1U & 1U) << 4U);
      }
    }
    apply_k4_scales(block, q, values);
  }
}

// Block: ql 128 (low 4 bits), qh 64 (high 2 bits), scales 16 (int8), d.
inline void from_q6_k(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 210, values += 256) {
    const float d = load_half(block + 208);
    I8 q[256];
    for (std::size_t half = 0; half < 2; ++half) {
      const U8* low = block + 64 * half;
      const U8* high = block + 128 + 32 * half;
      I8* out = q + 128 * half;
      for (std::size_t i = 0; i < 32; ++i) {
        const unsigned top = high[i];
        out[i] = signed_minus((low[i] & 15U) | (top & 3U) << 4U, 32);
        out[i + 32] = signed_minus((low[i + 32] & 15U) | (top >> 2U & 3U) << 4U, 32);
        out[i + 64] = signed_minus(low[i] >> 4U | (top >> 4U & 3U) << 4U, 32);
        out[i + 96] = signed_minus(low[i + 32] >> 4U | (top >> 6U) << 4U, 32);
      }
    }
    for (std::size_t g = 0; g < 16; ++g) {
      const auto scale = static_cast<float>(static_cast<I8>(block[192 + g]));
      scaled<16>(q + 16 * g, d * scale, values + 16 * g);
    }
  }
}

// Block: d, scales_h 2 (high 2 bits of eight scales), scales_l 4 (low 4 bits), qs 128 (4 bits).
inline void from_iq4_xs(const U8* __restrict block, float* __restrict values, std::size_t blocks) {
  for (; blocks > 0; --blocks, block += 136, values += 256) {
    const float d = load_half(block);
    const unsigned high = block[2] | static_cast<unsigned>(block[3]) << 8U;
    for (std::size_t g = 0; g < 8; ++g) {
      const unsigned low = block[4 + g / 2] >> (4 * (g % 2)) & 15U;
      const int scale = static_cast<int>(low | (high >> (2 * g) & 3U) << 4U) - 32;
      I8 q[32];
      unpack_iq4(block + 8 + 16 * g, q);
      scaled<32>(q, d * static_cast<float>(scale), values + 32 * g);
    }
  }
}

template <void (*function)(const U8* __restrict, float* __restrict, std::size_t)>
inline void on_bytes(const std::byte* bytes, float* values, std::size_t blocks) {
  function(reinterpret_cast<const U8*>(bytes), values, blocks);
}

inline Convert choose(DType type) {
  switch (type) {
    case DType::f64:
      return on_bytes<from_f64>;
    case DType::f32:
      return on_bytes<copy_f32>;
    case DType::f16:
      return on_bytes<from_f16>;
    case DType::bf16:
      return on_bytes<from_bf16>;
    case DType::f8_e4m3:
      return on_bytes<from_f8_e4m3>;
    case DType::f8_e5m2:
      return on_bytes<from_f8_e5m2>;
    case DType::q4_0:
      return on_bytes<from_q4_0>;
    case DType::q4_1:
      return on_bytes<from_q4_1>;
    case DType::q5_0:
      return on_bytes<from_q5_0>;
    case DType::q5_1:
      return on_bytes<from_q5_1>;
    case DType::q8_0:
      return on_bytes<from_q8_0>;
    case DType::q2_k:
      return on_bytes<from_q2_k>;
    case DType::q3_k:
      return on_bytes<from_q3_k>;
    case DType::q4_k:
      return on_bytes<from_q4_k>;
    case DType::q5_k:
      return on_bytes<from_q5_k>;
    case DType::q6_k:
      return on_bytes<from_q6_k>;
    case DType::iq4_nl:
      return on_bytes<from_iq4_nl>;
    case DType::iq4_xs:
      return on_bytes<from_iq4_xs>;
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      break;
  }
  return nullptr;
}

}  // namespace
}  // namespace onset::convert
