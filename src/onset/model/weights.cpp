#include "onset/model/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "onset/base/error.h"

namespace onset {
namespace {

struct TensorNames {
  std::string_view hugging_face;
  std::string_view gguf;
};

// Names inside a layer, behind "model.layers.N." and "blk.N.".
constexpr TensorNames attn_norm_name{"input_layernorm", "attn_norm"};
constexpr TensorNames q_name{"self_attn.q_proj", "attn_q"};
constexpr TensorNames k_name{"self_attn.k_proj", "attn_k"};
constexpr TensorNames v_name{"self_attn.v_proj", "attn_v"};
constexpr TensorNames o_name{"self_attn.o_proj", "attn_output"};
constexpr TensorNames q_norm_name{"self_attn.q_norm", "attn_q_norm"};
constexpr TensorNames k_norm_name{"self_attn.k_norm", "attn_k_norm"};
constexpr TensorNames ffn_norm_name{"post_attention_layernorm", "ffn_norm"};
constexpr TensorNames gate_name{"mlp.gate_proj", "ffn_gate"};
constexpr TensorNames up_name{"mlp.up_proj", "ffn_up"};
constexpr TensorNames down_name{"mlp.down_proj", "ffn_down"};

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

// Finds tensors by either format's names and checks their shape and type.
class Finder {
 public:
  Finder(const Checkpoint& checkpoint, Compute compute)
      : checkpoint_(checkpoint),
        compute_(compute),
        gguf_(checkpoint.format() == CheckpointFormat::gguf) {
    // A base model saved without its head has no "model." before its names.
    if (!gguf_ && checkpoint.find("model.embed_tokens.weight") == nullptr &&
        checkpoint.find("embed_tokens.weight") != nullptr) {
      prefix_.clear();
    }
  }

  [[nodiscard]] std::string layer_name(std::int64_t layer, TensorNames names) const {
    return gguf_ ? str_cat("blk.", layer, ".", names.gguf)
                 : str_cat(prefix_, "layers.", layer, ".", names.hugging_face);
  }
  [[nodiscard]] std::string embedding_name() const {
    return gguf_ ? "token_embd" : prefix_ + "embed_tokens";
  }
  [[nodiscard]] std::string final_norm_name() const {
    return gguf_ ? "output_norm" : prefix_ + "norm";
  }
  [[nodiscard]] std::string head_name() const { return gguf_ ? "output" : "lm_head"; }

  [[nodiscard]] const TensorInfo* find(const std::string& name, std::string_view suffix) const {
    return checkpoint_.find(str_cat(name, ".", suffix));
  }

  // A matrix [rows, columns] under NAME.weight.
  StoredMatrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const TensorInfo& info = checkpoint_.require(name + ".weight");
    check(info, std::array{rows, columns});
    note(info);
    return {checkpoint_.data(info), info.dtype, rows, columns};
  }

  // A small vector under NAME.SUFFIX as a tensor of the residual type.
  at::Tensor vector(const std::string& name, std::string_view suffix, std::int64_t size) {
    const TensorInfo& info = checkpoint_.require(str_cat(name, ".", suffix));
    check(info, std::array{size});
    note(info);
    const at::Tensor values = expand({checkpoint_.data(info), info.dtype, 1, size}, at::kFloat);
    const at::Tensor row = values.view({size});
    return compute_ == Compute::f64 ? row.to(at::kDouble) : row;
  }

  // A bias where the file holds one; an error where the configuration promises one.
  at::Tensor bias(const std::string& name, std::int64_t size, bool promised) {
    if (find(name, "bias") == nullptr && !promised) return {};
    return vector(name, "bias", size);
  }

  Linear linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool has_bias,
                std::int64_t permuted_head_dim = 0) {
    const StoredMatrix weight = matrix(name, rows, columns);
    return {weight, bias(name, rows, has_bias), compute_, permuted_head_dim};
  }

  // The tensors found since the last call.
  std::vector<const TensorInfo*> take_noted() { return std::exchange(noted_, {}); }

 private:
  void note(const TensorInfo& info) { noted_.push_back(&info); }

  void check(const TensorInfo& info, std::span<const std::int64_t> shape) const {
    const std::string file = checkpoint_.files()[info.file].path().string();
    require_input(std::equal(info.shape.begin(), info.shape.end(), shape.begin(), shape.end()),
                  file, ": tensor ", info.name, " has shape ", shape_text(info.shape),
                  ", expected ", shape_text(shape), " by the configuration");
    require_input(converts_to_float32(info.dtype), file, ": tensor ", info.name, " has type ",
                  dtype_info(info.dtype).name, ", expected a floating-point or quantised type");
  }

