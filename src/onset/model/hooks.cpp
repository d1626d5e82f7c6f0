#include "onset/model/hooks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace onset {

void Hooks::observe(const SiteSet& sites, Observer observer) {
  for (const SiteId site : sites.list()) wanted_.add(site);
  observers_.emplace_back(sites, std::move(observer));
}

void Hooks::intervene(const SiteSet& sites, Intervention intervention) {
  for (const SiteId site : sites.list()) wanted_.add(site);
  interventions_.emplace_back(sites, std::move(intervention));
}

Hooks Hooks::without_observers() const {
  Hooks hooks(wanted_.layer_count());
  hooks.add_interventions(*this);
  return hooks;
}

void Hooks::add_interventions(const Hooks& other) {
  for (const auto& [sites, intervention] : other.interventions_) intervene(sites, intervention);
}

bool Hooks::edits(SiteId site) const {
  return std::any_of(interventions_.begin(), interventions_.end(),
                     [&](const auto& row) { return row.first.contains(site); });
}

at::Tensor Hooks::run(const SiteContext& context, at::Tensor tensor) const {
  for (const auto& [sites, intervention] : interventions_) {
    if (!sites.contains(context.site)) continue;
    at::Tensor edited = intervention(context, tensor);
    if (!edited.defined() || edited.sizes() != tensor.sizes() ||
        edited.scalar_type() != tensor.scalar_type()) {
      throw std::logic_error("an intervention at " + site_name(context.site) +
                             " returned another shape or type");
    }
    tensor = std::move(edited);
  }
  for (const auto& [sites, observer] : observers_) {
    if (sites.contains(context.site)) observer(context, tensor);
  }
  return tensor;
}

Hooks edited_as(const Hooks* interventions, std::int64_t layer_count) {
  Hooks hooks(layer_count);
  if (interventions != nullptr) hooks.add_interventions(*interventions);
  return hooks;
}

void switch_off(Hooks& hooks, std::span<const ExpertId> experts) {
  if (experts.empty()) return;
  SiteSet sites(hooks.layer_count());
  for (const ExpertId& off : experts) sites.add({SiteKind::expert_out, off.layer, off.expert});
  hooks.intervene(sites,
                  [](const SiteContext&, const at::Tensor& part) { return at::zeros_like(part); });
}

}  // namespace onset
