// Sites: every place of the forward pass that can be read or edited has one name, the same in the
// code, the JSON, the files and the docs. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

// In the order of the forward pass. Shapes in files, for a prompt of T tokens (legend in
// docs/architecture.md); in the forward pass T is the number of packed rows, except where noted.
enum class SiteKind : std::uint8_t {
  embed,        // [T, D] after a family's scaling
  resid_pre,    // [T, D] input of the block
  attn_norm,    // [T, D] output of the norm before attention
  q_pre,        // [T, H, K] after bias and QK-norm, before RoPE
  k_pre,        // [T, G, K]
  q,            // [T, H, K] after RoPE
  k,            // [T, G, K]
  v,            // [T, G, K]
  attn_scores,  // [H, T, S] after scale and mask (-inf where masked); one sequence at a time
  attn_probs,   // [H, T, S] one sequence at a time
  attn_heads,   // [T, H, K] input of o_proj
  attn_raw,     // [T, D] output of o_proj, in families with a norm after it
  attn_out,     // [T, D] what is added to the stream
  resid_mid,    // [T, D]
  ffn_norm,     // [T, D] input of the FFN
  ffn_gate,     // [T, F] before the activation
  ffn_up,       // [T, F]
  ffn_product,  // [T, F] act(gate) * up, input of down_proj
  ffn_raw,      // [T, D] output of down_proj, in families with a norm after it
  ffn_out,      // [T, D] what is added to the stream
  resid_post,   // [T, D] output of the block: (resid_pre + attn_out) + ffn_out
  final_norm,   // [T, D]
  logits,       // [T, V]
};

inline constexpr int site_kind_count = static_cast<int>(SiteKind::logits) + 1;

struct SiteId {
  SiteKind kind = SiteKind::embed;
  std::int64_t layer = -1;  // -1 for embed, final_norm and logits

  friend bool operator==(const SiteId&, const SiteId&) = default;
};

// Which kinds a model has: one bit a kind, bit 0 that of `embed`.
using SiteKinds = std::uint64_t;
inline constexpr SiteKinds all_site_kinds = (SiteKinds{1} << site_kind_count) - 1;

struct ModelConfig;
// attn_raw and ffn_raw exist where a norm follows, attn_norm where one precedes attention.
[[nodiscard]] SiteKinds site_kinds(const ModelConfig& config);

// The bare name of a kind: "resid_post".
[[nodiscard]] std::string_view site_kind_name(SiteKind kind);
// Whether the kind exists once in every layer.
[[nodiscard]] bool is_layer_site(SiteKind kind);
// "layers.3.resid_post", "logits".
[[nodiscard]] std::string site_name(SiteId site);

// A set of sites, from patterns separated by commas: "layers.*.resid_post,layers.3.attn_probs,
// logits". A layer is a number, `*`, a range `2-5` or a list `2|5`; negative numbers count from the
// end; the kind may hold `*` for any text ("layers.3.attn_*"), and `*` alone is every site. `kinds`
// limits what exists, and `model` names what has these kinds, for messages. A pattern that names
// nothing is a usage error with the nearest names, or with the reason where other families have it.
class SiteSet {
 public:
  explicit SiteSet(std::int64_t layer_count);
  static SiteSet parse(std::string_view patterns, std::int64_t layer_count,
                       SiteKinds kinds = all_site_kinds, std::string_view model = "the model");

  void add(SiteId site);
  void add_all_layers(SiteKind kind);
  [[nodiscard]] bool contains(SiteId site) const {
    return (mask_[static_cast<std::size_t>(site.layer + 1)] >> static_cast<int>(site.kind) & 1U) !=
           0;
  }
  // In the order of the forward pass.
  [[nodiscard]] std::vector<SiteId> list() const;
  [[nodiscard]] std::int64_t layer_count() const {
    return static_cast<std::int64_t>(mask_.size()) - 1;
  }

 private:
  // One bit a kind; entry 0 holds the sites outside the layers, entry l + 1 those of layer l.
  std::vector<std::uint64_t> mask_;
};

}  // namespace onset
