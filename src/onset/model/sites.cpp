#include "onset/model/sites.h"

#include <array>

#include "onset/base/error.h"
#include "onset/model/config.h"

namespace onset {
namespace {

struct KindRow {
  std::string_view name;
  bool in_layer;
};

constexpr std::array<KindRow, site_kind_count> kind_rows{{
    {"embed", false},
    {"resid_pre", true},
    {"attn_norm", true},
    {"q_latent", true},
    {"kv_latent", true},
    {"q_pre", true},
    {"k_pre", true},
    {"q", true},
    {"k", true},
    {"v", true},
    {"attn_scores", true},
    {"attn_probs", true},
    {"attn_heads", true},
    {"attn_raw", true},
    {"attn_out", true},
    {"resid_mid", true},
    {"ffn_norm", true},
    {"ffn_gate", true},
    {"ffn_up", true},
    {"ffn_product", true},
    {"router", true},
    {"router.experts", true},
    {"router.weights", true},
    {"experts.E.product", true},
    {"experts.E.out", true},
    {"shared_product", true},
    {"shared_out", true},
    {"ffn_raw", true},
    {"ffn_out", true},
    {"resid_post", true},
    {"final_norm", false},
    {"logits", false},
}};

const KindRow& row(SiteKind kind) { return kind_rows[static_cast<std::size_t>(kind)]; }

constexpr SiteKinds bit(SiteKind kind) { return SiteKinds{1} << static_cast<int>(kind); }

constexpr SiteKinds outside =
    bit(SiteKind::embed) | bit(SiteKind::final_norm) | bit(SiteKind::logits);
constexpr SiteKinds latents = bit(SiteKind::q_latent) | bit(SiteKind::kv_latent);
constexpr SiteKinds of_dense_ffn =
    bit(SiteKind::ffn_gate) | bit(SiteKind::ffn_up) | bit(SiteKind::ffn_product);
constexpr SiteKinds of_shared_expert = bit(SiteKind::shared_product) | bit(SiteKind::shared_out);
constexpr SiteKinds of_mixture = bit(SiteKind::router) | bit(SiteKind::router_experts) |
                                 bit(SiteKind::router_weights) | bit(SiteKind::expert_product) |
                                 bit(SiteKind::expert_out) | of_shared_expert;
constexpr SiteKinds all_kinds = (SiteKinds{1} << site_kind_count) - 1;

}  // namespace

std::string_view site_kind_name(SiteKind kind) { return row(kind).name; }

bool is_layer_site(SiteKind kind) { return row(kind).in_layer; }

std::string site_name(SiteId site) {
  const std::string_view name = site_kind_name(site.kind);
  if (site.layer < 0) return std::string(name);
  if (!is_expert_site(site.kind) || site.expert < 0) {
    return str_cat("layers.", site.layer, ".", name);
  }
  return str_cat("layers.", site.layer, ".experts.", site.expert, name.substr(name.rfind('.')));
}

SiteTable site_table(const ModelConfig& config) {
  SiteKinds common = all_kinds & ~outside;
  if (!config.pre_norms) common &= ~bit(SiteKind::attn_norm);
  if (!config.post_norms) common &= ~(bit(SiteKind::attn_raw) | bit(SiteKind::ffn_raw));
  if (!config.has_latent_attention()) common &= ~latents;
  if (config.latent.query_rank == 0) common &= ~bit(SiteKind::q_latent);
  if (config.mixture.shared_ffn == 0) common &= ~of_shared_expert;
  SiteTable table;
  for (const LayerConfig& layer : config.layers) {
    table.layers.push_back(common & ~(layer.mixture ? of_dense_ffn : of_mixture));
  }
  table.experts = config.mixture.experts;
  table.model = config.architecture;
  return table;
}

SiteTable dense_site_table(std::int64_t layer_count) {
  SiteTable table;
  table.layers.assign(static_cast<std::size_t>(layer_count),
                      all_kinds & ~(outside | latents | of_mixture));
  return table;
}

SiteSet::SiteSet(std::int64_t layer_count) : mask_(static_cast<std::size_t>(layer_count) + 1, 0) {}

void SiteSet::add(SiteId site) {
  std::uint64_t& bits = mask_.at(static_cast<std::size_t>(site.layer + 1));
  const std::pair<std::int64_t, SiteKind> place{site.layer, site.kind};
  const bool all = (bits & bit(site.kind)) != 0 && !experts_.contains(place);
  bits |= bit(site.kind);
  if (site.expert < 0) experts_.erase(place);
  if (site.expert < 0 || all) return;
  std::vector<bool>& experts = experts_[place];
  const auto index = static_cast<std::size_t>(site.expert);
  if (experts.size() <= index) experts.resize(index + 1, false);
  experts[index] = true;
}

void SiteSet::add_all_layers(SiteKind kind) {
  for (std::int64_t layer = 0; layer < layer_count(); ++layer) add({kind, layer});
}

bool SiteSet::contains_expert(SiteId site) const {
  const auto found = experts_.find({site.layer, site.kind});
  // Added without a number: all of them.
  if (found == experts_.end()) return true;
  const auto index = static_cast<std::size_t>(site.expert);
  return index < found->second.size() && found->second[index];
}

std::vector<SiteId> SiteSet::list() const {
  std::vector<SiteId> sites;
  if (contains({SiteKind::embed, -1})) sites.push_back({SiteKind::embed, -1});
  for (std::int64_t layer = 0; layer < layer_count(); ++layer) {
    for (int k = 0; k < site_kind_count; ++k) {
      const SiteId site{static_cast<SiteKind>(k), layer};
      if (!contains(site)) continue;
      const auto experts = experts_.find({layer, site.kind});
      if (experts == experts_.end()) {
        sites.push_back(site);
        continue;
      }
      for (std::size_t e = 0; e < experts->second.size(); ++e) {
        if (experts->second[e]) {
          sites.push_back({site.kind, layer, static_cast<std::int64_t>(e)});
        }
      }
    }
  }
  for (const SiteKind kind : {SiteKind::final_norm, SiteKind::logits}) {
    if (contains({kind, -1})) sites.push_back({kind, -1});
  }
  return sites;
}

}  // namespace onset
