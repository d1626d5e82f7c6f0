#include "onset/train/new_model.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/mixing.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/model/save_model.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {
namespace {

constexpr std::int64_t ffn_multiple = 64;

// The settings with what they leave open filled in.
PretrainSettings filled(PretrainSettings settings) {
  if (settings.num_key_value_heads == 0)
    settings.num_key_value_heads = settings.num_attention_heads;
  if (settings.num_attention_heads % settings.num_key_value_heads != 0) {
    throw usage_error(str_cat("num_attention_heads (", settings.num_attention_heads,
                              ") is no multiple of num_key_value_heads (",
                              settings.num_key_value_heads, ")"));
  }
  if (settings.head_dim == 0) {
    if (settings.hidden_size % settings.num_attention_heads != 0) {
      throw usage_error(
          str_cat("hidden_size (", settings.hidden_size,
                  ") is no multiple of num_attention_heads (", settings.num_attention_heads, ")"),
          "set head_dim");
    }
    settings.head_dim = settings.hidden_size / settings.num_attention_heads;
  }
  if (settings.head_dim % 2 != 0) {
    throw usage_error(str_cat("head_dim is ", settings.head_dim, ", and RoPE turns pairs of dims"),
                      "give an even one");
  }
  if (settings.intermediate_size == 0) {
    const std::int64_t size = settings.hidden_size * 8 / 3;
    settings.intermediate_size = (size + ffn_multiple - 1) / ffn_multiple * ffn_multiple;
  }
  return settings;
}

OrderedJson config_of(const PretrainSettings& shape, const Tokenizer& tokenizer) {
  const bool qwen = shape.model_type == "qwen3";
  OrderedJson config{{"architectures", {qwen ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
                     {"model_type", shape.model_type},
                     {"hidden_size", shape.hidden_size},
                     {"intermediate_size", shape.intermediate_size},
                     {"num_hidden_layers", shape.num_hidden_layers},
                     {"num_attention_heads", shape.num_attention_heads},
                     {"num_key_value_heads", shape.num_key_value_heads},
                     {"head_dim", shape.head_dim},
                     {"vocab_size", tokenizer.vocabulary_size()},
                     {"max_position_embeddings", shape.block_size},
                     {"rms_norm_eps", shape.rms_norm_eps},
                     {"rope_theta", shape.rope_theta},
                     {"hidden_act", "silu"},
                     {"attention_bias", false},
                     {"tie_word_embeddings", shape.tie_word_embeddings},
                     {"initializer_range", shape.initializer_range},
                     {"torch_dtype", "float32"}};
  const SpecialPolicy& special = tokenizer.special();
  if (special.bos) config["bos_token_id"] = *special.bos;
  if (!special.eos.empty()) config["eos_token_id"] = special.eos;
  return config;
}

// A stream of its own for each tensor: numbers do not depend on what was written before.
class NormalNumbers {
 public:
  NormalNumbers(std::uint64_t seed, const std::string& name) : draws_(fnv1a(seed, name)) {}

  // Box and Muller's, two at a time.
  void fill(std::vector<float>& values, double deviation) {
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const double radius = deviation * std::sqrt(-2.0 * std::log(1.0 - draws_.uniform()));
      const double angle = 2.0 * std::numbers::pi * draws_.uniform();
      values[i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }

 private:
  SplitMix draws_;
};

class WeightWriter {
 public:
  WeightWriter(const std::filesystem::path& path, std::uint64_t seed, double deviation)
      : writer_(path), seed_(seed), deviation_(deviation) {
    writer_.set_metadata("format", "pt");
  }

  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    NormalNumbers(seed_, name).fill(values, deviation_);
    add(name, {rows, columns}, values);
  }
  void gain(const std::string& name, std::int64_t size) {
    add(name, {size}, std::vector<float>(static_cast<std::size_t>(size), 1.0F));
  }
  void commit() { writer_.commit(); }

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<float>& values) {
    writer_.add(name, DType::f32, shape, std::as_bytes(std::span(values)));
  }

  SafetensorsWriter writer_;
  std::uint64_t seed_;
  double deviation_;
};

void write_layer(WeightWriter& weights, const PretrainSettings& shape, std::int64_t layer) {
  const std::string prefix = str_cat("model.layers.", layer, ".");
  const std::int64_t hidden = shape.hidden_size;
  const std::int64_t queries = shape.num_attention_heads * shape.head_dim;
  const std::int64_t keys = shape.num_key_value_heads * shape.head_dim;
  weights.gain(prefix + "input_layernorm.weight", hidden);
  weights.matrix(prefix + "self_attn.q_proj.weight", queries, hidden);
  weights.matrix(prefix + "self_attn.k_proj.weight", keys, hidden);
  weights.matrix(prefix + "self_attn.v_proj.weight", keys, hidden);
  weights.matrix(prefix + "self_attn.o_proj.weight", hidden, queries);
  if (shape.model_type == "qwen3") {
    weights.gain(prefix + "self_attn.q_norm.weight", shape.head_dim);
    weights.gain(prefix + "self_attn.k_norm.weight", shape.head_dim);
  }
  weights.gain(prefix + "post_attention_layernorm.weight", hidden);
  weights.matrix(prefix + "mlp.gate_proj.weight", shape.intermediate_size, hidden);
  weights.matrix(prefix + "mlp.up_proj.weight", shape.intermediate_size, hidden);
  weights.matrix(prefix + "mlp.down_proj.weight", hidden, shape.intermediate_size);
}

}  // namespace

double new_model_weights(const PretrainSettings& settings, std::int64_t vocabulary) {
  const PretrainSettings shape = filled(settings);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = number(shape.hidden_size);
  const double heads = number(shape.num_attention_heads) + number(shape.num_key_value_heads);
  // q and o, k and v; gate, up and down; two gains.
  double layer = 2 * hidden * heads * number(shape.head_dim) +
                 3 * hidden * number(shape.intermediate_size) + 2 * hidden;
  if (shape.model_type == "qwen3") layer += 2 * number(shape.head_dim);
  const double matrices = shape.tie_word_embeddings ? 1 : 2;
  return number(shape.num_hidden_layers) * layer + matrices * number(vocabulary) * hidden + hidden;
}

void write_new_model(const std::filesystem::path& folder, const PretrainSettings& settings,
                     const std::filesystem::path& source, const Tokenizer& tokenizer,
                     std::uint64_t seed) {
  const PretrainSettings shape = filled(settings);
  write_tokenizer_files(source, folder);
  WeightWriter weights(folder / "model.safetensors", seed, shape.initializer_range);
  weights.matrix("model.embed_tokens.weight", tokenizer.vocabulary_size(), shape.hidden_size);
  for (std::int64_t layer = 0; layer < shape.num_hidden_layers; ++layer) {
    write_layer(weights, shape, layer);
  }
  weights.gain("model.norm.weight", shape.hidden_size);
  if (!shape.tie_word_embeddings) {
    weights.matrix("lm_head.weight", tokenizer.vocabulary_size(), shape.hidden_size);
  }
  weights.commit();
  write_file_atomically(folder / "config.json", config_of(shape, tokenizer).dump(2) + "\n");
}

}  // namespace onset
