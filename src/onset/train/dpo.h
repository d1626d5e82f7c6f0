// Preference optimisation: DPO and its variants (dpo_loss.h).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "onset/train/dpo_loss.h"
#include "onset/train/examples.h"
#include "onset/train/objective.h"

namespace onset {

class Policy;

struct DpoOptions {
  WindowShape window;  // of pairs
  DpoLossOptions loss;
  std::optional<std::uint64_t> shuffle_seed = {};
  std::uint64_t seed = 0;  // of dropout
  std::int64_t eval_batch = 8;
  bool reference_masked = true;  // whether the reference has the policy's mask too
};

class DpoObjective : public Objective {
 public:
  // policy and ranks must outlive it; `pairs` must not be empty, `held_out` may.
  DpoObjective(Policy& policy, std::vector<PreferencePair> pairs,
               std::vector<PreferencePair> held_out, const DpoOptions& options, const Ranks& ranks);

  // The reference is the policy as it is now, with the adapter it has: computes the reference's
  // log-probabilities of the pairs that `steps` updates from the beginning take, and of those held
  // out. To be called once, before the first update and before a run is resumed.
  using Progress = std::function<void(std::int64_t done, std::int64_t all)>;
  void take_reference(std::int64_t steps, const Progress& progress = {});

  [[nodiscard]] std::int64_t steps_per_epoch() const override;
  // loss, the rewards/ and logps/ metrics (metrics.h), num_tokens, epoch.
  [[nodiscard]] Metrics accumulate(std::int64_t step) override;
  // The same with the prefix eval_, but for num_tokens and epoch.
  [[nodiscard]] Metrics evaluate() override;
  [[nodiscard]] OrderedJson progress() const override;
  void restore(const OrderedJson& progress) override;

 private:
  // A set of pairs with the reference's summed log-probabilities, NaN where they were not computed.
  struct Pairs {
    std::vector<PreferencePair> pairs;
    std::vector<double> chosen;
    std::vector<double> rejected;
  };
  [[nodiscard]] static Pairs without_reference(std::vector<PreferencePair> pairs);
  void compute_reference(Pairs& set, const std::vector<std::int64_t>& wanted,
                         const std::function<void()>& done);
  [[nodiscard]] DpoLoss loss_of(const Pairs& set, std::span<const std::int64_t> chosen,
                                double window_pairs) const;

  Policy& policy_;
  Pairs train_;
  Pairs held_out_;
  DpoOptions options_;
  const Ranks& ranks_;
  DataWalk walk_;
};

}  // namespace onset
