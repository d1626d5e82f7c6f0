#include "onset/tokenizer/protobuf.h"

#include <bit>

#include "onset/base/error.h"

namespace onset {

void ProtobufReader::fail(std::string_view what) const {
  throw input_error(str_cat(where_, ": is not a protobuf message: ", what));
}

void ProtobufReader::expect(Wire wire, std::string_view name) const {
  if (wire_ != wire) fail(str_cat("field ", field_, " should be ", name));
}

std::uint64_t ProtobufReader::read_varint() {
  constexpr unsigned longest = 10;
  std::uint64_t value = 0;
  for (unsigned i = 0; i < longest; ++i) {
    if (rest_.empty()) fail("a number is cut off");
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if (byte < 0x80) return value;
  }
  fail("a number has more than 10 bytes");
}

std::string_view ProtobufReader::take(std::uint64_t count) {
  if (count > rest_.size()) {
    fail(str_cat("field ", field_, " needs ", count, " bytes, ", rest_.size(), " are left"));
  }
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = read_varint();
  if (key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3) fail(str_cat("field number ", key >> 3));
  field_ = static_cast<std::uint32_t>(key >> 3);
  wire_ = static_cast<Wire>(key & 7U);
  switch (wire_) {
    case Wire::varint:
      integer_ = read_varint();
      return true;
    case Wire::fixed64:
      bytes_ = take(8);
      return true;
    case Wire::bytes:
      bytes_ = take(read_varint());
      return true;
    case Wire::fixed32:
      bytes_ = take(4);
      return true;
  }
  fail(str_cat("wire type ", key & 7U));
}

std::uint64_t ProtobufReader::integer() const {
  expect(Wire::varint, "a number");
  return integer_;
}

float ProtobufReader::number() const {
  expect(Wire::fixed32, "a float");
  std::uint32_t bits = 0;
  for (std::size_t i = 4; i-- > 0;) bits = (bits << 8) | static_cast<unsigned char>(bytes_[i]);
  return std::bit_cast<float>(bits);
}

std::string_view ProtobufReader::bytes() const {
  expect(Wire::bytes, "bytes");
  return bytes_;
}

}  // namespace onset
