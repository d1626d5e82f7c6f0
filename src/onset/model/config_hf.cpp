// config.json of Hugging Face, in its older spelling (rope_theta, rope_scaling, torch_dtype) and
// its newer one (rope_parameters, dtype).
#include <algorithm>
#include <cmath>
#include <string>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"

namespace onset {
namespace {

// Of all families but Gemma, whose files say "gelu" in hidden_act and mean the tanh form.
Activation read_activation(const ConfigReader& config) {
  const std::string name = config.text("hidden_act").value_or("silu");
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "gelu") return Activation::gelu;
  throw input_error(str_cat(config.where(), ": hidden_act \"", name,
                            "\" is not known; known are silu, gelu and gelu_pytorch_tanh"));
}

RopeKind read_rope_kind(const ConfigReader& rope) {
  std::string name = rope.text("rope_type").value_or("");
  if (name.empty()) name = rope.text("type").value_or("default");
  if (name == "default") return RopeKind::plain;
  if (name == "linear") return RopeKind::linear;
  if (name == "llama3") return RopeKind::llama3;
  if (name == "yarn") return RopeKind::yarn;
  if (name == "longrope" || name == "su") return RopeKind::longrope;
  throw input_error(
      str_cat(rope.where(), ": rope_type \"", name,
              "\" is not known; known are default, linear, llama3, yarn and longrope"));
}

std::vector<double> read_factors(const Json& rope, const std::string& key,
                                 const std::string& where) {
  const auto found = rope.find(key);
  require_input(found != rope.end() && found->is_array(), where, ": key \"", key,
                "\" should be a list of numbers");
  std::vector<double> factors;
  for (const Json& value : *found) {
    require_input(value.is_number(), where, ": key \"", key, "\" should be a list of numbers");
    factors.push_back(value.get<double>());
  }
  return factors;
}

// The leading dims of a head that are turned.
std::int64_t read_rotary_dim(double partial, std::int64_t head_dim, const std::string& where) {
  require_input(partial > 0 && partial <= 1, where, ": partial_rotary_factor is ", partial,
                ", expected above 0, up to 1");
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * partial);
}

