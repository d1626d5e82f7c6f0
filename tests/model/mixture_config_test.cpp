// Damaged and hostile configurations of mixtures and latent attention: errors that say what, never
// a crash.
#include <gtest/gtest.h>

#include <cstring>

#include "onset/model/config.h"
#include "onset/model/model.h"
#include "support/fixture_copy.h"
#include "support/support.h"

namespace onset::testing {
namespace {

struct Wrong {
  const char* fixture;
  const char* key;
  OrderedJson value;
  const char* message;
};

std::string error_with(const Wrong& wrong) {
  const TemporaryFolder folder;
  const std::filesystem::path source = onset::testing::data(std::string("models/") + wrong.fixture);
  OrderedJson config = OrderedJson::parse(read_file(source / "config.json"));
  config[wrong.key] = wrong.value;
  write_file_atomically(folder.path() / "config.json", config.dump(1));
  std::filesystem::copy_file(source / "model.safetensors", folder.path() / "model.safetensors");
  return error_of([&] { static_cast<void>(Model::open(folder.path())); });
}

void expect_errors(const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    const std::string error = error_with(wrong);
    EXPECT_NE(error.find(wrong.message), std::string::npos)
        << wrong.fixture << " with " << wrong.key << " " << wrong.value.dump() << ": " << error;
  }
}

constexpr std::int64_t huge = std::int64_t{1} << 62;

TEST(MixtureConfig, WhatCannotBeRoutedIsRefused) {
  const char* sent = "the number of experts a token is sent to is ";
  expect_errors({
      {"mixtral", "num_experts_per_tok", 0, sent},
      {"mixtral", "num_experts_per_tok", 5, sent},
      {"mixtral", "num_experts_per_tok", -1, sent},
      {"mixtral", "num_experts_per_tok", huge, sent},
      {"mixtral", "num_experts_per_tok", nullptr, "num_experts_per_tok"},
      {"mixtral", "num_experts_per_tok", "2", "num_experts_per_tok"},
      {"mixtral", "num_local_experts", 0, "the number of experts is 0"},
      {"mixtral", "num_local_experts", -3, "the number of experts is -3"},
      {"mixtral", "num_local_experts", huge, "the number of experts is"},
      {"mixtral", "num_local_experts", nullptr, "num_local_experts"},
      {"mixtral", "num_local_experts", 5, "block_sparse_moe.gate.weight has shape [4, 48]"},
      {"qwen3_moe", "num_local_experts", 3, "mlp.gate.weight has shape [8, 48]"},
      {"qwen3_moe", "moe_intermediate_size", 0, "the experts' FFN size is 0"},
      {"qwen3_moe", "moe_intermediate_size", huge, "the experts' FFN size is"},
      {"qwen3_moe", "decoder_sparse_step", 0, "decoder_sparse_step is 0"},
      {"qwen3_moe", "mlp_only_layers", "0", "mlp_only_layers should be a list"},
      {"qwen3_moe", "mlp_only_layers", {0.5}, "mlp_only_layers should be a list"},
      {"qwen2_moe", "shared_expert_intermediate_size", -1, "the shared expert's FFN size is -1"},
      {"qwen2_moe", "shared_expert_intermediate_size", huge, "the shared expert's FFN size is"},
      {"qwen2_moe", "shared_expert_intermediate_size", 32,
       "mlp.shared_expert.gate_proj.weight has"},
      {"qwen2_moe", "norm_topk_prob", "no", "norm_topk_prob"},
  });
}

TEST(MixtureConfig, GroupsThatDoNotDivideOrHoldTooFewAreRefused) {
  expect_errors({
      {"deepseek_v3", "n_group", 3, "8 experts do not divide into 3 groups"},
      {"deepseek_v3", "n_group", 0, "do not divide into 0 groups"},
      {"deepseek_v3", "n_group", -4, "do not divide into -4 groups"},
      {"deepseek_v3", "topk_group", 0, "the number of chosen groups is 0"},
      {"deepseek_v3", "topk_group", 5, "the number of chosen groups is 5"},
      {"deepseek_v3", "num_experts_per_tok", 5,
       "2 groups of 2 experts do not hold the 5 that a token is sent to"},
      {"deepseek_v3", "n_shared_experts", huge, "n_shared_experts is"},
      {"deepseek_v3", "n_shared_experts", std::int64_t{1} << 26, "the shared expert's FFN size is"},
      {"deepseek_v3", "n_shared_experts", -1, "n_shared_experts is -1"},
      {"deepseek_v3", "n_shared_experts", 2, "mlp.shared_experts.gate_proj.weight has shape"},
      {"deepseek_v3", "n_routed_experts", -8, "the number of experts is -8"},
      {"deepseek_v3", "routed_scaling_factor", 0, "the experts' weights are scaled by 0"},
      {"deepseek_v3", "routed_scaling_factor", -2.5, "the experts' weights are scaled by -2.5"},
      {"deepseek_v3", "scoring_func", "softmax", "scoring_func \"softmax\" is not known"},
      {"deepseek_v2", "scoring_func", "sigmoid", "scoring_func \"sigmoid\" is not known"},
      {"deepseek_v2", "topk_method", "best", "topk_method \"best\" is not known"},
      {"deepseek_v2", "moe_layer_freq", 0, "moe_layer_freq is 0"},
      {"deepseek_v2", "first_k_dense_replace", 0, "model.layers.0.mlp.gate.weight"},
      {"deepseek_v2", "first_k_dense_replace", 3, "model.layers.1.mlp.gate_proj.weight"},
      {"deepseek_v3", "num_nextn_predict_layers", -1, "layers for further tokens is -1"},
      {"deepseek_v3", "num_nextn_predict_layers", huge, "layers for further tokens is"},
  });
}

TEST(MixtureConfig, LatentSizesOutOfRangeAreRefused) {
  expect_errors({
      {"deepseek_v3", "kv_lora_rank", 0, "the rank of the key-value latent is 0"},
      {"deepseek_v3", "kv_lora_rank", -20, "the rank of the key-value latent is -20"},
      {"deepseek_v3", "kv_lora_rank", huge, "the rank of the key-value latent is"},
      {"deepseek_v3", "kv_lora_rank", nullptr, "kv_lora_rank"},
      {"deepseek_v3", "q_lora_rank", -24, "the rank of the query latent is -24"},
      {"deepseek_v3", "q_lora_rank", huge, "the rank of the query latent is"},
      {"deepseek_v3", "q_lora_rank", nullptr, "self_attn.q_proj.weight"},
      {"deepseek_v2_lite", "q_lora_rank", 24, "self_attn.q_b_proj.weight"},
      {"deepseek_v3", "qk_rope_head_dim", 0, "the rotated part of a head is 0"},
      {"deepseek_v3", "qk_rope_head_dim", -16, "qk_rope_head_dim is -16"},
      {"deepseek_v3", "qk_rope_head_dim", 15, "RoPE turns 15"},
      {"deepseek_v3", "qk_rope_head_dim", huge, "qk_rope_head_dim is"},
      {"deepseek_v3", "qk_nope_head_dim", 0, "the rotated part of a head is 16"},
      {"deepseek_v3", "qk_nope_head_dim", -1, "qk_nope_head_dim is -1"},
      {"deepseek_v3", "v_head_dim", 0, "the value head size is 0"},
      {"deepseek_v3", "v_head_dim", huge, "the value head size is"},
      {"deepseek_v3", "v_head_dim", 16, "has shape"},
  });
}

// The fixture's GGUF file with bytes changed.
class GgufMixtureConfig : public ::testing::Test {
 protected:
  static std::string file(const std::string& fixture) {
    return read_file(onset::testing::data("models/" + fixture + "/f32.gguf"));
  }
  // The number behind a key, its type skipped.
  static std::string with_number(std::string bytes, const std::string& key, std::uint32_t value) {
    const std::size_t at = bytes.find(key);
    EXPECT_NE(at, std::string::npos) << key;
    std::memcpy(bytes.data() + at + key.size() + 4, &value, sizeof value);
    return bytes;
  }
  // All names in which it stands, by one of equal length.
  static std::string renamed(std::string bytes, const std::string& from, const std::string& to) {
    std::size_t found = 0;
    for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at)) {
      bytes.replace(at, to.size(), to);
      ++found;
    }
    EXPECT_GT(found, 0U) << from;
    return bytes;
  }
  static std::string error(const std::string& bytes) {
    const TemporaryFolder folder;
    const auto path = folder.write("model.gguf", bytes);
    return error_of([&] { static_cast<void>(Model::open(path)); });
  }
};

