#include "onset/model/save_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/model/config_json.h"
#include "onset/model/saved_tensors.h"
#include "onset/tokenizer/convert_gguf.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

std::string_view torch_name(DType type) {
  switch (type) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

std::string pretty(const OrderedJson& json) { return json.dump(2) + "\n"; }

// Tensors of a file, in the order in which they are written.
using Shard = std::vector<const SavedTensor*>;

std::vector<Shard> shards_of(const std::vector<SavedTensor>& tensors, std::int64_t limit) {
  std::vector<Shard> shards;
  std::int64_t filled = 0;
  for (const SavedTensor& tensor : tensors) {
    if (shards.empty() || (filled > 0 && filled + tensor.bytes() > limit)) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(&tensor);
    filled += tensor.bytes();
  }
  // Without holes between them, those with large elements stay aligned when they come first.
  for (Shard& shard : shards) {
    std::stable_sort(shard.begin(), shard.end(), [](const SavedTensor* a, const SavedTensor* b) {
      return dtype_info(a->dtype).block_bytes > dtype_info(b->dtype).block_bytes;
    });
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name.data();
}

void write_shard(const fs::path& path, const Shard& shard) {
  SafetensorsWriter writer(path);
  writer.set_metadata("format", "pt");  // transformers asks for it
  for (const SavedTensor* tensor : shard) {
    const at::Tensor values = tensor->make().cpu();
    const auto* data = static_cast<const std::byte*>(values.const_data_ptr());
    writer.add(tensor->name, tensor->dtype, tensor->shape, {data, values.nbytes()});
  }
  writer.commit();
}

void write_weights(const fs::path& folder, const std::vector<SavedTensor>& tensors,
                   std::int64_t shard_bytes) {
  const std::vector<Shard> shards = shards_of(tensors, shard_bytes);
  std::map<std::string, std::string> places;  // sorted, as transformers writes them
  std::int64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write_shard(folder / name, shards[i]);
    for (const SavedTensor* tensor : shards[i]) {
      places[tensor->name] = name;
      total += tensor->bytes();
    }
  }
  if (shards.size() == 1) return;
  const OrderedJson index = {{"metadata", {{"total_size", total}}}, {"weight_map", places}};
  write_file_atomically(folder / "model.safetensors.index.json", pretty(index));
}

// The type that config.json names: that of the weights.
DType main_type(const SavedTensors& saved) { return saved.tensors.front().dtype; }

// The base's configuration with what is no longer true of the weights changed.
OrderedJson changed_config(const Model& model, const SavedTensors& saved,
                           const SaveOptions& options) {
  const fs::path path = model.checkpoint().path() / "config.json";
  OrderedJson json = parse_ordered_json(read_file(path), path.string());
  bool had_scales = json.erase("quantization_config") > 0;
  // A model of text and images says some of it one level below.
  std::vector<OrderedJson*> levels{&json};
  if (const auto text = json.find("text_config"); text != json.end() && text->is_object()) {
    had_scales = text->erase("quantization_config") > 0 || had_scales;
    levels.push_back(&*text);
  }
  for (OrderedJson* level : levels) {
    bool named = false;
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!level->contains(key)) continue;
      named = true;
      if (options.dtype || had_scales) (*level)[key] = torch_name(main_type(saved));
    }
    if (!named && options.dtype && level == levels.front()) {
      (*level)["torch_dtype"] = torch_name(*options.dtype);
    }
    if (model.config().tied_embeddings && !saved.tied) (*level)["tie_word_embeddings"] = false;
  }
  return json;
}

OrderedJson config_of_gguf(const Model& model, const SavedTensors& saved) {
  ModelConfig config = model.config();
  config.tied_embeddings = saved.tied;
  const auto has_bias = [&](std::string_view module) {
    return std::any_of(saved.tensors.begin(), saved.tensors.end(),
                       [&](const SavedTensor& tensor) { return tensor.name.ends_with(module); });
  };
  config.output_bias = has_bias("o_proj.bias");
  config.ffn_bias = has_bias("down_proj.bias");
  OrderedJson json = config_json(config, model.checkpoint().path().string());
  json["torch_dtype"] = torch_name(main_type(saved));
  return json;
}

// What a Hugging Face folder holds beside weights: what tokenizers are read from, and the code that
// its config.json may name.
bool is_side_file(const fs::path& path) {
  static constexpr std::array names{"generation_config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "tokenizer.model",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "encoder.json",
                                    "vocab.bpe",
                                    "chat_template.jinja",
                                    "chat_template.json",
                                    "preprocessor_config.json",
                                    "processor_config.json"};
  const std::string name = path.filename().string();
  return std::find(names.begin(), names.end(), name) != names.end() || path.extension() == ".py";
}

void copy_side_files(const fs::path& base, const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(base)) {
    if (!entry.is_regular_file() || !is_side_file(entry.path())) continue;
    write_file_atomically(folder / entry.path().filename(), read_file(entry.path()));
  }
}

void write_tokenizer(const TokenizerFiles& tokenizer, const fs::path& folder) {
  write_file_atomically(folder / "tokenizer.json", pretty(tokenizer.tokenizer));
  write_file_atomically(folder / "tokenizer_config.json", pretty(tokenizer.tokenizer_config));
}

void write_side_files(const Model& model, const TokenizerFiles* tokenizer, const fs::path& folder) {
  if (model.checkpoint().format() == CheckpointFormat::safetensors) {
    copy_side_files(model.checkpoint().path(), folder);
    return;
  }
  OrderedJson generation = OrderedJson::object();
  if (model.config().bos) generation["bos_token_id"] = *model.config().bos;
  if (!model.config().eos.empty()) generation["eos_token_id"] = model.config().eos;
  if (tokenizer != nullptr) {
    if (!tokenizer->eos.is_null()) generation["eos_token_id"] = tokenizer->eos;
    write_tokenizer(*tokenizer, folder);
  }
  write_file_atomically(folder / "generation_config.json", pretty(generation));
}

}  // namespace

void save_model(const Model& model, const fs::path& folder, const SaveOptions& options) {
  const c10::NoGradGuard no_gradients;
  Model shared = model;  // another handle of the same model
  const SavedTensors saved = saved_tensors(shared, options);
  const bool gguf = model.checkpoint().format() == CheckpointFormat::gguf;
  OrderedJson config = gguf ? config_of_gguf(model, saved) : changed_config(model, saved, options);
  if (!options.onset_key.is_null()) config["onset"] = options.onset_key;
  std::optional<TokenizerFiles> tokenizer;
  if (gguf) tokenizer = convert_gguf_tokenizer(model.checkpoint().files().front().path());
  write_weights(folder, saved.tensors, options.shard_bytes);
  write_side_files(model, tokenizer ? &*tokenizer : nullptr, folder);
  write_file_atomically(folder / "config.json", pretty(config));
}

void write_tokenizer_files(const fs::path& source, const fs::path& folder) {
  if (fs::is_directory(source)) {
    copy_side_files(source, folder);
    return;
  }
  const auto tokenizer = convert_gguf_tokenizer(source);
  require_input(tokenizer.has_value(), source.string(), ": holds no tokenizer");
  write_tokenizer(*tokenizer, folder);
  OrderedJson generation = OrderedJson::object();
  if (!tokenizer->eos.is_null()) generation["eos_token_id"] = tokenizer->eos;
  write_file_atomically(folder / "generation_config.json", pretty(generation));
}

}  // namespace onset
