// Conversions to float32: ggml's reference values, every float16 and bfloat16, and the same bits
// from every instruction set that this CPU has.
#include "onset/checkpoint/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "onset/checkpoint/safetensors.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

constexpr CpuLevel all_levels[] = {CpuLevel::baseline, CpuLevel::avx2, CpuLevel::avx512};

std::vector<CpuLevel> levels_here() {
  std::vector<CpuLevel> levels;
  for (const CpuLevel level : all_levels) {
    if (level <= best_cpu_level()) levels.push_back(level);
  }
  return levels;
}

std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int i = 0; i <= static_cast<int>(DType::iq4_xs); ++i) types.push_back(static_cast<DType>(i));
  return types;
}

std::vector<float> converted(DType type, std::span<const std::byte> bytes, CpuLevel level) {
  const DTypeInfo& info = dtype_info(type);
  const auto blocks = static_cast<std::int64_t>(bytes.size()) / info.block_bytes;
  std::vector<float> values(static_cast<std::size_t>(blocks * info.block_values));
  to_float32(type, bytes, values, level);
  return values;
}

// The first place where the bits differ (any NaN equals any other), as text; empty when none does.
std::string difference(std::span<const float> expected, std::span<const float> found) {
  if (expected.size() != found.size()) return "another number of values";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(found[i])) {
      return str_cat("value ", i, ": expected ", expected[i], ", found ", found[i]);
    }
  }
  return {};
}

const TensorInfo& tensor(const SafetensorsFile& file, const std::string& name) {
  for (const TensorInfo& candidate : file.tensors) {
    if (candidate.name == name) return candidate;
  }
  throw input_error("no reference " + name);
}

class Reference : public ::testing::TestWithParam<DType> {};

TEST_P(Reference, EqualsGgmlBitByBitAtEveryLevel) {
  const auto file =
      read_safetensors(testing::data("models/llama_gguf/dequant_reference.safetensors"));
  const std::string name(dtype_info(GetParam()).name);
  const TensorInfo& stored = tensor(file, name + ".bytes");
  const TensorInfo& expected = tensor(file, name + ".values");
  std::vector<float> values(static_cast<std::size_t>(expected.elements()));
  std::memcpy(values.data(), file.file.bytes().data() + expected.offset, expected.bytes);
  for (const CpuLevel level : levels_here()) {
    const auto found =
        converted(GetParam(), file.file.bytes().subspan(stored.offset, stored.bytes), level);
    EXPECT_EQ(difference(values, found), "") << name << " at level " << static_cast<int>(level);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Reference,
                         ::testing::Values(DType::f16, DType::bf16, DType::q4_0, DType::q4_1,
                                           DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k,
                                           DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k,
                                           DType::iq4_nl, DType::iq4_xs),
                         [](const auto& run) { return std::string(dtype_info(run.param).name); });

// Random bytes make every kind of scale: negative, subnormal, infinite, NaN.
TEST(Levels, GiveTheSameBitsForRandomBytes) {
  std::mt19937_64 random(3);
  for (const DType type : all_types()) {
    if (!converts_to_float32(type)) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(1237 * dtype_info(type).block_bytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const auto expected = converted(type, bytes, CpuLevel::baseline);
    for (const CpuLevel level : levels_here()) {
      EXPECT_EQ(difference(expected, converted(type, bytes, level)), "")
          << dtype_info(type).name << " at level " << static_cast<int>(level);
    }
  }
}

// Short and misaligned pieces reach the scalar ends of vector loops.
TEST(Levels, AgreeOnEveryLengthAndAlignment) {
  std::mt19937_64 random(4);
  for (const DType type : all_types()) {
    if (!converts_to_float32(type)) continue;
    const auto block = static_cast<std::size_t>(dtype_info(type).block_bytes);
    const std::size_t most = is_quantised(type) ? 5 : 70;
    std::vector<std::byte> bytes(most * block + 1);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    for (std::size_t blocks = 0; blocks <= most; ++blocks) {
      const auto piece = std::span(bytes).subspan(blocks % 2, blocks * block);
      const auto expected = converted(type, piece, CpuLevel::baseline);
      for (const CpuLevel level : levels_here()) {
        EXPECT_EQ(difference(expected, converted(type, piece, level)), "");
      }
    }
  }
}

// IEEE 754 binary16 by its definition, from sign, exponent and fraction.
float half_by_definition(unsigned bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10U & 31U);
  const double fraction = bits & 1023U;
  if (exponent == 31) return static_cast<float>(fraction != 0 ? NAN : sign * INFINITY);
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(fraction, -24));
  return static_cast<float>(sign * std::ldexp(1024 + fraction, exponent - 25));
}

