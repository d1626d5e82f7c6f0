// GGUF versions 2 and 3: header, metadata and tensor table of one file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"

namespace onset {

// An array of the metadata, kept as a view into the mapped file: a vocabulary of 10^5 strings
// is not copied. Valid as long as a copy of the GgufFile's `file` lives.
class GgufArray {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool holds_strings() const;
  // Decoded copies. Throw an input error when the elements are of another kind.
  [[nodiscard]] std::vector<std::string_view> strings()
      const;                                                 // views into the file, bytes as stored
  [[nodiscard]] std::vector<std::int64_t> integers() const;  // booleans are 0 and 1
  [[nodiscard]] std::vector<double> numbers() const;         // integers too
  // The elements as JSON; bad UTF-8 in strings becomes U+FFFD.
  [[nodiscard]] Json json() const;

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
  // key -> number, string or boolean. Bad UTF-8 in strings becomes U+FFFD.
  Json scalars = Json::object();
  std::map<std::string, GgufArray, std::less<>> arrays;
  std::vector<TensorInfo> tensors;  // in the order of the file; TensorInfo::file is 0
};

// Does the file begin with GGUF's magic number? False for what cannot be read.
[[nodiscard]] bool looks_like_gguf(const std::filesystem::path& path);

// Reads and checks all of a file but the values of its tensors. A part of a split file is read like
// any other, with the tensors of that part. Throws an input error that names the file and the key
// or tensor: version 1, big-endian, truncated, lengths and offsets outside the file, unknown types,
// keys or names given twice, tensors that overlap.
[[nodiscard]] GgufFile read_gguf(const std::filesystem::path& path);

}  // namespace onset