TEST_F(GgufMixtureConfig, NumbersThatDoNotFitAreRefused) {
  for (const auto& [fixture, key, value, message] :
       std::vector<std::tuple<const char*, const char*, std::uint32_t, const char*>>{
           {"mixtral", "llama.expert_used_count", 0, "experts a token is sent to is 0"},
           {"mixtral", "llama.expert_used_count", 5, "experts a token is sent to is 5"},
           {"mixtral", "llama.expert_count", 5, "blk.0.ffn_gate_inp.weight has shape [4, 48]"},
           {"mixtral", "llama.expert_count", 1U << 31, "the number of experts is"},
           {"mixtral", "llama.expert_count", 0, "blk.0.ffn_gate.weight"},
           {"qwen3_moe", "qwen3moe.expert_feed_forward_length", 16, "has shape"},
           {"qwen3_moe", "qwen3moe.expert_feed_forward_length", 1U << 31,
            "the experts' FFN size is"},
           {"deepseek_v3", "deepseek2.expert_group_count", 3, "do not divide into 3 groups"},
           {"deepseek_v3", "deepseek2.expert_group_used_count", 9, "chosen groups is 9"},
           {"deepseek_v3", "deepseek2.expert_gating_func", 7, "expert_gating_func is 7"},
           {"deepseek_v3", "deepseek2.attention.kv_lora_rank", 0, "key-value latent is 0"},
           {"deepseek_v3", "deepseek2.attention.kv_lora_rank", 1U << 31, "key-value latent is"},
           {"deepseek_v3", "deepseek2.attention.q_lora_rank", 1U << 31, "query latent is"},
           {"deepseek_v3", "deepseek2.attention.key_length_mla", 16, "the rotated part of a head"},
           {"deepseek_v3", "deepseek2.attention.value_length_mla", 0, "the value head size is 0"},
           {"deepseek_v3", "deepseek2.rope.dimension_count", 0, "the rotated part of a head is 0"},
           {"deepseek_v3", "deepseek2.rope.dimension_count", 1U << 31, "the rotated part"}}) {
    const std::string found = error(with_number(file(fixture), key, value));
    EXPECT_NE(found.find(message), std::string::npos) << key << " " << value << ": " << found;
  }
}

