// Sites: every place of the forward pass that can be read or edited has one name, the same in the
// code, the JSON, the files and the docs. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onset {

// In the order of the forward pass. Shapes in files, for a prompt of T tokens (legend in
// docs/architecture.md); in the forward pass T is the number of packed rows, except where noted.
enum class SiteKind : std::uint8_t {
  embed,           // [T, D] after a family's scaling
  resid_pre,       // [T, D] input of the block
  attn_norm,       // [T, D] output of the norm before attention
  q_latent,        // [T, query rank] normed, latent attention
  kv_latent,       // [T, key-value rank] normed: what the cache keeps, beside the rotated key part
  q_pre,           // [T, H, K] after bias and QK-norm, before RoPE
  k_pre,           // [T, G, K]
  q,               // [T, H, K] after RoPE
  k,               // [T, G, K]
  v,               // [T, G, V]; V, the value head size, is K but in latent attention
  attn_scores,     // [H, T, S] after scale and mask (-inf where masked); one sequence at a time
  attn_probs,      // [H, T, S] one sequence at a time
  attn_heads,      // [T, H, V] input of o_proj
  attn_raw,        // [T, D] output of o_proj, in families with a norm after it
  attn_out,        // [T, D] what is added to the stream
  resid_mid,       // [T, D]
  ffn_norm,        // [T, D] input of the FFN
  ffn_gate,        // [T, F] before the activation; in dense layers, as the next two
  ffn_up,          // [T, F]
  ffn_product,     // [T, F] act(gate) * up, input of down_proj
  router,          // [T, E] the router's logits; in mixtures, as all down to shared_out
  router_experts,  // [T, chosen] int64, the chosen experts, ascending
  router_weights,  // [T, chosen] what their outputs are multiplied with
  expert_product,  // [rows, F] of one expert, for the rows of SiteContext::rows
  expert_out,      // [rows, D] what the expert adds: its output times its weight
  shared_product,  // [T, F] of the shared expert, where there is one
  shared_out,      // [T, D] what the shared expert adds
  ffn_raw,         // [T, D] output of down_proj, in families with a norm after it
  ffn_out,         // [T, D] what is added to the stream; in mixtures the sum of all experts' parts
  resid_post,      // [T, D] output of the block: (resid_pre + attn_out) + ffn_out
  final_norm,      // [T, D]
  logits,          // [T, V]
};

inline constexpr int site_kind_count = static_cast<int>(SiteKind::logits) + 1;

struct SiteId {
  SiteKind kind = SiteKind::embed;
  std::int64_t layer = -1;   // -1 for embed, final_norm and logits
  std::int64_t expert = -1;  // of expert_product and expert_out

  friend bool operator==(const SiteId&, const SiteId&) = default;
};

// An expert of a mixture layer.
struct ExpertId {
  std::int64_t layer = 0;
  std::int64_t expert = 0;
};

// Which kinds a model or a layer has: one bit a kind, bit 0 that of `embed`.
using SiteKinds = std::uint64_t;

// The sites of a model, and what to call it in messages.
struct SiteTable {
  std::vector<SiteKinds> layers;  // of each layer
  std::int64_t experts = 0;
  std::string model = "the model";
};

struct ModelConfig;
// attn_raw and ffn_raw exist where a norm follows, attn_norm where one precedes attention, latents
// in latent attention, and the FFN's parts by what the layer is, dense or a mixture.
[[nodiscard]] SiteTable site_table(const ModelConfig& config);
// Of a model with as many dense layers, each with every site that one may have.
[[nodiscard]] SiteTable dense_site_table(std::int64_t layer_count);

// The bare name of a kind: "resid_post", "router.experts", "experts.E.out".
[[nodiscard]] std::string_view site_kind_name(SiteKind kind);
// Whether the kind exists once in every layer.
[[nodiscard]] bool is_layer_site(SiteKind kind);
// Whether it exists once for every expert.
[[nodiscard]] constexpr bool is_expert_site(SiteKind kind) {
  return kind == SiteKind::expert_product || kind == SiteKind::expert_out;
}
// "layers.3.resid_post", "layers.3.experts.17.out", "logits".
[[nodiscard]] std::string site_name(SiteId site);

// A set of sites, from patterns separated by commas: "layers.*.resid_post,layers.3.attn_probs,
// logits". A layer is a number, `*`, a range `2-5` or a list `2|5`; negative numbers count from the
// end; the kind may hold `*` for any text ("layers.3.attn_*"), and `*` alone is every site. Experts
// are numbered like layers ("layers.3.experts.0-7.out"); "router" is all three sites of a router.
// A pattern that names nothing is a usage error with the nearest names, or with the reason where
// other families or layers have it.
class SiteSet {
 public:
  explicit SiteSet(std::int64_t layer_count);
  static SiteSet parse(std::string_view patterns, const SiteTable& table);
  static SiteSet parse(std::string_view patterns, std::int64_t layer_count) {
    return parse(patterns, dense_site_table(layer_count));
  }
  static SiteSet parse(std::string_view patterns, const ModelConfig& config) {
    return parse(patterns, site_table(config));
  }

  void add(SiteId site);
  void add_all_layers(SiteKind kind);
  // A site of experts without a number asks for any of them.
  [[nodiscard]] bool contains(SiteId site) const {
    const std::uint64_t bits = mask_[static_cast<std::size_t>(site.layer + 1)];
    if ((bits >> static_cast<int>(site.kind) & 1U) == 0) return false;
    return site.expert < 0 || contains_expert(site);
  }
  // In the order of the forward pass.
  [[nodiscard]] std::vector<SiteId> list() const;
  [[nodiscard]] std::int64_t layer_count() const {
    return static_cast<std::int64_t>(mask_.size()) - 1;
  }

 private:
  [[nodiscard]] bool contains_expert(SiteId site) const;

  // One bit a kind; entry 0 holds the sites outside the layers, entry l + 1 those of layer l.
  std::vector<std::uint64_t> mask_;
  // Of (layer, kind), which experts.
  std::map<std::pair<std::int64_t, SiteKind>, std::vector<bool>> experts_;
};

}  // namespace onset
