// Small models made in a test: a Hugging Face folder with chosen sizes and weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/checkpoint/safetensors.h"
#include "support/support.h"

namespace onset::testing {

// A random Llama-like model; fields may be changed before write().
class Toy {
 public:
  OrderedJson config = {{"model_type", "llama"},
                        {"hidden_size", 8},
                        {"intermediate_size", 16},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 2},
                        {"num_key_value_heads", 1},
                        {"vocab_size", 32},
                        {"rms_norm_eps", 1e-6},
                        {"max_position_embeddings", 64},
                        {"tie_word_embeddings", false},
                        {"eos_token_id", 2}};
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, std::vector<std::int64_t>> shapes;

  // Draws all weights for the sizes that `config` says; gains are 1 + a little.
  void draw(std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0F, 0.3F);
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, float mean) {
      std::int64_t count = 1;
      for (const std::int64_t size : shape) count *= size;
      std::vector<float>& tensor = values[name];
      tensor.resize(static_cast<std::size_t>(count));
      for (float& value : tensor) value = mean + normal(random);
      shapes[name] = std::move(shape);
    };
    const auto hidden = config.at("hidden_size").get<std::int64_t>();
    const auto heads = config.at("num_attention_heads").get<std::int64_t>();
    const auto groups = config.at("num_key_value_heads").get<std::int64_t>();
    const auto dim = config.value("head_dim", hidden / heads);
    const auto inner = config.at("intermediate_size").get<std::int64_t>();
    const auto vocabulary = config.at("vocab_size").get<std::int64_t>();
    const std::string type = config.at("model_type").get<std::string>();
    add("model.embed_tokens.weight", {vocabulary, hidden}, 0);
    for (std::int64_t l = 0; l < config.at("num_hidden_layers").get<std::int64_t>(); ++l) {
      const std::string layer = "model.layers." + std::to_string(l) + ".";
      add(layer + "input_layernorm.weight", {hidden}, 1);
      add(layer + "post_attention_layernorm.weight", {hidden}, 1);
      add(layer + "self_attn.q_proj.weight", {heads * dim, hidden}, 0);
      add(layer + "self_attn.k_proj.weight", {groups * dim, hidden}, 0);
      add(layer + "self_attn.v_proj.weight", {groups * dim, hidden}, 0);
      add(layer + "self_attn.o_proj.weight", {hidden, heads * dim}, 0);
      if (type == "qwen3") {
        add(layer + "self_attn.q_norm.weight", {dim}, 1);
        add(layer + "self_attn.k_norm.weight", {dim}, 1);
      }
      if (type == "qwen2") {
        add(layer + "self_attn.q_proj.bias", {heads * dim}, 0);
        add(layer + "self_attn.k_proj.bias", {groups * dim}, 0);
        add(layer + "self_attn.v_proj.bias", {groups * dim}, 0);
      }
      add(layer + "mlp.gate_proj.weight", {inner, hidden}, 0);
      add(layer + "mlp.up_proj.weight", {inner, hidden}, 0);
      add(layer + "mlp.down_proj.weight", {hidden, inner}, 0);
    }
    add("model.norm.weight", {hidden}, 1);
    if (!config.value("tie_word_embeddings", false)) add("lm_head.weight", {vocabulary, hidden}, 0);
  }

  void remove(const std::string& name) {
    values.erase(name);
    shapes.erase(name);
  }

  // Writes config.json and model.safetensors into the folder.
  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "config.json", config.dump(1));
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : values) {
      const auto bytes = std::as_bytes(std::span(tensor));
      tensors.push_back({name, DType::f32, shapes.at(name), {bytes.begin(), bytes.end()}});
    }
    write_safetensors(folder / "model.safetensors", tensors);
  }
};

}  // namespace onset::testing
