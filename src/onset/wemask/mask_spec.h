// WeMask (arXiv 2605.08504): from layer m on, dims of the attention input of the massive token are
// multiplied by 1 - gamma, the dims with the largest gains of the norm before attention. One object
// for every way of running a model; docs/wemask.md has the definitions. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

// By what the k dims of a layer are chosen, the largest first and the lower index on ties.
enum class MaskCriterion {
  weight,      // |w|, w the gain of the norm before attention as it multiplies (WeMask)
  activation,  // |attn_norm| of the masked token (what the released code does)
  magnitude,   // |x| of the masked token, x the input of the norm
  random,      // drawn for each layer from the seed
  lowest,      // the smallest |w|
  given,       // listed
};

enum class MaskPlacement {
  post_norm,  // on the output of the norm before attention
  pre_norm,   // on a copy of the norm's input; the rms is that of the masked copy
};

// Which tokens are masked; positions are absolute, so that chunks, caches and padding do not
// matter.
enum class MaskTokens {
  first,      // the first of each sequence
  massive,    // those with an entry above `massive_threshold` in one of `massive_dims`
  positions,  // those at the listed positions of each sequence
};

[[nodiscard]] std::string_view name_of(MaskCriterion criterion);
[[nodiscard]] std::string_view name_of(MaskPlacement placement);
[[nodiscard]] std::string_view name_of(MaskTokens tokens);

// What a mask was made for. The shape must agree, the gains may differ (a fine-tune, another
// quantisation): then the mask may choose other dims than one made anew would.
struct ModelFingerprint {
  std::string architecture;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  // FNV-1a (64 bits) of each layer's gains as little-endian float32.
  std::vector<std::uint64_t> gains;

  // GGUF calls Mistral's models llama, so the two names count as one.
  [[nodiscard]] bool same_shape(const ModelFingerprint& other) const;
};

struct MaskSpec {
  ModelFingerprint model;
  MaskCriterion criterion = MaskCriterion::weight;
  MaskPlacement placement = MaskPlacement::post_norm;
  MaskTokens tokens = MaskTokens::first;
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> massive_dims;
  double massive_threshold = 100.0;
  double gamma = 1.0;           // 1 sets the dims to zero
  std::int64_t from_layer = 0;  // m
  std::int64_t to_layer = 0;    // the last masked layer
  std::int64_t k = 0;
  std::optional<double> rate;  // where k came from a share of D
  std::uint64_t seed = 0;
  // As the released code: the first position of every chunk, and so decoded tokens too; with
  // criterion activation the dims by |attn_norm| there averaged over the batch.
  bool official_compat = false;
  // By layer, in order of choice; empty where the token itself decides (activation, magnitude).
  std::map<std::int64_t, std::vector<std::int64_t>> dims;

  [[nodiscard]] bool masks_layer(std::int64_t layer) const {
    return layer >= from_layer && layer <= to_layer;
  }
  // Whether the dims depend on the token.
  [[nodiscard]] bool is_chosen_by_token() const {
    return criterion == MaskCriterion::activation || criterion == MaskCriterion::magnitude;
  }
};

}  // namespace onset
