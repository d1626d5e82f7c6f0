// Checkpoint files made byte by byte, sound or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace onset::testing {

template <typename T>
void append(std::string& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

// A length, the header and `data_bytes` zeros.
inline std::string safetensors(std::string_view header, std::size_t data_bytes) {
  std::string bytes;
  append<std::uint64_t>(bytes, header.size());
  bytes += header;
  bytes.append(data_bytes, '\0');
  return bytes;
}

// One float32 tensor of two elements a name.
inline std::string small_safetensors(const std::vector<std::string>& names) {
  std::string header = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) header += ",";
    header += "\"" + names[i] + R"(":{"dtype":"F32","shape":[2],"data_offsets":[)" +
              std::to_string(8 * i) + "," + std::to_string(8 * i + 8) + "]}";
  }
  return safetensors(header + "}", 8 * names.size());
}

// A GGUF file in the order in which it is written: metadata, tensors, data.
class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  GgufBuilder& entry(std::string_view key, std::uint32_t type, std::string_view value) {
    append_string(entries_, key);
    append<std::uint32_t>(entries_, type);
    entries_ += value;
    ++entry_count_;
    return *this;
  }
  template <typename T>
  GgufBuilder& number(std::string_view key, std::uint32_t type, T value) {
    std::string bytes;
    append(bytes, value);
    return entry(key, type, bytes);
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    std::string bytes;
    append_string(bytes, value);
    return entry(key, 8, bytes);
  }
  GgufBuilder& array(std::string_view key, std::uint32_t type, std::uint64_t count,
                     std::string_view elements) {
    std::string bytes;
    append(bytes, type);
    append(bytes, count);
    bytes += elements;
    return entry(key, 9, bytes);
  }
  // `sizes` as in the file: fastest dimension first.
  GgufBuilder& tensor(std::string_view name, std::uint32_t type,
                      const std::vector<std::uint64_t>& sizes, std::uint64_t offset) {
    append_string(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) append(tensors_, size);
    append(tensors_, type);
    append(tensors_, offset);
    ++tensor_count_;
    return *this;
  }
  [[nodiscard]] std::string build(std::size_t data_bytes) const {
    std::string bytes = "GGUF";
    append(bytes, version);
    append(bytes, tensor_count_);
    append(bytes, entry_count_);
    bytes += entries_ + tensors_;
    if (tensor_count_ > 0) bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    bytes.append(data_bytes, '\0');
    return bytes;
  }

  static void append_string(std::string& bytes, std::string_view text) {
    append<std::uint64_t>(bytes, text.size());
    bytes += text;
  }

 private:
  std::string entries_;
  std::string tensors_;
  std::uint64_t entry_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

}  // namespace onset::testing