  const Checkpoint& checkpoint_;
  Compute compute_;
  bool gguf_;
  std::string prefix_ = "model.";
  std::vector<const TensorInfo*> noted_;
};

AttentionWeights find_attention(Finder& finder, const ModelConfig& config, std::int64_t layer) {
  const std::int64_t q_size = config.heads * config.head_dim;
  const std::int64_t kv_size = config.kv_heads * config.head_dim;
  const std::int64_t permuted = config.gguf_permuted_qk ? config.head_dim : 0;
  AttentionWeights weights;
  weights.q = finder.linear(finder.layer_name(layer, q_name), q_size, config.hidden,
                            config.qkv_bias, permuted);
  weights.k = finder.linear(finder.layer_name(layer, k_name), kv_size, config.hidden,
                            config.qkv_bias, permuted);
  weights.v =
      finder.linear(finder.layer_name(layer, v_name), kv_size, config.hidden, config.qkv_bias);
  weights.o =
      finder.linear(finder.layer_name(layer, o_name), config.hidden, q_size, config.output_bias);
  if (config.qk_norm) {
    weights.q_norm =
        finder.vector(finder.layer_name(layer, q_norm_name), "weight", config.head_dim);
    weights.k_norm =
        finder.vector(finder.layer_name(layer, k_norm_name), "weight", config.head_dim);
  }
  return weights;
}

LayerWeights find_layer(Finder& finder, const ModelConfig& config, std::int64_t layer) {
  LayerWeights weights;
  weights.attn_norm =
      finder.vector(finder.layer_name(layer, attn_norm_name), "weight", config.hidden);
  weights.attention = find_attention(finder, config, layer);
  weights.ffn_norm =
      finder.vector(finder.layer_name(layer, ffn_norm_name), "weight", config.hidden);
  weights.ffn.gate = finder.linear(finder.layer_name(layer, gate_name), config.ffn, config.hidden,
                                   config.ffn_bias);
  weights.ffn.up =
      finder.linear(finder.layer_name(layer, up_name), config.ffn, config.hidden, config.ffn_bias);
  weights.ffn.down = finder.linear(finder.layer_name(layer, down_name), config.hidden, config.ffn,
                                   config.ffn_bias);
  weights.tensors = finder.take_noted();
  return weights;
}

// Compares all of small matrices, and rows spread over large ones, which would cost a read of
// gigabytes.
bool look_equal(const StoredMatrix& a, const StoredMatrix& b) {
  constexpr std::size_t read_whole = std::size_t{64} << 20;
  constexpr std::int64_t sampled_rows = 256;
  if (a.dtype != b.dtype || a.bytes.size() != b.bytes.size()) return false;
  const auto same = [](std::span<const std::byte> x, std::span<const std::byte> y) {
    return std::memcmp(x.data(), y.data(), x.size()) == 0;
  };
  if (a.bytes.size() <= read_whole) return same(a.bytes, b.bytes);
  for (std::int64_t i = 0; i < sampled_rows; ++i) {
    const std::int64_t row = i * (a.rows - 1) / (sampled_rows - 1);
    if (!same(a.row_range(row, 1), b.row_range(row, 1))) return false;
  }
  return true;
}

void find_head(Finder& finder, const Checkpoint& checkpoint, const ModelConfig& config,
               Compute compute, const Log& log, ModelWeights& weights) {
  if (finder.find(finder.head_name(), "weight") == nullptr) {
    require_input(config.tied_embeddings, checkpoint.path().string(), ": tensor ",
                  finder.head_name(),
                  ".weight is missing, and the configuration does not tie it to the embedding");
    weights.tied = true;
    weights.head = Linear(weights.embedding, {}, compute);
    return;
  }
  weights.head = finder.linear(finder.head_name(), config.vocabulary, config.hidden, false);
  if (config.tied_embeddings && !look_equal(weights.head.stored(), weights.embedding)) {
    log.warning(str_cat(checkpoint.path().string(),
                        ": the configuration ties the head to the "
                        "embedding, but the file holds another ",
                        finder.head_name(), ".weight, which is used"));
  }
}

}  // namespace

ModelWeights find_weights(const Checkpoint& checkpoint, const ModelConfig& config, Compute compute,
                          const Log& log) {
  Finder finder(checkpoint, compute);
  ModelWeights weights;
  weights.embedding = finder.matrix(finder.embedding_name(), config.vocabulary, config.hidden);
  finder.take_noted();
  weights.layers.reserve(config.layers.size());
  for (std::int64_t layer = 0; layer < config.layer_count(); ++layer) {
    weights.layers.push_back(find_layer(finder, config, layer));
  }
  weights.final_norm = finder.vector(finder.final_norm_name(), "weight", config.hidden);
  find_head(finder, checkpoint, config, compute, log, weights);
  return weights;
}

}  // namespace onset