TEST_F(GgufMixtureConfig, StacksAndRoutersThatAreMissingAreNamed) {
  for (const auto& [fixture, from, to, message] :
       std::vector<std::tuple<const char*, const char*, const char*, const char*>>{
           {"mixtral", "ffn_gate_exps", "ffn_gate_expx", "blk.0.ffn_gate_exps.weight"},
           {"mixtral", "ffn_down_exps", "ffn_down_expx", "blk.0.ffn_down_exps.weight"},
           {"mixtral", "ffn_gate_inp", "ffn_gate_inx", "blk.0.ffn_gate.weight"},
           {"deepseek_v3", "exp_probs_b", "exp_probs_x", "blk.1.exp_probs_b.bias"},
           {"deepseek_v3", "attn_v_b", "attn_v_x", "blk.0.attn_v_b.weight"},
           {"deepseek_v3", "attn_k_b", "attn_k_x", "blk.0.attn_k_b.weight"},
           {"deepseek_v2_lite", "attn_kv_b", "attn_kv_x", "blk.0.attn_k_b.weight"},
           {"deepseek_v3", "ffn_up_shexp", "ffn_up_shexx", "blk.1.ffn_up_shexp.weight"}}) {
    const std::string found = error(renamed(file(fixture), from, to));
    EXPECT_NE(found.find(message), std::string::npos) << from << ": " << found;
  }
}

}  // namespace
}  // namespace onset::testing
