// What the conversions are made of: float16, and sixteen numbers at a time. Included by
// convert_impl.h alone, under the rules that stand there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#pragma GCC diagnostic push
#if !defined(__clang__)
// GCC 12 takes the header's own "undefined" registers for mistakes (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include "onset/checkpoint/convert.h"

namespace onset::convert {
namespace {

using U8 = std::uint8_t;
using I8 = std::int8_t;
using U32 = std::uint32_t;

inline float float_from(U32 bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline U32 bits_of(float value) {
  U32 bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// float16 without F16C, free of branches: the exponent is moved in place by a multiplication,
// subnormals by a subtraction. NaNs come out quiet, as the instruction makes them.
inline float half_to_float(U32 half) {
  const U32 sign = (half & 0x8000U) << 16U;
  const U32 rest = (half & 0x7FFFU) << 17U;
  const U32 normal = bits_of(float_from((rest >> 4U) + (0xE0U << 23U)) * 0x1.0p-112F);
  const U32 subnormal = bits_of(float_from((rest >> 17U) | (126U << 23U)) - 0.5F);
  return float_from(sign | (rest < (1U << 27U) ? subnormal : normal));
}

inline float load_half(const U8* bytes) {
  const U32 half = static_cast<U32>(bytes[0]) | static_cast<U32>(bytes[1]) << 8U;
#if defined(__F16C__)
  return _cvtsh_ss(static_cast<unsigned short>(half));
#else
  return half_to_float(half);
#endif
}

// Sixteen integers to float32, as widest registers; the compilers' own choice here stalls on loads
// that span two stores.
#if defined(__AVX512F__)
struct Floats16 {
  __m512 all;
};
inline Floats16 widen(const I8* q) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
inline void store_scaled(const Floats16& q, float scale, float* values) {
  _mm512_storeu_ps(values, _mm512_mul_ps(q.all, _mm512_set1_ps(scale)));
}
inline void store_scaled(const Floats16& q, float scale, float offset, float* values) {
  const __m512 product = _mm512_mul_ps(q.all, _mm512_set1_ps(scale));
  _mm512_storeu_ps(values, _mm512_add_ps(product, _mm512_set1_ps(offset)));
}
#elif defined(__AVX2__)
struct Floats16 {
  __m256 low;
  __m256 high;
};
inline Floats16 widen(const I8* q) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline void store_scaled(const Floats16& q, float scale, float* values) {
  _mm256_storeu_ps(values, _mm256_mul_ps(q.low, _mm256_set1_ps(scale)));
  _mm256_storeu_ps(values + 8, _mm256_mul_ps(q.high, _mm256_set1_ps(scale)));
}
inline void store_scaled(const Floats16& q, float scale, float offset, float* values) {
  const __m256 low = _mm256_mul_ps(q.low, _mm256_set1_ps(scale));
  const __m256 high = _mm256_mul_ps(q.high, _mm256_set1_ps(scale));
  _mm256_storeu_ps(values, _mm256_add_ps(low, _mm256_set1_ps(offset)));
  _mm256_storeu_ps(values + 8, _mm256_add_ps(high, _mm256_set1_ps(offset)));
}
#else
struct Floats16 {
  float all[16];
};
inline Floats16 widen(const I8* __restrict q) {
  Floats16 result;
  for (std::size_t i = 0; i < 16; ++i) result.all[i] = static_cast<float>(q[i]);
  return result;
}
inline void store_scaled(const Floats16& q, float scale, float* __restrict values) {
  for (std::size_t i = 0; i < 16; ++i) values[i] = q.all[i] * scale;
}
inline void store_scaled(const Floats16& q, float scale, float offset, float* __restrict values) {
  for (std::size_t i = 0; i < 16; ++i) values[i] = q.all[i] * scale + offset;
}
#endif

// values[i] = q[i] * scale
template <std::size_t n>
inline void scaled(const I8* q, float scale, float* values) {
  for (std::size_t i = 0; i < n; i += 16) store_scaled(widen(q + i), scale, values + i);
}

// values[i] = q[i] * scale + offset
template <std::size_t n>
inline void scaled_offset(const I8* q, float scale, float offset, float* values) {
  for (std::size_t i = 0; i < n; i += 16) store_scaled(widen(q + i), scale, offset, values + i);
}

inline I8 signed_minus(unsigned value, int offset) {
  return static_cast<I8>(static_cast<int>(value) - offset);
}

// Sixteen bytes as one register; compilers turn loops over so few into scalar code.
using U8x16 __attribute__((vector_size(16))) = U8;

inline U8x16 load_16(const U8* bytes) {
  U8x16 value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Stores value - zero.
inline void store_16(const U8x16& value, U8 zero, I8* q) {
  const U8x16 difference = value - zero;
  std::memcpy(q, &difference, sizeof difference);
}

}  // namespace
}  // namespace onset::convert
