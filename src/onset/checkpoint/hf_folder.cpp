// A folder as Hugging Face writes it: config.json, generation_config.json, and the weights in
// model.safetensors or in shards that model.safetensors.index.json names.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/lenient_json.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/safetensors.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_config_bytes = std::size_t{16} << 20U;
constexpr std::size_t max_index_bytes = std::size_t{100} << 20U;
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

using WeightMap = std::map<std::string, std::set<std::string>>;  // shard -> its tensors

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Regular files of the folder (or links to such), sorted.
std::vector<std::string> file_names(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) names.push_back(entry->path().filename().string());
  }
  require_input(!error, folder.string(), ": cannot list the folder: ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The first file that ends so, or "".
std::string first_ending(const std::vector<std::string>& names, std::string_view ending) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return name.ends_with(ending); });
  return found == names.end() ? std::string() : *found;
}

Error no_config(const fs::path& folder) {
  const auto names = file_names(folder);
  std::string hint = "give a folder as Hugging Face writes it, or a .gguf file";
  const auto named = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (const std::string gguf = first_ending(names, ".gguf"); !gguf.empty()) {
    hint = str_cat("it holds a GGUF file: give ", (folder / gguf).string());
  } else if (is_there(folder / "adapter_config.json")) {
    hint = "it is an adapter: give the model it was trained on, and this folder with --adapter";
  } else if (named("tokenizer.json") || named("tokenizer.model") || named("merges.txt")) {
    hint = "it holds a tokenizer: onset tokenize and onset inspect work with it as it is";
  }
  return input_error(str_cat(folder.string(), ": is no model folder: config.json is missing"),
                     hint);
}

Error no_weights(const fs::path& folder) {
  const auto names = file_names(folder);
  const std::string what =
      str_cat(folder.string(), ": has neither ", single_name, " nor ", index_name);
  for (const char* ending : {".bin", ".pt", ".pth", ".h5", ".msgpack"}) {
    const std::string other = first_ending(names, ending);
    if (other.empty()) continue;
    return input_error(str_cat(what, ", only ", other),
                       "convert it to safetensors: in Python, "
                       "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder)");
  }
  if (const std::string shard = first_ending(names, ".safetensors"); !shard.empty()) {
    return input_error(str_cat(what, ", only ", shard),
                       "shards need their index; copy or download it too");
  }
  return input_error(what, "copy or download the weights too");
}

Json read_object(const fs::path& path) {
  Json value = parse_lenient_json(read_file(path, max_config_bytes), path.string());
  require_input(value.is_object(), path.string(), ": should be a JSON object, is ",
                value.type_name());
  return value;
}

// Follows the index while it is parsed, since a tree would hide a tensor that is named twice.
class DuplicateFinder {
 public:
  explicit DuplicateFinder(const fs::path& path) : where_(path.string()) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1) in_map_ = key == "weight_map";
    if (depth == 2 && in_map_) {
      require_input(names_.insert(key).second, where_, ": tensor ", quote(key), " is there twice");
    }
    return true;
  }

 private:
  std::string where_;
  bool in_map_ = false;
  std::set<std::string> names_;
};

// A shard is a file in the folder of its index and nowhere else.
bool is_plain_file_name(const std::string& name) {
  return name.size() <= 255 && name.ends_with(".safetensors") && name != ".safetensors" &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

WeightMap read_index(const fs::path& path) {
  const std::string where = path.string();
  const std::string text = read_file(path, max_index_bytes);
  const Json index = parse_json(text, where, DuplicateFinder(path));
  const auto map = index.find("weight_map");
  require_input(index.is_object() && map != index.end() && map->is_object(), where,
                ": has no object \"weight_map\"");
  WeightMap shards;
  for (const auto& [tensor, shard] : map->items()) {
    require_input(shard.is_string(), where, ": tensor ", quote(tensor),
                  ": expected the name of a file, found ", shard.type_name());
    const auto& name = shard.get_ref<const std::string&>();
    require_input(is_plain_file_name(name), where, ": tensor ", quote(tensor),
                  ": expected the plain name of a .safetensors file in the same folder, found ",
                  quote(name));
    shards[name].insert(tensor);
  }
  require_input(!shards.empty(), where, ": \"weight_map\" names no tensor");
  return shards;
}

// NAME-00001-of-00003.safetensors
bool looks_like_shard(std::string_view name) {
  constexpr std::string_view pattern = "-ddddd-of-ddddd.safetensors";
  if (name.size() <= pattern.size()) return false;
  const std::string_view tail = name.substr(name.size() - pattern.size());
  return std::equal(tail.begin(), tail.end(), pattern.begin(), [](char c, char expected) {
    return expected == 'd' && c != 'd' ? c >= '0' && c <= '9' : c == expected;
  });
}

void check_no_extra_shard(const fs::path& folder, const WeightMap& shards) {
  for (const std::string& name : file_names(folder)) {
    if (!looks_like_shard(name) || shards.count(name) > 0) continue;
    throw input_error(str_cat((folder / name).string(), ": is a shard that ", index_name,
                              " does not name (it names ", shards.size(), ")"),
                      "remove the file, or bring the index that belongs to these shards");
  }
}

// A shard holds the tensors that the index places there, no fewer and no others.
void check_shard(const SafetensorsFile& shard, const std::set<std::string>& expected,
                 const fs::path& path) {
  std::set<std::string> missing = expected;
  for (const TensorInfo& tensor : shard.tensors) {
    require_input(missing.erase(tensor.name) > 0, path.string(), ": holds tensor ",
                  quote(tensor.name), ", which ", index_name, " does not place there");
  }
  if (missing.empty()) return;
  throw input_error(
      str_cat(path.string(), ": tensor ", quote(*missing.begin()), " is missing: ", index_name,
              " expects ", expected.size(), " tensors in this file, found ", shard.tensors.size()),
      "index and shards do not belong together; copy or download both again");
}

void add_file(CheckpointBuilder& builder, SafetensorsFile&& file) {
  for (TensorInfo& tensor : file.tensors) {
    tensor.file = builder.files.size();
    builder.tensors.push_back(std::move(tensor));
  }
  builder.files.push_back(std::move(file.file));
}

void add_shards(CheckpointBuilder& builder, const fs::path& folder) {
  const WeightMap shards = read_index(folder / index_name);
  check_no_extra_shard(folder, shards);
  for (const auto& [name, tensors] : shards) {
    const fs::path path = folder / name;
    if (!is_there(path)) {
      throw input_error(
          str_cat(path.string(), ": is missing: ", index_name, " places ", tensors.size(),
                  " tensors there, such as ", quote(*tensors.begin())),
          "copy or download the missing shard");
    }
    SafetensorsFile shard = read_safetensors(path);
    check_shard(shard, tensors, path);
    add_file(builder, std::move(shard));
  }
}

}  // namespace

Checkpoint open_hf_folder(const fs::path& folder) {
  if (!is_there(folder / "config.json")) throw no_config(folder);
  CheckpointBuilder builder;
  builder.format = CheckpointFormat::safetensors;
  builder.path = folder;
  builder.config = read_object(folder / "config.json");
  if (is_there(folder / "generation_config.json")) {
    builder.generation_config = read_object(folder / "generation_config.json");
  }
  // One file first, as transformers does when both are there.
  if (is_there(folder / single_name)) {
    add_file(builder, read_safetensors(folder / single_name));
  } else if (is_there(folder / index_name)) {
    add_shards(builder, folder);
  } else {
    throw no_weights(folder);
  }
  return std::move(builder).build();
}

}  // namespace onset
