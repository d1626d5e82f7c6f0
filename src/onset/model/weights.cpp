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
// Hugging Face calls the norm before the FFN "post_attention_layernorm" where there is none on
// attention's output, and "pre_feedforward_layernorm" where there is.
constexpr TensorNames ffn_norm_name{"post_attention_layernorm", "ffn_norm"};
constexpr TensorNames sandwiched_ffn_norm_name{"pre_feedforward_layernorm", "ffn_norm"};
constexpr TensorNames attn_post_norm_name{"post_attention_layernorm", "post_attention_norm"};
constexpr TensorNames ffn_post_norm_name{"post_feedforward_layernorm", "post_ffw_norm"};
constexpr TensorNames fused_qkv_name{"self_attn.qkv_proj", "attn_qkv"};
constexpr TensorNames fused_gate_up_name{"mlp.gate_up_proj", "ffn_up"};
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
    if (gguf_) return;
    // A base model saved without its head has no "model." before its names; a model of text and
    // images has more.
    for (const char* prefix : {"model.", "", "language_model.model.", "model.language_model."}) {
      if (checkpoint.find(str_cat(prefix, "embed_tokens.weight")) == nullptr) continue;
      prefix_ = prefix;
      break;
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

  // The gain of a norm, as it multiplies.
  at::Tensor gain(const std::string& name, std::int64_t size, bool plus_one) {
    const at::Tensor stored = vector(name, "weight", size);
    return plus_one ? stored.add(1.0) : stored;
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

  // Consecutive row ranges of one stored matrix, each as a linear layer of its own.
  std::vector<Linear> divided(const std::string& name, std::span<const std::int64_t> rows,
                              std::int64_t columns) {
    std::int64_t total = 0;
    for (const std::int64_t count : rows) total += count;
    const StoredMatrix whole = matrix(name, total, columns);
    const at::Tensor whole_bias = bias(name, total, false);
    std::vector<Linear> parts;
    std::int64_t first = 0;
    for (const std::int64_t count : rows) {
      const StoredMatrix part{whole.row_range(first, count), whole.dtype, count, columns};
      parts.emplace_back(
          part, whole_bias.defined() ? whole_bias.narrow(0, first, count) : at::Tensor(), compute_);
      first += count;
    }
    return parts;
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
  const auto name = [&](TensorNames names) { return finder.layer_name(layer, names); };
  const std::int64_t q_size = config.heads * config.head_dim;
  const std::int64_t kv_size = config.kv_heads * config.head_dim;
  const std::int64_t permuted = config.gguf_permuted_qk ? config.head_dim : 0;
  AttentionWeights weights;
  if (config.fused_projections) {
    auto parts =
        finder.divided(name(fused_qkv_name), std::array{q_size, kv_size, kv_size}, config.hidden);
    weights.q = std::move(parts[0]);
    weights.k = std::move(parts[1]);
    weights.v = std::move(parts[2]);
  } else {
    const bool bias = config.qkv_bias;
    weights.q = finder.linear(name(q_name), q_size, config.hidden, bias, permuted);
    weights.k = finder.linear(name(k_name), kv_size, config.hidden, bias, permuted);
    weights.v = finder.linear(name(v_name), kv_size, config.hidden, bias);
  }
  weights.o = finder.linear(name(o_name), config.hidden, q_size, config.output_bias);
  if (config.qk_norm != QkNorm::none) {
    const bool whole = config.qk_norm == QkNorm::whole;
    weights.q_norm =
        finder.gain(name(q_norm_name), whole ? q_size : config.head_dim, config.norm_plus_one);
    weights.k_norm =
        finder.gain(name(k_norm_name), whole ? kv_size : config.head_dim, config.norm_plus_one);
  }
  return weights;
}

FfnWeights find_ffn(Finder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto name = [&](TensorNames names) { return finder.layer_name(layer, names); };
  FfnWeights weights;
  if (config.fused_projections) {
    auto parts =
        finder.divided(name(fused_gate_up_name), std::array{config.ffn, config.ffn}, config.hidden);
    weights.gate = std::move(parts[0]);
    weights.up = std::move(parts[1]);
  } else {
    weights.gate = finder.linear(name(gate_name), config.ffn, config.hidden, config.ffn_bias);
    weights.up = finder.linear(name(up_name), config.ffn, config.hidden, config.ffn_bias);
  }
  weights.down = finder.linear(name(down_name), config.hidden, config.ffn, config.ffn_bias);
  return weights;
}

LayerWeights find_layer(Finder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto gain = [&](TensorNames names) {
    return finder.gain(finder.layer_name(layer, names), config.hidden, config.norm_plus_one);
  };
  LayerWeights weights;
  if (config.pre_norms) {
    weights.attn_norm = gain(attn_norm_name);
    weights.ffn_norm = gain(config.post_norms ? sandwiched_ffn_norm_name : ffn_norm_name);
  }
  if (config.post_norms) {
    weights.attn_post_norm = gain(attn_post_norm_name);
    weights.ffn_post_norm = gain(ffn_post_norm_name);
  }
  weights.attention = find_attention(finder, config, layer);
  weights.ffn = find_ffn(finder, config, layer);
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
  const std::string beyond = finder.layer_name(config.layer_count(), down_name);
  require_input(finder.find(beyond, "weight") == nullptr, checkpoint.path().string(), ": holds ",
                beyond, ".weight, but the configuration has ", config.layer_count(), " layers");
  weights.final_norm = finder.gain(finder.final_norm_name(), config.hidden, config.norm_plus_one);
  find_head(finder, checkpoint, config, compute, log, weights);
  return weights;
}

}  // namespace onset
