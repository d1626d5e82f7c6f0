// The families that have no GGUF fixture: their Hugging Face fixture rewritten as GGUF by the
// format's names and conventions (Gemma's gains are stored as they multiply, Phi-3's gate and up
// are one ffn_up) must give the reference's logits.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "checkpoint/files.h"
#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr std::uint32_t type_u32 = 4;
constexpr std::uint32_t type_f32 = 6;
constexpr std::uint32_t type_bool = 7;
constexpr std::uint32_t tensor_f32 = 0;

// Names inside a layer. Gemma's post_attention_layernorm follows attention; Phi-3's precedes the
// FFN.
std::string gguf_name(std::string name, bool post_norms) {
  const std::map<std::string, std::string> whole{{"model.embed_tokens.weight", "token_embd.weight"},
                                                 {"model.norm.weight", "output_norm.weight"},
                                                 {"lm_head.weight", "output.weight"}};
  if (const auto found = whole.find(name); found != whole.end()) return found->second;
  const std::vector<std::pair<std::string, std::string>> parts{
      {"model.layers.", "blk."},
      {"self_attn.qkv_proj", "attn_qkv"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_up_proj", "ffn_up"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", post_norms ? "post_attention_norm" : "ffn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"}};
  for (const auto& [from, to] : parts) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

struct Rewriting {
  const char* fixture;
  const char* architecture;
  bool post_norms;
  bool gains_plus_one;
};

class Writer {
 public:
  explicit Writer(const Rewriting& rewriting)
      : rewriting_(rewriting),
        folder_(onset::testing::data(std::string("models/") + rewriting.fixture)),
        config_(OrderedJson::parse(read_file(folder_ / "config.json"))) {}

  std::string write() {
    builder_.text("general.architecture", rewriting_.architecture);
    write_sizes();
    write_specials();
    for (const char* key : {"short_factor", "long_factor"}) write_factors(key);
    write_tensors();
    std::string bytes = builder_.build(0);
    return bytes + data_;
  }

 private:
  void count(const std::string& key, const char* from) {
    if (!config_.contains(from) || config_.at(from).is_null()) return;
    builder_.number(std::string(rewriting_.architecture) + "." + key, type_u32,
                    config_.at(from).get<std::uint32_t>());
  }
  void real(const std::string& key, double value) {
    builder_.number(std::string(rewriting_.architecture) + "." + key, type_f32,
                    static_cast<float>(value));
  }

  void write_sizes() {
    count("context_length", "max_position_embeddings");
    count("embedding_length", "hidden_size");
    count("block_count", "num_hidden_layers");
    count("feed_forward_length", "intermediate_size");
    count("attention.head_count", "num_attention_heads");
    count("attention.head_count_kv", "num_key_value_heads");
    count("attention.key_length", "head_dim");
    count("attention.value_length", "head_dim");
    count("attention.sliding_window", "sliding_window");
    count("rope.scaling.original_context_length", "original_max_position_embeddings");
    real("attention.layer_norm_rms_epsilon", config_.at("rms_norm_eps").get<double>());
  }

  void write_specials() {
    const std::string prefix = std::string(rewriting_.architecture) + ".";
    if (config_.contains("query_pre_attn_scalar")) {
      real("attention.scale", 1.0 / std::sqrt(config_.at("query_pre_attn_scalar").get<double>()));
    }
    for (const auto& [key, from] :
         {std::pair{"attn_logit_softcapping", "attn_logit_softcapping"},
          std::pair{"final_logit_softcapping", "final_logit_softcapping"}}) {
      if (config_.contains(from) && !config_.at(from).is_null()) {
        real(key, config_.at(from).get<double>());
      }
    }
    const OrderedJson& rope = config_.at("rope_parameters");
    if (rope.contains("full_attention")) {  // Gemma 3
      real("rope.freq_base", rope.at("full_attention").at("rope_theta").get<double>());
      real("rope.freq_base_swa", rope.at("sliding_attention").at("rope_theta").get<double>());
      builder_.text(prefix + "rope.scaling.type", "linear");
      real("rope.scaling.factor", rope.at("full_attention").at("factor").get<double>());
      std::string flags;
      for (const OrderedJson& type : config_.at("layer_types")) {
        flags += type == "sliding_attention" ? '\1' : '\0';
      }
      builder_.array(prefix + "attention.sliding_window_pattern", type_bool, flags.size(), flags);
      return;
    }
    real("rope.freq_base", rope.at("rope_theta").get<double>());
    if (!rope.contains("partial_rotary_factor")) return;
    const double head_dim =
        config_.at("hidden_size").get<double>() / config_.at("num_attention_heads").get<double>();
    builder_.number(
        prefix + "rope.dimension_count", type_u32,
        static_cast<std::uint32_t>(head_dim * rope.at("partial_rotary_factor").get<double>()));
  }

  void write_factors(const std::string& key) {
    const OrderedJson& rope = config_.at("rope_parameters");
    if (!rope.contains(key)) return;
    const auto values = rope.at(key).get<std::vector<float>>();
    add(key == "short_factor" ? "rope_factors_short.weight" : "rope_factors_long.weight",
        {values.size()}, values);
  }

  void write_tensors() {
    const SafetensorsFile file = read_safetensors(folder_ / "model.safetensors");
    for (const TensorInfo& info : file.tensors) {
      std::vector<float> values(static_cast<std::size_t>(info.elements()));
      to_float32(info.dtype, file.file.bytes().subspan(info.offset, info.bytes), values);
      if (rewriting_.gains_plus_one && info.name.find("norm") != std::string::npos) {
        for (float& value : values) value += 1.0F;
      }
      std::vector<std::uint64_t> sizes(info.shape.rbegin(), info.shape.rend());
      add(gguf_name(info.name, rewriting_.post_norms), sizes, values);
    }
  }

  void add(const std::string& name, const std::vector<std::uint64_t>& sizes,
           const std::vector<float>& values) {
    data_.resize((data_.size() + 31) / 32 * 32);
    builder_.tensor(name, tensor_f32, sizes, data_.size());
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }

  Rewriting rewriting_;
  std::filesystem::path folder_;
  OrderedJson config_;
  GgufBuilder builder_;
  std::string data_;
};

class GgufFamily : public ::testing::TestWithParam<Rewriting> {};

TEST_P(GgufFamily, GivesTheLogitsOfTheSafetensors) {
  const c10::InferenceMode inference;
  const TemporaryFolder folder;
  const auto path = folder.write("model.gguf", Writer(GetParam()).write());
  const auto source = onset::testing::data(std::string("models/") + GetParam().fixture);
  const ReferenceTensors reference(source / "reference.safetensors");
  const Model model = Model::open(path);
  for (const std::string prompt : {"a", "b"}) {
    const std::vector<SequenceInput> batch{
        {.ids = reference.ids("input_ids." + prompt), .cache = nullptr}};
    // The tolerance of the fixtures (reference.json) for logits of these families.
    EXPECT_TRUE(close(model.decoder().forward(batch, LogitRows::all).logits,
                      reference.get("logits." + prompt), {.atol = 1e-4, .rtol = 1e-4}))
        << prompt;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufFamily,
                         ::testing::Values(Rewriting{"phi3", "phi3", false, false},
                                           Rewriting{"phi3_long", "phi3", false, false},
                                           Rewriting{"gemma2", "gemma2", true, true},
                                           Rewriting{"gemma3", "gemma3", true, true},
                                           Rewriting{"olmo2", "olmo2", true, false}),
                         [](const auto& parameter) {
                           return std::string(parameter.param.fixture);
                         });

}  // namespace
}  // namespace onset::testing
