// A Checkpoint made of one GGUF file, or of all parts of a split one.
#include <cstdio>
#include <set>
#include <system_error>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/gguf.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

// Longer arrays are vocabularies; those who need them read them from the file.
constexpr std::size_t max_config_array = 1024;
constexpr std::int64_t max_parts = 99999;  // five digits

// "-00002-of-00003.gguf", as llama.cpp's gguf-split names parts, counted from 1.
std::string part_ending(std::int64_t number, std::int64_t count) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(number),
                      static_cast<long long>(count));
  return text;
}

void add_part(CheckpointBuilder& builder, GgufFile&& part, std::set<std::string>& names) {
  for (TensorInfo& tensor : part.tensors) {
    require_input(names.insert(tensor.name).second, part.file.path().string(), ": tensor ",
                  quote(tensor.name), " is in another part of the model too");
    tensor.file = builder.files.size();
    builder.tensors.push_back(std::move(tensor));
  }
  builder.files.push_back(std::move(part.file));
}

// The metadata of a model is that of its first part.
void set_config(CheckpointBuilder& builder, GgufFile& part) {
  builder.config = std::move(part.scalars);
  for (const auto& [key, array] : part.arrays) {
    if (array.size() <= max_config_array) builder.config[key] = array.json();
  }
}

GgufFile read_part(const fs::path& path, std::int64_t number, std::int64_t count) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw input_error(
        str_cat(path.string(), ": is missing: it is part ", number, " of ", count, " of the model"),
        "copy or download the missing part into the same folder");
  }
  GgufFile part = read_gguf(path);
  const std::string where = path.string();
  const std::int64_t found_count = find_int(part.scalars, "split.count", where).value_or(1);
  const std::int64_t found_index = find_int(part.scalars, "split.no", where).value_or(0);
  require_input(found_count == count && found_index == number - 1, where, ": expected part ",
                number, " of ", count, ", says it is part ", found_index, " (from 0) of ",
                found_count);
  return part;
}

void add_all_parts(CheckpointBuilder& builder, const GgufFile& any, std::int64_t count) {
  const std::string where = builder.path.string();
  require_input(count <= max_parts, where, ": split.count ", count, " is more than ", max_parts);
  const std::int64_t index = find_int(any.scalars, "split.no", where).value_or(0);
  require_input(index >= 0 && index < count, where, ": split.no ", index, " should be from 0 to ",
                count - 1);
  const std::string ending = part_ending(index + 1, count);
  if (!where.ends_with(ending)) {
    throw input_error(str_cat(where, ": is part ", index + 1, " of ", count,
                              " of a split model: expected a name that ends in ", ending),
                      "give the parts the names they were made with");
  }
  const std::string prefix = where.substr(0, where.size() - ending.size());
  std::set<std::string> names;
  for (std::int64_t number = 1; number <= count; ++number) {
    GgufFile part = read_part(prefix + part_ending(number, count), number, count);
    if (number == 1) set_config(builder, part);
    add_part(builder, std::move(part), names);
  }
  const auto total = find_int(builder.config, "split.tensors.count", where);
  require_input(!total || *total == static_cast<std::int64_t>(builder.tensors.size()), where,
                ": the parts should hold ", total.value_or(0), " tensors, found ",
                builder.tensors.size());
}

}  // namespace

Checkpoint open_gguf(const fs::path& path) {
  GgufFile file = read_gguf(path);
  CheckpointBuilder builder;
  builder.format = CheckpointFormat::gguf;
  builder.path = path;
  const std::int64_t count = find_int(file.scalars, "split.count", path.string()).value_or(1);
  if (count > 1) {
    add_all_parts(builder, file, count);
  } else {
    std::set<std::string> names;
    set_config(builder, file);
    add_part(builder, std::move(file), names);
  }
  return std::move(builder).build();
}

}  // namespace onset
