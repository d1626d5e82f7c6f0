#include "onset/checkpoint/gguf_types.h"

#include <algorithm>
#include <array>

namespace onset {
namespace {

struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  std::optional<DType> dtype = std::nullopt;
};

// ggml_type of ggml.h; the gaps are types that were removed there.
constexpr auto ggml_types = std::to_array<GgmlType>({
    {0, "F32", DType::f32},
    {1, "F16", DType::f16},
    {2, "Q4_0", DType::q4_0},
    {3, "Q4_1", DType::q4_1},
    {4, "Q4_2 (removed from GGUF)"},
    {5, "Q4_3 (removed from GGUF)"},
    {6, "Q5_0", DType::q5_0},
    {7, "Q5_1", DType::q5_1},
    {8, "Q8_0", DType::q8_0},
    {9, "Q8_1"},
    {10, "Q2_K", DType::q2_k},
    {11, "Q3_K", DType::q3_k},
    {12, "Q4_K", DType::q4_k},
    {13, "Q5_K", DType::q5_k},
    {14, "Q6_K", DType::q6_k},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {20, "IQ4_NL", DType::iq4_nl},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {23, "IQ4_XS", DType::iq4_xs},
    {24, "I8", DType::i8},
    {25, "I16", DType::i16},
    {26, "I32", DType::i32},
    {27, "I64", DType::i64},
    {28, "F64", DType::f64},
    {29, "IQ1_M"},
    {30, "BF16", DType::bf16},
    {31, "Q4_0_4_4 (removed from GGUF)"},
    {32, "Q4_0_4_8 (removed from GGUF)"},
    {33, "Q4_0_8_8 (removed from GGUF)"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4 (removed from GGUF)"},
    {37, "IQ4_NL_4_8 (removed from GGUF)"},
    {38, "IQ4_NL_8_8 (removed from GGUF)"},
    {39, "MXFP4"},
    {40, "NVFP4"},
});

const GgmlType* find_type(std::uint32_t number) {
  const auto* found = std::find_if(ggml_types.begin(), ggml_types.end(),
                                   [&](const GgmlType& type) { return type.number == number; });
  return found == ggml_types.end() ? nullptr : found;
}

}  // namespace

std::size_t gguf_value_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
    case GgufType::string:
      return 8;
    case GgufType::array:
      break;
  }
  return 0;
}

std::optional<DType> dtype_from_ggml(std::uint32_t type) {
  const GgmlType* found = find_type(type);
  return found == nullptr ? std::nullopt : found->dtype;
}

std::string ggml_type_name(std::uint32_t type) {
  const GgmlType* found = find_type(type);
  return found == nullptr ? "number " + std::to_string(type) : std::string(found->name);
}

std::string readable_ggml_types() {
  std::string result;
  for (const GgmlType& type : ggml_types) {
    if (!type.dtype) continue;
    if (!result.empty()) result += ", ";
    result += type.name;
  }
  return result;
}

}  // namespace onset
