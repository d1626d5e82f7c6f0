// The safetensors format: reading a header, and writing a file whose tensors are streamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "onset/base/file.h"
#include "onset/checkpoint/checkpoint.h"

namespace onset {

struct SafetensorsFile {
  MappedFile file;
  std::map<std::string, std::string> metadata;  // "__metadata__"
  std::vector<TensorInfo> tensors;              // TensorInfo::file is 0
};

// Checks all of the header: its length, JSON, names, types, shapes, that every tensor's byte range
// has the size of its shape, lies in the file, and that ranges do not overlap or leave holes.
[[nodiscard]] SafetensorsFile read_safetensors(const std::filesystem::path& path);

// Tensors read for tests and small side files.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

// Writes tensors one after the other with little memory, the header last; the file gets its name at
// commit(), and nothing is left behind without one. The data begins at a multiple of 8 bytes and
// keeps the order of add(): the format allows no holes, so where readers want aligned elements, add
// the tensors with larger elements first. Failed writes throw resource errors (disk full).
class SafetensorsWriter {
 public:
  // The temporary file lies in the same folder. Up to 8 MiB of data wait in memory for the header,
  // whose length is known at the end only; more goes to disk as it is added.
  explicit SafetensorsWriter(const std::filesystem::path& path);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Throws an input error for a name used twice or a size that does not fit dtype and shape.
  void add(const std::string& name, DType dtype, std::span<const std::int64_t> shape,
           std::span<const std::byte> data);
  void set_metadata(const std::string& key, const std::string& value);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace onset
