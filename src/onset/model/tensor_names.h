// What the weights of a layer are called in files of either format. Inside the model room.
#pragma once

#include <string_view>

namespace onset {

// Behind "model.layers.N." and "blk.N.".
struct TensorNames {
  std::string_view hugging_face;
  std::string_view gguf;
};

struct FfnNames {
  TensorNames gate;
  TensorNames up;
  TensorNames down;
};

namespace tensor_names {

inline constexpr TensorNames attn_norm{"input_layernorm", "attn_norm"};
inline constexpr TensorNames q{"self_attn.q_proj", "attn_q"};
inline constexpr TensorNames k{"self_attn.k_proj", "attn_k"};
inline constexpr TensorNames v{"self_attn.v_proj", "attn_v"};
inline constexpr TensorNames o{"self_attn.o_proj", "attn_output"};
inline constexpr TensorNames q_norm{"self_attn.q_norm", "attn_q_norm"};
inline constexpr TensorNames k_norm{"self_attn.k_norm", "attn_k_norm"};
// Hugging Face calls the norm before the FFN "post_attention_layernorm" where there is none on
// attention's output, and "pre_feedforward_layernorm" where there is.
inline constexpr TensorNames ffn_norm{"post_attention_layernorm", "ffn_norm"};
inline constexpr TensorNames sandwiched_ffn_norm{"pre_feedforward_layernorm", "ffn_norm"};
inline constexpr TensorNames attn_post_norm{"post_attention_layernorm", "post_attention_norm"};
inline constexpr TensorNames ffn_post_norm{"post_feedforward_layernorm", "post_ffw_norm"};
inline constexpr TensorNames q_down{"self_attn.q_a_proj", "attn_q_a"};
inline constexpr TensorNames q_latent_norm{"self_attn.q_a_layernorm", "attn_q_a_norm"};
inline constexpr TensorNames q_up{"self_attn.q_b_proj", "attn_q_b"};
inline constexpr TensorNames kv_down{"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"};
inline constexpr TensorNames kv_latent_norm{"self_attn.kv_a_layernorm", "attn_kv_a_norm"};
inline constexpr TensorNames kv_up{"self_attn.kv_b_proj", "attn_kv_b"};
inline constexpr TensorNames k_up{"", "attn_k_b"};  // the halves of the one above, in GGUF alone
inline constexpr TensorNames v_up{"", "attn_v_b"};
inline constexpr TensorNames fused_qkv{"self_attn.qkv_proj", "attn_qkv"};
inline constexpr TensorNames fused_gate_up{"mlp.gate_up_proj", "ffn_up"};
inline constexpr FfnNames dense{
    {"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"}};

// Mixtral's files call the block "block_sparse_moe" and its matrices w1, w3, w2; the others "mlp".
inline constexpr std::string_view mixtral_block = "block_sparse_moe";
inline constexpr std::string_view common_block = "mlp";

inline constexpr TensorNames router_bias{"mlp.gate", "exp_probs_b"};
inline constexpr TensorNames shared_gate{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"};

// DeepSeek calls it "shared_experts", Qwen "shared_expert".
inline constexpr FfnNames deepseek_shared{{"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                          {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                          {"mlp.shared_experts.down_proj", "ffn_down_shexp"}};
inline constexpr FfnNames qwen_shared{{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                      {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                      {"mlp.shared_expert.down_proj", "ffn_down_shexp"}};

}  // namespace tensor_names
}  // namespace onset
