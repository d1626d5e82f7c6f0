// A model on disk as named tensors: a folder in Hugging Face layout (config.json and safetensors,
// one file or shards with an index) or a GGUF file. Data stays in memory-mapped files; opening
// reads headers only. Everything in a file is checked before use: a checkpoint is untrusted input.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/checkpoint/dtype.h"

namespace onset {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  // Row-major, slowest dimension first: a Linear is [out, in] in both formats (GGUF's own order of
  // dimensions is reversed on reading).
  std::vector<std::int64_t> shape;
  std::size_t file = 0;      // index into Checkpoint::files()
  std::uint64_t offset = 0;  // of the first byte, from the beginning of the file
  std::uint64_t bytes = 0;

  [[nodiscard]] std::int64_t elements() const;
};

// "[576, 1536]", for messages: of a shape with more than eight dimensions the first eight.
[[nodiscard]] std::string describe_shape(std::span<const std::int64_t> shape);
// "F32 [576, 1536]", for messages.
[[nodiscard]] std::string describe(const TensorInfo& tensor);

enum class CheckpointFormat { safetensors, gguf };

class Checkpoint {
 public:
  // `path`: a folder with config.json, or a .gguf file (any part of a split one opens all of it).
  // Throws an input error that names the file, what was expected and what was found.
  static Checkpoint open(const std::filesystem::path& path);

  [[nodiscard]] CheckpointFormat format() const { return format_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Shards by name, or the GGUF file; of a split one the parts in order, the first with the
  // metadata.
  [[nodiscard]] const std::vector<MappedFile>& files() const { return files_; }

  // Hugging Face: config.json. GGUF: the metadata as one flat object of its keys
  // ("llama.block_count"); numbers, strings, booleans. Arrays of more than 1,024 elements (the
  // vocabulary) are left out and read through read_gguf() (gguf.h).
  [[nodiscard]] const Json& config() const { return config_; }
  // Hugging Face: generation_config.json, an empty object where there is none. GGUF: empty.
  [[nodiscard]] const Json& generation_config() const { return generation_config_; }

  // Sorted by name.
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // nullptr when absent.
  [[nodiscard]] const TensorInfo* find(const std::string& name) const;
  // Throws an input error naming the checkpoint and the nearest names when absent.
  [[nodiscard]] const TensorInfo& require(const std::string& name) const;
  [[nodiscard]] std::span<const std::byte> data(const TensorInfo& tensor) const;

  // Reading ahead and dropping behind, for streaming.
  void will_need(const TensorInfo& tensor) const;
  void drop(const TensorInfo& tensor) const;
  // The same of a part of a tensor's data.
  void will_need(std::span<const std::byte> part) const;
  void drop(std::span<const std::byte> part) const;

 private:
  CheckpointFormat format_ = CheckpointFormat::safetensors;
  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  std::vector<TensorInfo> tensors_;
  Json config_ = Json::object();
  Json generation_config_ = Json::object();

  friend struct CheckpointBuilder;
};

}  // namespace onset
