// The wire format of protocol buffers, as much of it as reading a message needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onset {

// The fields of a message, in the order of the file. Throws an input error "WHERE: ..." when the
// bytes are no message.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view bytes, std::string where)
      : rest_(bytes), where_(std::move(where)) {}

  // Moves to the next field; false at the end.
  bool next();
  [[nodiscard]] std::uint32_t field() const { return field_; }

  // The value of this field; each throws when the file holds another kind.
  [[nodiscard]] std::uint64_t integer() const;
  [[nodiscard]] std::int32_t int32() const { return static_cast<std::int32_t>(integer()); }
  [[nodiscard]] bool boolean() const { return integer() != 0; }
  [[nodiscard]] float number() const;
  [[nodiscard]] std::string_view bytes() const;  // also a string, or a message

 private:
  enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  [[nodiscard]] std::uint64_t read_varint();
  [[nodiscard]] std::string_view take(std::uint64_t count);
  [[noreturn]] void fail(std::string_view what) const;
  void expect(Wire wire, std::string_view name) const;

  std::string_view rest_;
  std::string where_;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t integer_ = 0;
  std::string_view bytes_;
};

}  // namespace onset
