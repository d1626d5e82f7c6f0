// GGUF metadata: keys begin with general.architecture.
#include <string>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"

namespace onset {
namespace {

class Metadata {
 public:
  Metadata(const Json& values, std::string architecture, std::string where)
      : values_(values), prefix_(std::move(architecture) + "."), where_(std::move(where)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key) const {
    const auto value = find_int(values_, prefix_ + key, where_);
    require_input(value.has_value(), where_, ": key \"", prefix_, key, "\" is missing");
    return *value;
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t fallback) const {
    return find_int(values_, prefix_ + key, where_).value_or(fallback);
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    return find_number(values_, prefix_ + key, where_).value_or(fallback);
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    return find_string(values_, prefix_ + key, where_);
  }

 private:
  const Json& values_;
  std::string prefix_;
  std::string where_;
};

RopeConfig read_rope(const Metadata& metadata, const Checkpoint& checkpoint,
                     const std::string& where, std::int64_t head_dim) {
  RopeConfig rope;
  rope.theta = metadata.number("rope.freq_base", rope.theta);
  rope.rotary_dim = metadata.integer("rope.dimension_count", head_dim);
  const std::string kind = metadata.text("rope.scaling.type").value_or("none");
  if (kind == "linear") {
    rope.kind = RopeKind::linear;
  } else if (kind == "yarn") {
    rope.kind = RopeKind::yarn;
  } else {
    require_input(kind == "none", where, ": rope.scaling.type \"", kind,
                  "\" is not known; known are none, linear and yarn");
  }
  if (rope.kind != RopeKind::plain) {
    rope.factor = metadata.number("rope.scaling.factor", 1.0);
    rope.original_context = metadata.integer("rope.scaling.original_context_length",
                                             metadata.integer("context_length", 0));
  }
  // Llama 3's bands come as a tensor that divides the inverse frequencies.
  const TensorInfo* divisors = checkpoint.find("rope_freqs.weight");
  if (divisors == nullptr) return rope;
  require_input(divisors->dtype == DType::f32 && divisors->elements() == rope.rotary_dim / 2, where,
                ": tensor rope_freqs.weight is ", describe(*divisors), ", expected F32 [",
                rope.rotary_dim / 2, "]");
  std::vector<float> values(static_cast<std::size_t>(divisors->elements()));
  to_float32(DType::f32, checkpoint.data(*divisors), values);
  for (const float value : values) {
    require_input(value > 0, where, ": tensor rope_freqs.weight holds ", value,
                  ", expected positive numbers");
  }
  rope.frequency_divisors.assign(values.begin(), values.end());
  return rope;
}

// One number, or an array of one number a layer when they differ; only equal ones are known here.
std::int64_t read_per_layer(const Checkpoint& checkpoint, const Metadata& metadata,
                            const std::string& architecture, const std::string& key,
                            std::int64_t fallback, const std::string& where) {
  const auto found = checkpoint.config().find(architecture + "." + key);
  if (found == checkpoint.config().end() || !found->is_array()) {
    return metadata.integer(key, fallback);
  }
  require_input(!found->empty() && found->front().is_number_integer(), where, ": key \"",
                architecture, ".", key, "\" should hold integers");
  for (const Json& value : *found) {
    require_input(value == found->front(), where, ": key \"", architecture, ".", key,
                  "\" differs from layer to layer, which is not supported");
  }
  return found->front().get<std::int64_t>();
}

}  // namespace

ModelConfig read_gguf_config(const Checkpoint& checkpoint, const std::string& where) {
  const Json& values = checkpoint.config();
  const auto architecture = find_string(values, "general.architecture", where);
  require_input(architecture.has_value(), where, ": key \"general.architecture\" is missing");
  const Family* family = family_of_gguf(*architecture);
  if (family == nullptr) {
    throw input_error(str_cat(where, ": architecture \"", *architecture, "\" is not supported"),
                      "supported are " + supported_architectures());
  }
  const Metadata metadata(values, *architecture, where);
  ModelConfig config;
  config.architecture = std::string(family->name);
  config.hidden = metadata.integer("embedding_length");
  config.heads =
      read_per_layer(checkpoint, metadata, *architecture, "attention.head_count", 0, where);
  config.kv_heads = read_per_layer(checkpoint, metadata, *architecture, "attention.head_count_kv",
                                   config.heads, where);
  config.head_dim =
      metadata.integer("attention.key_length", config.heads > 0 ? config.hidden / config.heads : 0);
  const std::int64_t value_dim = metadata.integer("attention.value_length", config.head_dim);
  require_input(value_dim == config.head_dim, where, ": attention.value_length ", value_dim,
                " differs from attention.key_length ", config.head_dim, ", which is not supported");
  config.ffn = read_per_layer(checkpoint, metadata, *architecture, "feed_forward_length", 0, where);
  const TensorInfo* embedding = checkpoint.find("token_embd.weight");
  require_input(embedding != nullptr, where, ": tensor token_embd.weight is missing");
  config.vocabulary = embedding->shape.empty() ? 0 : embedding->shape.front();
  config.context = metadata.integer("context_length", 0);
  config.norm_eps = metadata.number("attention.layer_norm_rms_epsilon", config.norm_eps);
  config.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  config.qkv_bias = family->qkv_bias;
  config.qk_norm = family->qk_norm;
  config.gguf_permuted_qk = family->gguf_permuted_qk;
  const std::int64_t count = metadata.integer("block_count");
  require_input(count >= 1 && count <= 10'000, where, ": block_count is ", count,
                ", expected 1 to 10000");
  const std::int64_t window = metadata.integer("attention.sliding_window", 0);
  require_input(window >= 0, where, ": attention.sliding_window is ", window);
  config.layers.assign(static_cast<std::size_t>(count), LayerConfig{.sliding_window = window});
  config.rope = read_rope(metadata, checkpoint, where, config.head_dim);
  config.bos = find_int(values, "tokenizer.ggml.bos_token_id", where);
  if (const auto eos = find_int(values, "tokenizer.ggml.eos_token_id", where)) {
    config.eos.push_back(*eos);
  }
  return config;
}

}  // namespace onset
