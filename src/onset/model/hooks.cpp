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
  add(sites, std::move(intervention), /*on_device=*/false);
}

void Hooks::intervene_on_device(const SiteSet& sites, Intervention intervention) {
  add(sites, std::move(intervention), /*on_device=*/true);
}

void Hooks::add(const SiteSet& sites, Intervention intervention, bool on_device) {
  for (const SiteId site : sites.list()) wanted_.add(site);
  interventions_.push_back({sites, std::move(intervention), on_device});
}

Hooks Hooks::without_observers() const {
  Hooks hooks(wanted_.layer_count());
  hooks.add_interventions(*this);
  return hooks;
}

void Hooks::add_interventions(const Hooks& other) {
  for (const Edit& edit : other.interventions_) add(edit.sites, edit.intervention, edit.on_device);
}

bool Hooks::edits(SiteId site) const {
  return std::any_of(interventions_.begin(), interventions_.end(),
                     [&](const Edit& edit) { return edit.sites.contains(site); });
}

at::Tensor Hooks::run(const SiteContext& context, at::Tensor tensor) const {
  for (const Edit& edit : interventions_) {
    if (!edit.sites.contains(context.site)) continue;
    at::Tensor edited = edit.intervention(context, edit.on_device ? tensor : tensor.cpu());
    if (edited.defined()) edited = edited.to(tensor.device());
    if (!edited.defined() || edited.sizes() != tensor.sizes() ||
        edited.scalar_type() != tensor.scalar_type()) {
      throw std::logic_error("an intervention at " + site_name(context.site) +
                             " returned another shape or type");
    }
    tensor = std::move(edited);
  }
  at::Tensor shown;
  for (const auto& [sites, observer] : observers_) {
    if (!sites.contains(context.site)) continue;
    if (!shown.defined()) shown = tensor.cpu();
    observer(context, shown);
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
