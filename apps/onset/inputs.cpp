#include "inputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "output.h"

namespace onset::app {
namespace {

// Device and inode: what two names of one file share.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> regular_file(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

std::optional<FileId> regular_file(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return regular_file(info);
}

// "model-00001-of-00003.gguf" gives "model": all parts of a split file share it. Empty for others.
std::string_view split_stem(std::string_view name) {
  constexpr std::string_view pattern = "-00001-of-00003.gguf";
  if (name.size() <= pattern.size()) return {};
  const auto end = name.substr(name.size() - pattern.size());
  const bool matches =
      std::equal(end.begin(), end.end(), pattern.begin(), [](char found, char wanted) {
        const bool digit = wanted >= '0' && wanted <= '9';
        return digit ? found >= '0' && found <= '9' : found == wanted;
      });
  return matches ? name.substr(0, name.size() - pattern.size()) : std::string_view();
}

// Files that are read beside the one that was named.
bool belongs_to(const std::string& named, const std::string& beside) {
  const auto stem = split_stem(named);
  if (!stem.empty()) return split_stem(beside) == stem;
  // A tokenizer's file brings its folder's other small files along.
  return named.ends_with(".json") && (beside.starts_with("tokenizer") || beside == "config.json" ||
                                      beside == "special_tokens_map.json");
}

bool holds(const std::filesystem::path& model, const FileId& file) {
  if (regular_file(model) == file) return true;
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(model, failed);
  const auto where = folder ? model : (model.has_parent_path() ? model.parent_path() : ".");
  for (std::filesystem::directory_iterator entry(where, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const bool read =
        folder || belongs_to(model.filename().string(), entry->path().filename().string());
    if (read && regular_file(entry->path()) == file) return true;
  }
  return false;
}

// Without links and dots as far as it exists. A name alone is looked up here, as "./name" is.
std::filesystem::path full_path(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
}

}  // namespace

bool same_output(const std::string& a, const std::string& b) {
  if (is_special_file(a)) return false;
  const auto file = regular_file(a);
  return (file && file == regular_file(b)) || full_path(a) == full_path(b);
}

void refuse_overwriting(const std::string& option, const std::string& output,
                        const InputPaths& inputs) {
  if (output.empty() || output == "-") return;
  const auto file = regular_file(output);
  if (!file) return;
  const std::string name = str_cat(option, " ", quote(output));
  for (const auto& model : inputs.models) {
    if (holds(model, *file)) {
      throw usage_error(str_cat(name, " is a file of the model that is read, and would replace it"),
                        "name another file; a result of an earlier run in the model's folder has "
                        "to be removed first");
    }
  }
  for (const auto& path : inputs.files) {
    if (regular_file(path) == *file) {
      throw usage_error(name + " is a file that is read, and would replace it",
                        "name another file");
    }
  }
  struct stat info {};
  if (inputs.standard_input && ::fstat(STDIN_FILENO, &info) == 0 && regular_file(info) == *file) {
    throw usage_error(name + " is the file on standard input, and would replace it",
                      "name another file");
  }
}

}  // namespace onset::app