TEST(Float16, EveryValueAtEveryLevel) {
  std::vector<std::uint16_t> halves(65536);
  std::vector<float> expected(halves.size());
  for (unsigned i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
    expected[i] = half_by_definition(i);
  }
  for (const CpuLevel level : levels_here()) {
    EXPECT_EQ(difference(expected, converted(DType::f16, std::as_bytes(std::span(halves)), level)),
              "");
  }
}

TEST(BFloat16, EveryValueIsTheUpperHalfOfAFloat) {
  std::vector<std::uint16_t> halves(65536);
  for (unsigned i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const CpuLevel level : levels_here()) {
    const auto found = converted(DType::bf16, std::as_bytes(std::span(halves)), level);
    for (unsigned i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), i << 16U);
    }
  }
}

// OCP 8-bit floating point, table 2: bias 7 and 15, E4M3 without infinities.
TEST(Float8, EveryValueByDefinition) {
  for (unsigned i = 0; i < 256; ++i) {
    const std::byte byte{static_cast<unsigned char>(i)};
    const double sign = i >= 128 ? -1 : 1;
    const int exponent4 = static_cast<int>(i >> 3U & 15U);
    const double fraction3 = i & 7U;
    const double e4m3 = (i & 127U) == 127 ? NAN
                        : exponent4 == 0  ? sign * std::ldexp(fraction3, -9)
                                          : sign * std::ldexp(8 + fraction3, exponent4 - 10);
    const auto expected4 = static_cast<float>(e4m3);
    const float expected5 = half_by_definition(i << 8U);
    for (const CpuLevel level : levels_here()) {
      EXPECT_EQ(difference(std::span(&expected4, 1),
                           converted(DType::f8_e4m3, std::span(&byte, 1), level)),
                "")
          << i;
      EXPECT_EQ(difference(std::span(&expected5, 1),
                           converted(DType::f8_e5m2, std::span(&byte, 1), level)),
                "")
          << i;
    }
  }
}

TEST(Float64, RoundsToTheNearestFloat) {
  const std::vector<double> doubles = {0.0,        -0.0,     0.1,       1.0 / 3, 1e39, -1e39, 1e-46,
                                       16777217.0, INFINITY, -INFINITY, 5e-324,  NAN,  3.5};
  std::vector<float> expected;
  expected.reserve(doubles.size());
  for (const double value : doubles) expected.push_back(static_cast<float>(value));
  for (const CpuLevel level : levels_here()) {
    EXPECT_EQ(difference(expected, converted(DType::f64, std::as_bytes(std::span(doubles)), level)),
              "");
  }
}

TEST(ToFloat32, RefusesSizesThatDoNotFit) {
  std::vector<std::byte> bytes(40);
  std::vector<float> values(64);
  const auto convert = [&](DType type, std::size_t byte_count, std::size_t value_count) {
    return error_of([&] {
      to_float32(type, std::span(bytes).first(byte_count), std::span(values).first(value_count));
    });
  };
  EXPECT_EQ(convert(DType::q4_1, 40, 32),
            "converting Q4_1 to float32: 32 values do not fit 40 bytes (32 values take 20 bytes)");
  EXPECT_EQ(convert(DType::q4_1, 20, 31),
            "converting Q4_1 to float32: 31 values do not fit 20 bytes (32 values take 20 bytes)");
  EXPECT_EQ(convert(DType::f32, 7, 1),
            "converting F32 to float32: 1 values do not fit 7 bytes (1 values take 4 bytes)");
  EXPECT_EQ(convert(DType::i64, 8, 1), "elements of type I64 are not read as float32");
}

TEST(DTypes, NamesLeadBackToTheType) {
  std::set<std::string_view> names;
  for (const DType type : all_types()) {
    const DTypeInfo& info = dtype_info(type);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(dtype_from_safetensors(info.name).has_value(), !is_quantised(type)) << info.name;
    if (!is_quantised(type)) {
      EXPECT_EQ(*dtype_from_safetensors(info.name), type);
    }
  }
  EXPECT_FALSE(dtype_from_safetensors("f32"));
  EXPECT_FALSE(dtype_from_safetensors(""));
}

}  // namespace
}  // namespace onset
