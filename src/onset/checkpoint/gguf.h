// GGUF versions 2 and 3: header, metadata and tensor table of one file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"

namespace onset {

// An array of the metadata, kept as a view into the mapped file: a vocabulary of 10^5 strings
// is not copied.
class GgufArray {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool holds_strings() const;
  // Decoded copies. Throw an input error when the elements are of another kind.
  [[nodiscard]] std::vector<std::string_view> strings() const;  // views into the file
  [[nodiscard]] std::vector<std::int64_t> integers() const;
  [[nodiscard]] std::vector<double> numbers() const;

 private:
  std::string where_;  // "FILE: key", for messages
  std::uint32_t type_ = 0;
  std::size_t size_ = 0;
  std::span<const std::byte> bytes_;  // the elements, already checked to lie in the file

  friend class GgufReader;
};

struct GgufFile {
  MappedFile file;
  std::uint32_t version = 0;
  Json scalars = Json::object();  // key -> number, string or boolean
  std::map<std::string, GgufArray, std::less<>> arrays;
  std::vector<TensorInfo> tensors;
};

[[nodiscard]] bool looks_like_gguf(const std::filesystem::path& path);
[[nodiscard]] GgufFile read_gguf(const std::filesystem::path& path);

}  // namespace onset
