// Inside this room: the numbers that GGUF files use for tensor types and for metadata values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "onset/checkpoint/dtype.h"

namespace onset {

// gguf_type of ggml's gguf.h.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
constexpr std::uint32_t gguf_type_count = 13;

// Bytes of a value; for a string the least it takes (its length), for an array 0.
[[nodiscard]] std::size_t gguf_value_bytes(GgufType type);

// The type of a tensor by its number in the file, or nothing when onset does not read it.
[[nodiscard]] std::optional<DType> dtype_from_ggml(std::uint32_t type);
// "Q4_1", "IQ2_XXS", .., or "number 77" for one that is not known here.
[[nodiscard]] std::string ggml_type_name(std::uint32_t type);
// All types that are read, "F32, F16, ..", for messages.
[[nodiscard]] std::string readable_ggml_types();

}  // namespace onset
