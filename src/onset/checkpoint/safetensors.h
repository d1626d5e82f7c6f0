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
  std::vector<TensorInfo> tensors;  // TensorInfo::file is 0
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

// Writes tensors one after the other with little memory, the header last. Each tensor goes to disk
// as it is added; the file gets its name at commit().
class SafetensorsWriter {
 public:
  // The data of tensors is spooled to a temporary file in the same folder, since the header, whose
  // length is known at the end only, stands before it.
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
