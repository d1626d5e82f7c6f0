// Inside this room: what the readers of both formats share, and the way they make a Checkpoint.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/checkpoint/checkpoint.h"

namespace onset {

struct CheckpointBuilder {
  CheckpointFormat format = CheckpointFormat::safetensors;
  std::filesystem::path path;
  std::vector<MappedFile> files;
  std::vector<TensorInfo> tensors;  // in any order; names are unique
  Json config = Json::object();
  Json generation_config = Json::object();

  [[nodiscard]] Checkpoint build() &&;
};

// A folder in Hugging Face layout.
[[nodiscard]] Checkpoint open_hf_folder(const std::filesystem::path& folder);
// A GGUF file, or all parts of a split one given any of them.
[[nodiscard]] Checkpoint open_gguf(const std::filesystem::path& path);

// Elements of a shape, or nothing when a dimension is negative or the product leaves int64.
[[nodiscard]] std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> shape);
// Bytes of so many elements, or nothing when they leave int64 or are no whole number of blocks.
[[nodiscard]] std::optional<std::uint64_t> checked_bytes(DType type, std::int64_t elements);

}  // namespace onset
