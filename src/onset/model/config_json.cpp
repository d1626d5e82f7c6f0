#include "onset/model/config_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"
#include "onset/model/rope.h"

namespace onset {
namespace {

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

// A number that GGUF keeps as float32 as the short decimal that it was made from.
OrderedJson number(double value) { return float_or_null(static_cast<float>(value)); }

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return "gelu_pytorch_tanh";
    case Activation::gelu:
      return "gelu";
    case Activation::silu:
      break;
  }
  return "silu";
}

class Writer {
 public:
  Writer(const ModelConfig& config, const Family& family, const std::string& where)
      : config_(config), family_(family), where_(where) {}

  OrderedJson write() {
    add_sizes();
    add_mixture();
    add_latent();
    add_rope();
    add_windows();
    add_scales();
    add_tokens();
    return std::move(json_);
  }

 private:
  [[nodiscard]] Error refusal(std::string_view what) const {
    return input_error(
        str_cat(where_, ": ", what, ", which a config.json of ", family_.name, " cannot say"));
  }

  void add_sizes() {
    json_["architectures"] = OrderedJson::array({family_.causal_lm});
    json_["model_type"] = family_.name;
    json_["vocab_size"] = config_.vocabulary;
    json_["hidden_size"] = config_.hidden;
    json_["intermediate_size"] = config_.ffn > 0 ? config_.ffn : config_.mixture.ffn;
    json_["num_hidden_layers"] = config_.layer_count();
    json_["num_attention_heads"] = config_.heads;
    json_["num_key_value_heads"] = config_.kv_heads;
    if (!config_.has_latent_attention()) json_["head_dim"] = config_.head_dim;
    if (config_.context > 0) json_["max_position_embeddings"] = config_.context;
    json_["rms_norm_eps"] = number(config_.norm_eps);
    json_[family_.gemma ? "hidden_activation" : "hidden_act"] = activation_name(config_.activation);
    json_["tie_word_embeddings"] = config_.tied_embeddings;
    json_["attention_bias"] = config_.output_bias;
    if (family_.name == "llama") json_["mlp_bias"] = config_.ffn_bias;
  }

  [[nodiscard]] std::vector<std::int64_t> dense_layers() const {
    std::vector<std::int64_t> dense;
    for (std::int64_t l = 0; l < config_.layer_count(); ++l) {
      if (!config_.is_mixture(l)) dense.push_back(l);
    }
    return dense;
  }

  void add_mixture() {
    const MixtureConfig& mixture = config_.mixture;
    if (mixture.experts == 0) return;
    json_["num_experts_per_tok"] = mixture.chosen;
    switch (family_.mixture) {
      case MixtureRule::none:
        throw refusal("a mixture of experts");
      case MixtureRule::every_layer:
        if (!dense_layers().empty()) throw refusal("layers without experts");
        json_["num_local_experts"] = mixture.experts;
        json_["intermediate_size"] = mixture.ffn;
        break;
      case MixtureRule::qwen:
        json_["num_experts"] = mixture.experts;
        json_["moe_intermediate_size"] = mixture.ffn;
        json_["norm_topk_prob"] = mixture.normalised;
        json_["decoder_sparse_step"] = 1;
        json_["mlp_only_layers"] = dense_layers();
        if (mixture.shared_gate) json_["shared_expert_intermediate_size"] = mixture.shared_ffn;
        break;
      case MixtureRule::deepseek:
        add_deepseek_mixture();
        break;
    }
    const bool scaled = mixture.scale != 1.0 && family_.mixture != MixtureRule::deepseek;
    if (scaled) throw refusal("a scale of the experts' weights");
  }

  void add_deepseek_mixture() {
    const MixtureConfig& mixture = config_.mixture;
    const bool v3 = family_.score == RouterScore::sigmoid;
    const auto dense = static_cast<std::int64_t>(dense_layers().size());
    if (dense > 0 && dense_layers().back() != dense - 1) {
      throw refusal("layers without experts behind some with");
    }
    if (mixture.shared_ffn % mixture.ffn != 0) throw refusal("shared experts of another size");
    json_["n_routed_experts"] = mixture.experts;
    json_["n_shared_experts"] = mixture.shared_ffn / mixture.ffn;
    json_["moe_intermediate_size"] = mixture.ffn;
    json_["first_k_dense_replace"] = dense;
    json_["moe_layer_freq"] = 1;
    json_["scoring_func"] = v3 ? "sigmoid" : "softmax";
    const bool grouped = v3 || mixture.groups > 1;
    json_["topk_method"] = v3 ? "noaux_tc" : (grouped ? "group_limited_greedy" : "greedy");
    json_["n_group"] = grouped ? OrderedJson(mixture.groups) : OrderedJson();
    json_["topk_group"] = grouped ? OrderedJson(mixture.chosen_groups) : OrderedJson();
    json_["routed_scaling_factor"] = number(mixture.scale);
    json_["norm_topk_prob"] = mixture.normalised;
  }

