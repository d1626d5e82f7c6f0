// Conversions of stored numbers to float32, inside this room: one table for each instruction set.
// convert_impl.h is compiled once into each of convert_baseline.cpp, convert_avx2.cpp and
// convert_avx512.cpp, which differ in their compiler flags alone.
#pragma once

#include <cstddef>

#include "onset/checkpoint/dtype.h"

namespace onset::convert {

// Decodes `blocks` blocks. Neither pointer needs alignment beyond its own type.
using Convert = void (*)(const std::byte* bytes, float* values, std::size_t blocks);

// nullptr for types that do not convert.
[[nodiscard]] Convert baseline(DType type);
[[nodiscard]] Convert avx2(DType type);
[[nodiscard]] Convert avx512(DType type);

}  // namespace onset::convert
