// config.json of Hugging Face, in its older spelling (rope_theta, rope_scaling, torch_dtype) and
// its newer one (rope_parameters, dtype).
#include <algorithm>
#include <string>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"

namespace onset {
namespace {

class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key) const {
    const auto value = find_int(object_, key, where_);
    require_input(value.has_value(), where_, ": key \"", key, "\" is missing");
    return *value;
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t fallback) const {
    return find_int(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    return find_number(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] bool boolean(const std::string& key, bool fallback) const {
    return find_bool(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    return find_string(object_, key, where_);
  }
  [[nodiscard]] const Json* child(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

Activation read_activation(const Reader& config) {
  std::string name = config.text("hidden_activation").value_or("");
  if (name.empty()) name = config.text("hidden_act").value_or("silu");
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "gelu") return Activation::gelu;
  throw input_error(str_cat(config.where(), ": hidden_act \"", name,
                            "\" is not known; known are silu, gelu and gelu_pytorch_tanh"));
}

RopeKind read_rope_kind(const Reader& rope) {
  std::string name = rope.text("rope_type").value_or("");
  if (name.empty()) name = rope.text("type").value_or("default");
  if (name == "default") return RopeKind::plain;
  if (name == "linear") return RopeKind::linear;
  if (name == "llama3") return RopeKind::llama3;
  if (name == "yarn") return RopeKind::yarn;
  throw input_error(str_cat(rope.where(), ": rope_type \"", name,
                            "\" is not known; known are default, linear, llama3 and yarn"));
}

RopeConfig read_rope(const Reader& config, const std::string& where, std::int64_t head_dim,
                     std::int64_t context) {
  RopeConfig rope;
  rope.theta = config.number("rope_theta", rope.theta);
  const double partial = config.number("partial_rotary_factor", 1.0);
  rope.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * partial);
  const Json* scaling = config.child("rope_parameters");
  const char* key = "rope_parameters";
  if (scaling == nullptr) {
    scaling = config.child("rope_scaling");
    key = "rope_scaling";
  }
  if (scaling == nullptr) return rope;
  require_input(scaling->is_object(), where, ": key \"", key, "\" should be an object, is ",
                scaling->type_name());
  const Reader reader(*scaling, where + ": " + key);
  rope.kind = read_rope_kind(reader);
  rope.theta = reader.number("rope_theta", rope.theta);
  rope.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) *
                                              reader.number("partial_rotary_factor", partial));
  if (rope.kind == RopeKind::plain) return rope;
  // Where the stretched and the original length are both given, their quotient is the factor.
  rope.original_context = reader.integer("original_max_position_embeddings",
                                         config.integer("original_max_position_embeddings",
                                                        rope.kind == RopeKind::yarn ? context : 0));
  const auto factor = find_number(*scaling, "factor", reader.where());
  if (factor) {
    rope.factor = *factor;
  } else {
    require_input(rope.kind == RopeKind::yarn && rope.original_context > 0, reader.where(),
                  ": key \"factor\" is missing");
    rope.factor = static_cast<double>(context) / static_cast<double>(rope.original_context);
  }
  rope.low_freq_factor = reader.number("low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = reader.number("high_freq_factor", rope.high_freq_factor);
  rope.beta_fast = reader.number("beta_fast", rope.beta_fast);
  rope.beta_slow = reader.number("beta_slow", rope.beta_slow);
  rope.attention_factor = find_number(*scaling, "attention_factor", reader.where());
  rope.truncate = reader.boolean("truncate", true);
  return rope;
}

// Which layers see a window: `layer_types` where given, else the family's rule.
std::vector<LayerConfig> read_layers(const Reader& config, const Family& family,
                                     std::int64_t count) {
  require_input(count >= 1 && count <= 10'000, config.where(), ": num_hidden_layers is ", count,
                ", expected 1 to 10000");
  std::vector<LayerConfig> layers(static_cast<std::size_t>(count));
  const std::int64_t window = config.integer("sliding_window", 0);
  const bool used =
      family.window == WindowRule::all ||
      (family.window == WindowRule::opt_in && config.boolean("use_sliding_window", false));
  if (!used || window == 0) return layers;
  require_input(window > 0, config.where(), ": sliding_window is ", window,
                ", expected at least 1");
  const Json* types = config.child("layer_types");
  if (types != nullptr) {
    require_input(types->is_array() && types->size() == layers.size(), config.where(),
                  ": layer_types should list ", count, " layers");
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Json& type = (*types)[i];
      const bool sliding = type == "sliding_attention";
      require_input(sliding || type == "full_attention", config.where(), ": layer_types[", i,
                    "] is ", type.dump(), ", expected \"full_attention\" or \"sliding_attention\"");
      if (sliding) layers[i].sliding_window = window;
    }
    return layers;
  }
  const std::int64_t first =
      family.window == WindowRule::opt_in ? config.integer("max_window_layers", 0) : 0;
  for (std::int64_t i = std::max<std::int64_t>(first, 0); i < count; ++i) {
    layers[static_cast<std::size_t>(i)].sliding_window = window;
  }
  return layers;
}

// An id or a list of ids; generation_config.json overrides config.json.
std::vector<std::int64_t> read_eos(const Checkpoint& checkpoint) {
  for (const Json* source : {&checkpoint.generation_config(), &checkpoint.config()}) {
    const auto found = source->find("eos_token_id");
    if (found == source->end() || found->is_null()) continue;
    if (found->is_number_integer()) return {found->get<std::int64_t>()};
    if (found->is_array() && std::all_of(found->begin(), found->end(),
                                         [](const Json& id) { return id.is_number_integer(); })) {
      return found->get<std::vector<std::int64_t>>();
    }
    throw input_error(str_cat(checkpoint.path().string(),
                              ": eos_token_id should be an id or a list of ids, is ",
                              found->type_name()));
  }
  return {};
}

}  // namespace

ModelConfig read_hf_config(const Checkpoint& checkpoint, const std::string& where) {
  const Reader reader(checkpoint.config(), where);
  const auto type = reader.text("model_type");
  require_input(type.has_value(), where, ": key \"model_type\" is missing");
  const Family* family = family_of_hf(*type);
  if (family == nullptr) {
    throw input_error(str_cat(where, ": model_type \"", *type, "\" is not supported"),
                      "supported are " + supported_architectures());
  }
  ModelConfig config;
  config.architecture = *type;
  config.hidden = reader.integer("hidden_size");
  config.heads = reader.integer("num_attention_heads");
  config.kv_heads = reader.integer("num_key_value_heads", config.heads);
  config.head_dim = reader.integer("head_dim", config.heads > 0 ? config.hidden / config.heads : 0);
  config.ffn = reader.integer("intermediate_size");
  config.vocabulary = reader.integer("vocab_size");
  config.context = reader.integer("max_position_embeddings", 0);
  config.norm_eps = reader.number("rms_norm_eps", config.norm_eps);
  config.activation = read_activation(reader);
  config.tied_embeddings = reader.boolean("tie_word_embeddings", family->tied_by_default);
  const bool attention_bias = reader.boolean("attention_bias", false);
  config.qkv_bias = family->qkv_bias || attention_bias;
  config.output_bias = attention_bias;
  config.ffn_bias = reader.boolean("mlp_bias", false);
  config.qk_norm = family->qk_norm;
  config.layers = read_layers(reader, *family, reader.integer("num_hidden_layers"));
  config.rope = read_rope(reader, where, config.head_dim, config.context);
  config.eos = read_eos(checkpoint);
  config.bos = find_int(checkpoint.config(), "bos_token_id", where);
  return config;
}

}  // namespace onset
