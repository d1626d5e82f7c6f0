// GGUF metadata: keys begin with general.architecture.
#include <cmath>
#include <string>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"

namespace onset {
namespace {

// A small tensor of positive numbers, of half the rotary dims; empty where the file has none.
std::vector<double> read_table(const Checkpoint& checkpoint, const std::string& name,
                               std::int64_t rotary_dim, const std::string& where) {
  const TensorInfo* table = checkpoint.find(name);
  if (table == nullptr) return {};
  require_input(table->dtype == DType::f32 && table->elements() == rotary_dim / 2, where,
                ": tensor ", name, " is ", describe(*table), ", expected F32 [", rotary_dim / 2,
                "]");
  std::vector<float> values(static_cast<std::size_t>(table->elements()));
  to_float32(DType::f32, checkpoint.data(*table), values);
  for (const float value : values) {
    require_input(value > 0, where, ": tensor ", name, " holds ", value,
                  ", expected positive numbers");
  }
  return {values.begin(), values.end()};
}

RopeConfig read_rope(const GgufMetadata& metadata, const Checkpoint& checkpoint,
                     const std::string& where, const ModelConfig& config) {
  RopeConfig rope;
  rope.theta = metadata.number("rope.freq_base", rope.theta);
  rope.rotary_dim = config.has_latent_attention()
                        ? config.latent.rope_dim
                        : metadata.integer("rope.dimension_count", config.head_dim);
  rope.original_context = metadata.integer("rope.scaling.original_context_length", config.context);
  rope.short_factors = read_table(checkpoint, "rope_factors_short.weight", rope.rotary_dim, where);
  rope.long_factors = read_table(checkpoint, "rope_factors_long.weight", rope.rotary_dim, where);
  // Llama 3's bands come as a tensor that divides the inverse frequencies.
  rope.frequency_divisors = read_table(checkpoint, "rope_freqs.weight", rope.rotary_dim, where);
  const std::string kind = metadata.text("rope.scaling.type").value_or("none");
  if (!rope.short_factors.empty() || !rope.long_factors.empty()) {
    rope.kind = RopeKind::longrope;
    rope.attention_factor = metadata.optional_number("rope.scaling.attn_factor");
    if (rope.original_context > 0) {
      rope.factor =
          static_cast<double>(config.context) / static_cast<double>(rope.original_context);
    }
  } else if (kind == "linear") {
    rope.kind = RopeKind::linear;
  } else if (kind == "yarn") {
    rope.kind = RopeKind::yarn;
  } else {
    require_input(kind == "none", where, ": rope.scaling.type \"", kind,
                  "\" is not known; known are none, linear, yarn and longrope's tensors");
  }
  if (rope.kind == RopeKind::linear || rope.kind == RopeKind::yarn) {
    rope.factor = metadata.number("rope.scaling.factor", 1.0);
  }
  rope.beta_fast = metadata.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = metadata.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  // Holds 0.1 mscale_all_dim; these files know no other mscale.
  rope.mscale_all_dim = 10.0 * metadata.number("rope.scaling.yarn_log_multiplier", 0.0);
  rope.mscale = rope.mscale_all_dim;
  return rope;
}

// One number, or an array of one number a layer when they differ; only equal ones are known here.
std::int64_t read_per_layer(const Checkpoint& checkpoint, const GgufMetadata& metadata,
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

// GGUF has no key for Gemma's query_pre_attn_scalar: it is the head size, but D / H in the 27B
// models, which are told by their number of layers.
double gemma_attention_scale(const ModelConfig& config) {
  constexpr std::int64_t gemma2_27b_layers = 46;
  constexpr std::int64_t gemma3_27b_layers = 62;
  const bool is_27b =
      config.layer_count() == gemma2_27b_layers || config.layer_count() == gemma3_27b_layers;
  const std::int64_t scalar = is_27b ? config.hidden / config.heads : config.head_dim;
  return 1.0 / std::sqrt(static_cast<double>(scalar));
}

// Which layers see a window: one flag a layer, or every how many layers one sees all, where the
// file says so; else the family's rule.
std::vector<bool> read_window_pattern(const Family& family, const Checkpoint& checkpoint,
                                      const std::string& architecture, const std::string& where,
                                      std::size_t layers) {
  std::vector<bool> sliding(layers, true);
  std::size_t period = family.window == WindowRule::alternating ? 2
                       : family.window == WindowRule::pattern   ? 6
                                                                : 0;
  const std::string key = architecture + ".attention.sliding_window_pattern";
  const auto found = checkpoint.config().find(key);
  if (found != checkpoint.config().end() && found->is_array()) {
    require_input(found->size() == layers, where, ": key \"", key, "\" has ", found->size(),
                  " flags for ", layers, " layers");
    for (std::size_t i = 0; i < layers; ++i) {
      const Json& flag = (*found)[i];
      require_input(flag.is_boolean() || flag.is_number_integer(), where, ": key \"", key,
                    "\" should hold flags");
      sliding[i] = flag.is_boolean() ? flag.get<bool>() : flag.get<std::int64_t>() != 0;
    }
    return sliding;
  }
  if (const auto given = find_int(checkpoint.config(), key, where)) {
    require_input(*given >= 1, where, ": key \"", key, "\" is ", *given, ", expected at least 1");
    period = static_cast<std::size_t>(*given);
  }
  for (std::size_t i = 0; period > 0 && i < layers; ++i) sliding[i] = (i + 1) % period != 0;
  return sliding;
}

// The layers' windows, and the RoPE of those that have their own.
void read_windows(const Family& family, const GgufMetadata& metadata,
                  const std::vector<bool>& sliding, const std::string& where, ModelConfig& config) {
  const std::int64_t window = metadata.integer("attention.sliding_window", 0);
  require_input(window >= 0, where, ": attention.sliding_window is ", window);
  for (std::size_t i = 0; window > 0 && i < config.layers.size(); ++i) {
    if (!sliding[i]) continue;
    config.layers[i].sliding_window = window;
    config.layers[i].rope = family.local_rope ? 1 : 0;
  }
  if (!family.local_rope) return;
  RopeConfig local;
  local.theta = metadata.number("rope.freq_base_swa", 10000.0);
  local.rotary_dim = config.ropes.front().rotary_dim;
  config.ropes.push_back(local);
}

// Softmax where the file does not say it.
RouterScore read_router_score(const Json& values, const std::string& architecture,
                              const std::string& where) {
  const std::string key = architecture + ".expert_gating_func";
  const std::int64_t function = find_int(values, key, where).value_or(0);
  require_input(function >= 0 && function <= 2, where, ": ", key, " is ", function,
                ", known are 1 (softmax) and 2 (sigmoid)");
  return function == 2 ? RouterScore::sigmoid : RouterScore::softmax;
}

}  // namespace

ModelConfig read_gguf_config(const Checkpoint& checkpoint, const std::string& where) {
  if (checkpoint.tensors().empty()) {
    throw input_error(where + ": holds no tensors: a vocabulary without weights",
                      "onset tokenize and onset inspect work with it as it is; give a file with "
                      "weights here");
  }
  const Json& values = checkpoint.config();
  const auto architecture = find_string(values, "general.architecture", where);
  require_input(architecture.has_value(), where, ": key \"general.architecture\" is missing");
  const bool mixture = find_int(values, *architecture + ".expert_count", where).value_or(0) > 0;
  const RouterScore score = read_router_score(values, *architecture, where);
  const Family* family = family_of_gguf(*architecture, mixture, score);
  if (family == nullptr) {
    throw input_error(str_cat(where, ": architecture \"", *architecture, "\" is not supported"),
                      "supported are " + supported_architectures());
  }
  require_input(!mixture || family->score == score, where, ": ", *architecture,
                ".expert_gating_func asks for the sigmoid, which is not known for ", family->name);
  const GgufMetadata metadata(values, *architecture, where);
  ModelConfig config;
  config.hidden = metadata.integer("embedding_length");
  config.heads =
      read_per_layer(checkpoint, metadata, *architecture, "attention.head_count", 0, where);
  config.kv_heads = read_per_layer(checkpoint, metadata, *architecture, "attention.head_count_kv",
                                   config.heads, where);
  config.head_dim =
      metadata.integer("attention.key_length", config.heads > 0 ? config.hidden / config.heads : 0);
  config.value_dim = metadata.integer("attention.value_length", config.head_dim);
  if (family->latent) read_gguf_latent(metadata, config);
  require_input(family->latent || config.value_dim == config.head_dim, where,
                ": attention.value_length ", config.value_dim,
                " differs from attention.key_length ", config.head_dim, ", which is not supported");
  config.ffn = read_per_layer(checkpoint, metadata, *architecture, "feed_forward_length", 0, where);
  const TensorInfo* embedding = checkpoint.find("token_embd.weight");
  require_input(embedding != nullptr, where, ": tensor token_embd.weight is missing");
  config.vocabulary = embedding->shape.empty() ? 0 : embedding->shape.front();
  config.context = metadata.integer("context_length", 0);
  config.norm_eps = metadata.number("attention.layer_norm_rms_epsilon", config.norm_eps);
  config.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  config.extra_layers = metadata.integer("nextn_predict_layers", 0);
  const std::int64_t count = metadata.integer("block_count") - config.extra_layers;
  require_input(count >= 1 && count <= 10'000, where, ": block_count is ", count,
                ", expected 1 to 10000");
  config.layers.resize(static_cast<std::size_t>(count));
  require_input(config.head_dim > 0 && config.heads > 0 && config.hidden > 0, where,
                ": embedding_length ", config.hidden, " and ", config.heads,
                " heads give no head size");
  apply_family(*family, config);
  config.gguf_permuted_qk = family->gguf_permuted_qk;
  if (family->gemma) config.attention_scale = gemma_attention_scale(config);
  config.attention_scale = metadata.number("attention.scale", config.attention_scale);
  if (family->soft_caps) {
    config.attention_softcap = metadata.number("attn_logit_softcapping", 0.0);
    config.logit_softcap = metadata.number("final_logit_softcapping", 0.0);
  }
  read_gguf_mixture(metadata, checkpoint, *family, config);
  config.ropes = {read_rope(metadata, checkpoint, where, config)};
  apply_latent_scale(config);
  read_windows(*family, metadata,
               read_window_pattern(*family, checkpoint, *architecture, where, config.layers.size()),
               where, config);
  config.bos = find_int(values, "tokenizer.ggml.bos_token_id", where);
  if (const auto eos = find_int(values, "tokenizer.ggml.eos_token_id", where)) {
    config.eos.push_back(*eos);
  }
  return config;
}

}  // namespace onset
