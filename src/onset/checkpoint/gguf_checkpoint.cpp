// A Checkpoint made of one GGUF file.
#include <utility>

#include "onset/base/error.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/gguf.h"

namespace onset {
namespace {

// Longer arrays are vocabularies; those who need them read them from the file.
constexpr std::size_t max_config_array = 1024;

}  // namespace

Checkpoint open_gguf(const std::filesystem::path& path) {
  GgufFile file = read_gguf(path);
  CheckpointBuilder builder;
  builder.format = CheckpointFormat::gguf;
  builder.path = path;
  builder.config = std::move(file.scalars);
  for (const auto& [key, array] : file.arrays) {
    if (array.size() <= max_config_array) builder.config[key] = array.json();
  }
  builder.tensors = std::move(file.tensors);
  builder.files.push_back(std::move(file.file));
  return std::move(builder).build();
}

}  // namespace onset
