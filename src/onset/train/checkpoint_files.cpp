#include "onset/train/checkpoint_files.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/checkpoint/run_checkpoints.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

// A part is given back when it is hashed: a checkpoint may be larger than the memory.
constexpr std::size_t bytes_at_once = std::size_t{64} << 20U;

std::string hash_of(const fs::path& path) {
  const MappedFile file = MappedFile::open(path);
  const auto bytes = file.bytes();
  ContentHash hash;
  for (std::size_t at = 0; at < bytes.size(); at += bytes_at_once) {
    const std::size_t size = std::min(bytes_at_once, bytes.size() - at);
    file.will_need(at, size);
    hash.add(bytes.subspan(at, size));
    file.drop(at, size);
  }
  return hash.hex();
}

}  // namespace

OrderedJson describe_files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  OrderedJson files = OrderedJson::object();
  for (const fs::path& path : paths) {
    files[path.lexically_relative(folder).generic_string()] = {{"bytes", fs::file_size(path)},
                                                               {"hash", hash_of(path)}};
  }
  return files;
}

void check_files(const fs::path& checkpoint, const OrderedJson& files) {
  for (const auto& [name, described] : files.items()) {
    const fs::path path = checkpoint / name;
    std::error_code error;
    const bool is_there = fs::is_regular_file(path, error);
    const bool same = is_there && described.is_object() &&
                      described.value("bytes", OrderedJson()) == fs::file_size(path) &&
                      described.value("hash", OrderedJson()) == hash_of(path);
    if (same) continue;
    throw input_error(
        str_cat(path.string(), is_there ? ": is not what was saved: the file was changed or damaged"
                                        : ": is missing, and was saved with the checkpoint"),
        earlier_checkpoint_hint(checkpoint));
  }
}

std::string earlier_checkpoint_hint(const fs::path& checkpoint) {
  const fs::path folder = checkpoint.has_filename() ? checkpoint : checkpoint.parent_path();
  const auto all = list_checkpoints(folder.has_parent_path() ? folder.parent_path() : ".");
  const auto here = std::find_if(all.begin(), all.end(), [&](const CheckpointFolder& found) {
    return found.path.filename() == folder.filename();
  });
  if (here != all.end() && here != all.begin()) {
    return str_cat("go on from the checkpoint before it: --resume-from-checkpoint ",
                   (folder.parent_path() / std::prev(here)->path.filename()).string());
  }
  return "there is no checkpoint before it to go on from: begin the run anew in another folder";
}

}  // namespace onset
