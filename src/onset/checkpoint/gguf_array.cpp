// Arrays of GGUF metadata, decoded on demand from bytes that the reader has checked.
#include <type_traits>
#include <utility>

#include "onset/base/error.h"
#include "onset/checkpoint/byte_reader.h"
#include "onset/checkpoint/gguf.h"
#include "onset/checkpoint/gguf_types.h"

namespace onset {
namespace {

template <typename Stored, typename Value>
std::vector<Value> decode(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<Value> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    Stored stored{};
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = static_cast<Value>(+stored);  // promoted: int8_t is a character type
  }
  return values;
}

// Integers of any width (and booleans) as `Value`, or nothing for other kinds.
template <typename Value>
std::optional<std::vector<Value>> decode_integers(GgufType type, std::span<const std::byte> bytes,
                                                  std::size_t size) {
  switch (type) {
    case GgufType::u8:
    case GgufType::boolean:
      return decode<std::uint8_t, Value>(bytes, size);
    case GgufType::i8:
      return decode<std::int8_t, Value>(bytes, size);
    case GgufType::u16:
      return decode<std::uint16_t, Value>(bytes, size);
    case GgufType::i16:
      return decode<std::int16_t, Value>(bytes, size);
    case GgufType::u32:
      return decode<std::uint32_t, Value>(bytes, size);
    case GgufType::i32:
      return decode<std::int32_t, Value>(bytes, size);
    case GgufType::u64:
      return decode<std::uint64_t, Value>(bytes, size);
    case GgufType::i64:
      return decode<std::int64_t, Value>(bytes, size);
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool GgufArray::holds_strings() const { return static_cast<GgufType>(type_) == GgufType::string; }

std::vector<std::string_view> GgufArray::strings() const {
  require_input(holds_strings(), where_, ": should be an array of strings, is one of numbers");
  ByteReader reader(bytes_, where_);
  std::vector<std::string_view> values;
  values.reserve(size_);
  for (std::size_t i = 0; i < size_; ++i) values.push_back(reader.read_string("a string"));
  return values;
}

std::vector<std::int64_t> GgufArray::integers() const {
  const auto type = static_cast<GgufType>(type_);
  auto values = decode_integers<std::int64_t>(type, bytes_, size_);
  require_input(values.has_value(), where_, ": should be an array of integers, is one of ",
                holds_strings() ? "strings" : "floating-point numbers");
  if (type == GgufType::u64) {
    for (const std::int64_t value : *values) {
      require_input(value >= 0, where_, ": holds a number above 2^63 - 1");
    }
  }
  return std::move(*values);
}

std::vector<double> GgufArray::numbers() const {
  const auto type = static_cast<GgufType>(type_);
  if (type == GgufType::f32) return decode<float, double>(bytes_, size_);
  if (type == GgufType::f64) return decode<double, double>(bytes_, size_);
  auto values = decode_integers<double>(type, bytes_, size_);
  require_input(values.has_value(), where_, ": should be an array of numbers, is one of strings");
  return std::move(*values);
}

Json GgufArray::json() const {
  Json result = Json::array();
  const auto type = static_cast<GgufType>(type_);
  if (holds_strings()) {
    for (const std::string_view text : strings()) result.push_back(valid_utf8(text));
  } else if (type == GgufType::f32 || type == GgufType::f64) {
    for (const double value : numbers()) result.push_back(value);
  } else if (type == GgufType::boolean) {
    for (const std::int64_t value : integers()) result.push_back(value != 0);
  } else if (type == GgufType::u64) {
    for (const std::uint64_t value : decode<std::uint64_t, std::uint64_t>(bytes_, size_)) {
      result.push_back(value);
    }
  } else {
    for (const std::int64_t value : integers()) result.push_back(value);
  }
  return result;
}

}  // namespace onset
