// Observers and interventions: how analyses read the forward pass and how it is edited.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "onset/model/sites.h"

namespace onset {

// The rows of one sequence in the packed tensors of a forward call: rows [row, row + count) hold
// its positions [position, position + count).
struct SequenceRows {
  std::int64_t row = 0;
  std::int64_t count = 0;
  std::int64_t position = 0;
};

// What a callback is told about the tensor it gets.
struct SiteContext {
  SiteId site;
  // All sequences of the call. Packed tensors have their rows one sequence after the other.
  std::span<const SequenceRows> sequences;
  // attn_scores and attn_probs come one sequence at a time: its index; -1 elsewhere.
  std::int64_t sequence = -1;
  // Sites of an expert hold only the packed rows that were sent to it: these, ascending.
  std::span<const std::int64_t> rows = {};
};

// Called on the thread that runs the forward pass, in the order of the pass. The tensor may be
// kept: the pass does not write to it again. It lies on the CPU, wherever the model is computed.
using Observer = std::function<void(const SiteContext&, const at::Tensor&)>;
// Returns what the pass goes on with: the tensor itself, or another of the same shape and type.
// Must not change the given tensor in place. Gets and gives tensors on the CPU, or, where it was
// added for that, on the device of the pass.
using Intervention = std::function<at::Tensor(const SiteContext&, const at::Tensor&)>;

// At each site first all interventions in the order they were added, then all observers, which see
// the edited tensor. A site that nobody asked for costs one bit test.
class Hooks {
 public:
  explicit Hooks(std::int64_t layer_count) : wanted_(layer_count) {}

  void observe(const SiteSet& sites, Observer observer);
  void intervene(const SiteSet& sites, Intervention intervention);
  // One that works on the device of the pass, so that nothing is brought to the CPU and back.
  void intervene_on_device(const SiteSet& sites, Intervention intervention);

  [[nodiscard]] std::int64_t layer_count() const { return wanted_.layer_count(); }
  // The interventions of `other`, behind those that are here; its observers stay out.
  void add_interventions(const Hooks& other);
  // The interventions alone, for a pass whose states nobody is to see.
  [[nodiscard]] Hooks without_observers() const;

  [[nodiscard]] bool wants(SiteId site) const { return wanted_.contains(site); }
  // Whether an intervention is among what the site's callbacks are.
  [[nodiscard]] bool edits(SiteId site) const;
  // Runs the callbacks of the site; throws std::logic_error when an intervention returns another
  // shape or type.
  [[nodiscard]] at::Tensor run(const SiteContext& context, at::Tensor tensor) const;

 private:
  struct Edit {
    SiteSet sites;
    Intervention intervention;
    bool on_device = false;
  };
  void add(const SiteSet& sites, Intervention intervention, bool on_device);

  SiteSet wanted_;
  std::vector<Edit> interventions_;
  std::vector<std::pair<SiteSet, Observer>> observers_;
};

// Hooks for one pass more with the interventions of those given, if any, and without an observer.
[[nodiscard]] Hooks edited_as(const Hooks* interventions, std::int64_t layer_count);

// The expert adds nothing: the router chooses as before, and the other experts of its tokens keep
// their weights. (A router logit of -infinity instead gives its place to the next expert.)
void switch_off(Hooks& hooks, std::span<const ExpertId> experts);

}  // namespace onset
