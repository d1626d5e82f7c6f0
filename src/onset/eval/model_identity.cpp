#include "onset/eval/model_identity.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "onset/base/content_hash.h"
#include "onset/base/file.h"
#include "onset/model/model.h"

namespace onset {
namespace {

// A part of a file is read and let go before the next, where the model is streamed.
constexpr std::size_t part_bytes = std::size_t{64} << 20;

void add_file(ContentHash& hash, const MappedFile& file, bool drop) {
  const std::span<const std::byte> bytes = file.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += part_bytes) {
    const std::size_t count = std::min(part_bytes, bytes.size() - at);
    file.will_need(at, count);
    hash.add(bytes.subspan(at, count));
    if (drop) file.drop(at, count);
  }
}

bool is_tokenizer_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".model" || extension == ".txt" ||
         extension == ".bpe" || extension == ".jinja";
}

}  // namespace

std::string model_identity(const Model& model) {
  ContentHash hash;
  const Checkpoint& checkpoint = model.checkpoint();
  const bool streamed = model.options().residency == Residency::streamed;
  for (const MappedFile& file : checkpoint.files()) add_file(hash, file, streamed);
  hash.add(checkpoint.config().dump());
  hash.add(checkpoint.generation_config().dump());
  if (!model.adaptation().is_null()) {
    hash.add(model.adaptation().at("fingerprint").get<std::string>());
  }
  if (!std::filesystem::is_directory(checkpoint.path())) return hash.hex();
  std::vector<std::filesystem::path> beside;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.path())) {
    if (entry.is_regular_file() && is_tokenizer_file(entry.path())) beside.push_back(entry.path());
  }
  std::sort(beside.begin(), beside.end());
  for (const auto& path : beside) {
    hash.add(path.filename().string());
    add_file(hash, MappedFile::open(path), /*drop=*/false);
  }
  return hash.hex();
}

}  // namespace onset