  void add_latent() {
    if (!config_.has_latent_attention()) return;
    const LatentConfig& latent = config_.latent;
    json_["q_lora_rank"] = latent.query_rank > 0 ? OrderedJson(latent.query_rank) : OrderedJson();
    json_["kv_lora_rank"] = latent.kv_rank;
    json_["qk_rope_head_dim"] = latent.rope_dim;
    json_["qk_nope_head_dim"] = config_.head_dim - latent.rope_dim;
    json_["v_head_dim"] = config_.value_dim;
  }

  // Llama 3's bands from the divisors that they were written as.
  [[nodiscard]] RopeConfig with_bands(const RopeConfig& rope) const {
    if (rope.frequency_divisors.empty()) return rope;
    RopeConfig bands = rope;
    bands.kind = RopeKind::llama3;
    bands.factor = rope.frequency_divisors.back();
    bands.low_freq_factor = 1.0;
    bands.high_freq_factor = 4.0;
    bands.frequency_divisors.clear();
    bands.original_context = context_before(rope, bands);
    if (!divides_alike(bands, rope)) {
      throw refusal("a table rope_freqs.weight that is not one of Llama 3");
    }
    return bands;
  }

  // The context that an entry between the two bands was interpolated for (see llama3_frequency in
  // rope.cpp, solved for it); without such an entry that of Llama 3.
  static std::int64_t context_before(const RopeConfig& table, const RopeConfig& bands) {
    constexpr double two_pi = 6.283185307179586;
    for (std::size_t i = 0; i < table.frequency_divisors.size(); ++i) {
      const double divisor = table.frequency_divisors[i];
      if (nearly(divisor, 1.0) || nearly(divisor, bands.factor)) continue;
      const double smooth = (1.0 / divisor - 1.0 / bands.factor) / (1.0 - 1.0 / bands.factor);
      const double wavelength =
          two_pi * std::pow(table.theta,
                            2.0 * static_cast<double>(i) / static_cast<double>(table.rotary_dim));
      const double context =
          wavelength *
          (bands.low_freq_factor + smooth * (bands.high_freq_factor - bands.low_freq_factor));
      return std::isfinite(context) && context < 1e9 ? std::llround(context) : 0;
    }
    return 8192;
  }

