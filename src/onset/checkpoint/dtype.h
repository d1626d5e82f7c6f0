// Element types of stored tensors, plain and block-quantised, and their dequantisation to float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "onset/base/cpu.h"

namespace onset {

enum class DType {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
};

struct DTypeInfo {
  std::string_view name;      // "F32", "Q4_1": as safetensors or GGUF write it
  std::int64_t block_values;  // elements in a block; 1 for plain types
  std::int64_t block_bytes;
};

[[nodiscard]] const DTypeInfo& dtype_info(DType type);
[[nodiscard]] bool is_quantised(DType type);
// By safetensors' name ("F32", "BF16", "F8_E4M3", ..), or nothing.
[[nodiscard]] std::optional<DType> dtype_from_safetensors(std::string_view name);

// Can elements of this type be turned into float32 by to_float32 (all floating and quantised
// types)?
[[nodiscard]] bool converts_to_float32(DType type);

// Writes `values.size()` float32 values decoded from `bytes`; bytes.size() must be exactly that
// many elements' worth and the count a multiple of the block. Bit-exact with ggml's reference
// dequantisation (scale and offset applied as separate float32 operations, no fused multiply-add).
// Does not use threads: callers split the work at block borders.
void to_float32(DType type, std::span<const std::byte> bytes, std::span<float> values,
                CpuLevel level = best_cpu_level());

}  // namespace onset
