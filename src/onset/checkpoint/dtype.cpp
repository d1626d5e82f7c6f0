#include "onset/checkpoint/dtype.h"

#include <algorithm>
#include <array>

#include "onset/base/error.h"
#include "onset/checkpoint/convert.h"

namespace onset {
namespace {

struct Row {
  DType type;
  DTypeInfo info;
};

// In the order of the enumeration. Block sizes: ggml-common.h.
constexpr auto rows = std::to_array<Row>({
    {DType::f64, {"F64", 1, 8}},         {DType::f32, {"F32", 1, 4}},
    {DType::f16, {"F16", 1, 2}},         {DType::bf16, {"BF16", 1, 2}},
    {DType::f8_e4m3, {"F8_E4M3", 1, 1}}, {DType::f8_e5m2, {"F8_E5M2", 1, 1}},
    {DType::i64, {"I64", 1, 8}},         {DType::i32, {"I32", 1, 4}},
    {DType::i16, {"I16", 1, 2}},         {DType::i8, {"I8", 1, 1}},
    {DType::u8, {"U8", 1, 1}},           {DType::boolean, {"BOOL", 1, 1}},
    {DType::q4_0, {"Q4_0", 32, 18}},     {DType::q4_1, {"Q4_1", 32, 20}},
    {DType::q5_0, {"Q5_0", 32, 22}},     {DType::q5_1, {"Q5_1", 32, 24}},
    {DType::q8_0, {"Q8_0", 32, 34}},     {DType::q2_k, {"Q2_K", 256, 84}},
    {DType::q3_k, {"Q3_K", 256, 110}},   {DType::q4_k, {"Q4_K", 256, 144}},
    {DType::q5_k, {"Q5_K", 256, 176}},   {DType::q6_k, {"Q6_K", 256, 210}},
    {DType::iq4_nl, {"IQ4_NL", 32, 18}}, {DType::iq4_xs, {"IQ4_XS", 256, 136}},
});

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].type) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enumeration());

convert::Convert conversion(DType type, CpuLevel level) {
  switch (std::min(level, best_cpu_level())) {
    case CpuLevel::avx512:
      return convert::avx512(type);
    case CpuLevel::avx2:
      return convert::avx2(type);
    case CpuLevel::baseline:
      break;
  }
  return convert::baseline(type);
}

}  // namespace

const DTypeInfo& dtype_info(DType type) { return rows.at(static_cast<std::size_t>(type)).info; }

bool is_quantised(DType type) { return dtype_info(type).block_values > 1; }

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const Row& row : rows) {
    if (row.info.block_values == 1 && row.info.name == name) return row.type;
  }
  return std::nullopt;
}

bool converts_to_float32(DType type) { return convert::baseline(type) != nullptr; }

void to_float32(DType type, std::span<const std::byte> bytes, std::span<float> values,
                CpuLevel level) {
  const DTypeInfo& info = dtype_info(type);
  const convert::Convert convert = conversion(type, level);
  require_input(convert != nullptr, "elements of type ", info.name, " are not read as float32");
  const auto block_values = static_cast<std::size_t>(info.block_values);
  const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
  const std::size_t blocks = values.size() / block_values;
  require_input(values.size() % block_values == 0 && bytes.size() % block_bytes == 0 &&
                    bytes.size() / block_bytes == blocks,
                "converting ", info.name, " to float32: ", values.size(), " values do not fit ",
                bytes.size(), " bytes (", block_values, " values take ", block_bytes, " bytes)");
  if (blocks > 0) convert(bytes.data(), values.data(), blocks);
}

}  // namespace onset