  static bool divides_alike(const RopeConfig& bands, const RopeConfig& table) {
    if (bands.original_context < 1) return false;
    const std::vector<float> found = rope_frequencies(bands).inverse;
    const std::vector<float> wanted = rope_frequencies(table).inverse;
    return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                      [](float a, float b) { return nearly(a, b); });
  }

  [[nodiscard]] OrderedJson rope_scaling(const RopeConfig& rope) const {
    if (rope.kind == RopeKind::plain) return nullptr;
    OrderedJson scaling;
    switch (rope.kind) {
      case RopeKind::linear:
        return {{"rope_type", "linear"}, {"factor", number(rope.factor)}};
      case RopeKind::llama3:
        return {{"rope_type", "llama3"},
                {"factor", number(rope.factor)},
                {"low_freq_factor", number(rope.low_freq_factor)},
                {"high_freq_factor", number(rope.high_freq_factor)},
                {"original_max_position_embeddings", rope.original_context}};
      case RopeKind::yarn:
        scaling = {{"rope_type", "yarn"},
                   {"factor", number(rope.factor)},
                   {"original_max_position_embeddings", rope.original_context},
                   {"beta_fast", number(rope.beta_fast)},
                   {"beta_slow", number(rope.beta_slow)}};
        if (rope.mscale_all_dim != 0) {
          scaling["mscale"] = number(rope.mscale);
          scaling["mscale_all_dim"] = number(rope.mscale_all_dim);
        }
        if (!rope.truncate) scaling["truncate"] = false;
        break;
      default:
        // Older versions of transformers want these three and no other.
        scaling = {{"type", "longrope"},
                   {"short_factor", factors(rope.short_factors)},
                   {"long_factor", factors(rope.long_factors)}};
        break;
    }
    if (rope.attention_factor && !follows(rope)) {
      scaling["attention_factor"] = number(*rope.attention_factor);
    }
    return scaling;
  }

  // Whether the factor of cos and sin is what it is where nothing says it.
  static bool follows(const RopeConfig& rope) {
    RopeConfig silent = rope;
    silent.attention_factor = std::nullopt;
    return nearly(rope_frequencies(rope).scale, rope_frequencies(silent).scale);
  }

  static OrderedJson factors(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double value : values) list.push_back(number(value));
    return list;
  }

  void add_rope() {
    const RopeConfig rope = with_bands(config_.ropes.front());
    json_["rope_theta"] = number(rope.theta);
    json_["rope_scaling"] = rope_scaling(rope);
    if (rope.kind == RopeKind::longrope) {
      json_["original_max_position_embeddings"] = rope.original_context;
      const double stretch =
          static_cast<double>(config_.context) / static_cast<double>(rope.original_context);
      if (!nearly(stretch, rope.factor)) throw refusal("a RoPE factor beside the context's");
    }
    if (!config_.has_latent_attention() && rope.rotary_dim != config_.head_dim) {
      json_["partial_rotary_factor"] =
          static_cast<double>(rope.rotary_dim) / static_cast<double>(config_.head_dim);
    }
    if (config_.ropes.size() > 1) json_["rope_local_base_freq"] = number(config_.ropes[1].theta);
  }

  void add_windows() {
    std::int64_t window = 0;
    std::size_t sliding = 0;
    OrderedJson types = OrderedJson::array();
    for (const LayerConfig& layer : config_.layers) {
      window = std::max(window, layer.sliding_window);
      sliding += layer.sliding_window > 0 ? 1 : 0;
      types.push_back(layer.sliding_window > 0 ? "sliding_attention" : "full_attention");
    }
    if (family_.window == WindowRule::none) {
      if (sliding > 0) throw refusal("a sliding window");
      return;
    }
    json_["sliding_window"] = sliding > 0 ? OrderedJson(window) : OrderedJson();
    if (family_.window == WindowRule::all) {
      if (sliding > 0 && sliding < config_.layers.size()) {
        throw refusal("a sliding window in some layers only");
      }
      return;
    }
    if (!family_.gemma) json_["use_sliding_window"] = sliding > 0;
    // Where nothing says otherwise Gemma's layers have windows.
    if (sliding > 0 || family_.gemma) json_["layer_types"] = std::move(types);
  }

  void add_scales() {
    double expected = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
    if (family_.gemma) {
      const double scalar = 1.0 / (config_.attention_scale * config_.attention_scale);
      const double whole = std::round(scalar);
      if (nearly(scalar, whole)) {
        json_["query_pre_attn_scalar"] = static_cast<std::int64_t>(whole);
      } else {
        json_["query_pre_attn_scalar"] = scalar;
      }
      expected = config_.attention_scale;
    }
    ModelConfig latent = config_;
    latent.attention_scale = expected;
    apply_latent_scale(latent);
    if (!nearly(config_.attention_scale, latent.attention_scale)) {
      throw refusal("another scale of the attention scores");
    }
    if (!family_.soft_caps) return;
    const auto cap = [](double value) { return value > 0 ? number(value) : OrderedJson(); };
    json_["attn_logit_softcapping"] = cap(config_.attention_softcap);
    json_["final_logit_softcapping"] = cap(config_.logit_softcap);
  }

  void add_tokens() {
    json_["bos_token_id"] = config_.bos ? OrderedJson(*config_.bos) : OrderedJson();
    json_["eos_token_id"] = config_.eos.empty()       ? OrderedJson()
                            : config_.eos.size() == 1 ? OrderedJson(config_.eos.front())
                                                      : OrderedJson(config_.eos);
    // Some families' own default lies outside a small vocabulary.
    json_["pad_token_id"] = nullptr;
  }

  const ModelConfig& config_;
  const Family& family_;
  const std::string& where_;
  OrderedJson json_ = OrderedJson::object();
};

}  // namespace

OrderedJson config_json(const ModelConfig& config, const std::string& where) {
  const Family* family = family_of_hf(config.architecture);
  require_input(family != nullptr, where, ": no config.json is known for ", config.architecture);
  return Writer(config, *family, where).write();
}

}  // namespace onset
