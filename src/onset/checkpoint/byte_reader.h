// Inside this room: little-endian values read one after the other from bytes that are not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "onset/base/error.h"

namespace onset {

class ByteReader {
 public:
  // `where` names the file in messages.
  ByteReader(std::span<const std::byte> bytes, std::string where)
      : bytes_(bytes), where_(std::move(where)) {}

  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - at_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  // `what` says what is read, for the message when the bytes end.
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      throw input_error(str_cat(where_, ": truncated or damaged: ", what, " at byte ", at_,
                                " takes ", count, " bytes, ", remaining(), " are left"),
                        "the file is incomplete; copy or download it again");
    }
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  template <typename T>
  T read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    const auto taken = take(sizeof(T), what);
    T value{};
    std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }

  // A 64-bit length and as many bytes.
  std::string_view read_string(std::string_view what) {
    const auto length = read<std::uint64_t>(what);
    const auto taken = take(length, what);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace onset