// How the frequencies of a kind other than the plain one are changed.
void read_scaling(const Json& scaling, const ConfigReader& config, const std::string& where,
                  std::int64_t context, RopeConfig& rope) {
  const ConfigReader reader(scaling, where);
  // longrope models say the original length outside, others inside.
  const bool falls_back = rope.kind == RopeKind::yarn || rope.kind == RopeKind::longrope;
  rope.original_context =
      reader.integer("original_max_position_embeddings",
                     config.integer("original_max_position_embeddings", falls_back ? context : 0));
  const auto factor = find_number(scaling, "factor", where);
  if (factor) {
    rope.factor = *factor;
  } else {
    require_input(falls_back && rope.original_context > 0, where, ": key \"factor\" is missing");
    // Where the stretched and the original length are both given, their quotient is the factor.
    rope.factor = static_cast<double>(context) / static_cast<double>(rope.original_context);
  }
  rope.low_freq_factor = reader.number("low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = reader.number("high_freq_factor", rope.high_freq_factor);
  rope.beta_fast = reader.number("beta_fast", rope.beta_fast);
  rope.beta_slow = reader.number("beta_slow", rope.beta_slow);
  rope.attention_factor = find_number(scaling, "attention_factor", where);
  rope.truncate = reader.boolean("truncate", true);
  rope.mscale = reader.number("mscale", 0.0);
  rope.mscale_all_dim = reader.number("mscale_all_dim", 0.0);
  if (rope.kind == RopeKind::longrope) {
    rope.short_factors = read_factors(scaling, "short_factor", where);
    rope.long_factors = read_factors(scaling, "long_factor", where);
  }
}

// One set of RoPE parameters: `scaling` is an object of either spelling, or null.
RopeConfig read_rope_set(const Json* scaling, const ConfigReader& config, const std::string& where,
                         const ModelConfig& model, double theta) {
  RopeConfig rope;
  rope.theta = theta;
  double partial = config.number("partial_rotary_factor", 1.0);
  if (scaling != nullptr) {
    require_input(scaling->is_object(), where, " should be an object, is ", scaling->type_name());
    const ConfigReader reader(*scaling, where);
    rope.kind = read_rope_kind(reader);
    rope.theta = reader.number("rope_theta", theta);
    partial = reader.number("partial_rotary_factor", partial);
  }
  rope.rotary_dim = model.has_latent_attention()
                        ? model.latent.rope_dim
                        : read_rotary_dim(partial, model.head_dim, config.where());
  if (rope.kind != RopeKind::plain) read_scaling(*scaling, config, where, model.context, rope);
  return rope;
}

// One set for all layers, or, where a family's layers with a window have their own, that one
// second. Newer files nest both under `rope_parameters`; older ones say `rope_local_base_freq`.
std::vector<RopeConfig> read_ropes(const ConfigReader& config, const Family& family,
                                   const ModelConfig& model) {
  const char* key = config.child("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* scaling = config.child(key);
  const std::string where = config.where() + ": " + key;
  const double theta = config.number("rope_theta", family.local_rope ? 1e6 : 10000.0);
  if (!family.local_rope) {
    const bool nested =
        scaling != nullptr && scaling->is_object() &&
        (scaling->contains("full_attention") || scaling->contains("sliding_attention"));
    require_input(!nested, where, ": parameters by layer type are not known for ", family.name);
    return {read_rope_set(scaling, config, where, model, theta)};
  }
  const double local_theta = config.number("rope_local_base_freq", 10000.0);
  if (scaling != nullptr && scaling->is_object() && scaling->contains("full_attention")) {
    const auto local = scaling->find("sliding_attention");
    return {read_rope_set(&scaling->at("full_attention"), config, where + ".full_attention", model,
                          theta),
            read_rope_set(local == scaling->end() ? nullptr : &*local, config,
                          where + ".sliding_attention", model, local_theta)};
  }
  return {read_rope_set(scaling, config, where, model, theta),
          read_rope_set(nullptr, config, where, model, local_theta)};
}

// The family's rule for which layers see a window, where `layer_types` does not say.
bool has_window(const ConfigReader& config, const Family& family, std::int64_t layer) {
  switch (family.window) {
    case WindowRule::none:
      return false;
    case WindowRule::all:
    case WindowRule::opt_in_all:
      return true;
    case WindowRule::opt_in_even:
      return layer % 2 == 0 && layer < config.integer("max_window_layers", 28);
    case WindowRule::opt_in:
      return layer >= config.integer("max_window_layers", 0);
    case WindowRule::alternating:
      return layer % 2 == 0;
    case WindowRule::pattern:
      break;
  }
  const std::int64_t pattern =
      config.integer("sliding_window_pattern", config.integer("_sliding_window_pattern", 6));
  require_input(pattern > 0, config.where(), ": sliding_window_pattern is ", pattern,
                ", expected at least 1");
  return (layer + 1) % pattern != 0;
}

// Which layers see a window: `layer_types` where given, else the family's rule.
std::vector<LayerConfig> read_layers(const ConfigReader& config, const Family& family) {
  const std::int64_t count = config.integer("num_hidden_layers");
  require_input(count >= 1 && count <= 10'000, config.where(), ": num_hidden_layers is ", count,
                ", expected 1 to 10000");
  std::vector<LayerConfig> layers(static_cast<std::size_t>(count));
  const std::int64_t window = config.integer("sliding_window", family.gemma ? 4096 : 0);
  const bool opt_in = family.window == WindowRule::opt_in ||
                      family.window == WindowRule::opt_in_all ||
                      family.window == WindowRule::opt_in_even;
  const bool used =
      family.window != WindowRule::none && (!opt_in || config.boolean("use_sliding_window", false));
  if (!used || window == 0) return layers;
  require_input(window > 0, config.where(), ": sliding_window is ", window,
                ", expected at least 1");
  const Json* types = config.child("layer_types");
  require_input(types == nullptr || (types->is_array() && types->size() == layers.size()),
                config.where(), ": layer_types should list ", count, " layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bool sliding = false;
    if (types != nullptr) {
      const Json& type = (*types)[i];
      sliding = type == "sliding_attention";
      require_input(sliding || type == "full_attention", config.where(), ": layer_types[", i,
                    "] is ", type.dump(), R"(, expected "full_attention" or "sliding_attention")");
    } else {
      sliding = has_window(config, family, static_cast<std::int64_t>(i));
    }
    if (!sliding) continue;
    layers[i].sliding_window = window;
    layers[i].rope = family.local_rope ? 1 : 0;
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

void read_caps(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  if (family.gemma) {
    const double scalar = reader.number("query_pre_attn_scalar", 256.0);
    require_input(scalar > 0, reader.where(), ": query_pre_attn_scalar is ", scalar,
                  ", expected a positive number");
    config.attention_scale = 1.0 / std::sqrt(scalar);
  }
  if (!family.soft_caps) return;
  config.attention_softcap = reader.number("attn_logit_softcapping", 0.0);
  config.logit_softcap = reader.number("final_logit_softcapping", 0.0);
}

ModelConfig read_family_config(const Checkpoint& checkpoint, const Json& json, const Family& family,
                               const std::string& where) {
  const ConfigReader reader(json, where);
  ModelConfig config;
  config.hidden = reader.integer("hidden_size");
  config.heads = reader.integer("num_attention_heads");
  config.kv_heads = reader.integer("num_key_value_heads", config.heads);
  const std::int64_t divided = config.heads > 0 ? config.hidden / config.heads : 0;
  config.head_dim = reader.integer("head_dim", family.gemma ? 256 : divided);
  if (family.latent) read_hf_latent(reader, config);  // its head_dim says something else
  require_input(config.head_dim > 0 && config.hidden > 0, where, ": hidden_size ", config.hidden,
                " and ", config.heads, " heads give no head size");
  if (!family.latent) config.value_dim = config.head_dim;
  config.ffn = reader.integer("intermediate_size");
  config.vocabulary = reader.integer("vocab_size");
  config.context = reader.integer("max_position_embeddings", 0);
  config.norm_eps = reader.number("rms_norm_eps", config.norm_eps);
  config.activation = read_activation(reader);
  config.tied_embeddings = reader.boolean("tie_word_embeddings", family.tied_by_default);
  apply_family(family, config);
  if (family.latent) config.interleaved_rope = reader.boolean("rope_interleave", true);
  config.norm_plus_one = family.gemma;
  read_caps(reader, family, config);
  config.output_bias = reader.boolean("attention_bias", false);
  config.qkv_bias = config.qkv_bias || config.output_bias;
  config.ffn_bias = reader.boolean("mlp_bias", false);
  config.layers = read_layers(reader, family);
  config.extra_layers = reader.integer("num_nextn_predict_layers", 0);
  read_hf_mixture(reader, family, config);
  config.ropes = read_ropes(reader, family, config);
  apply_latent_scale(config);
  config.eos = read_eos(checkpoint);
  config.bos = find_int(json, "bos_token_id", where);
  return config;
}

}  // namespace

ModelConfig read_hf_config(const Checkpoint& checkpoint, const std::string& where) {
  const Json& json = checkpoint.config();
  const auto type = find_string(json, "model_type", where);
  require_input(type.has_value(), where, ": key \"model_type\" is missing");
  // A model of text and images keeps its text model one level below.
  const auto text = json.find("text_config");
  if (family_of_hf(*type) == nullptr && text != json.end() && text->is_object()) {
    const std::string inside = where + ": text_config";
    const auto inner = find_string(*text, "model_type", inside);
    const Family* family = inner ? family_of_hf(*inner) : nullptr;
    if (family != nullptr) return read_family_config(checkpoint, *text, *family, inside);
  }
  const Family* family = family_of_hf(*type);
  if (family == nullptr) {
    throw input_error(str_cat(where, ": model_type \"", *type, "\" is not supported"),
                      "supported are " + supported_architectures());
  }
  return read_family_config(checkpoint, json, *family, where);
}

}  // namespace onset
