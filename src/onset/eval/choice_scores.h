// Log-likelihoods of planned choices by forward passes. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "onset/eval/choice_plan.h"

namespace onset {

class Hooks;
class Model;

struct ChoiceScore {
  double loglik = 0;   // in nats, summed over the continuation's tokens; NaN where logits are
  bool greedy = true;  // each of them is the most likely one, the lowest id on ties
};

class ChoiceScorer {
 public:
  // `hooks` may hold interventions and be null; model and plan must outlive the scorer.
  ChoiceScorer(const Model& model, const ChoicePlan& plan, std::shared_ptr<const Hooks> hooks);
  ~ChoiceScorer();
  ChoiceScorer(const ChoiceScorer&) = delete;
  ChoiceScorer& operator=(const ChoiceScorer&) = delete;

  // Computes the wave's prefixes, all of them in one pass, and forgets those of another wave.
  void prepare(const ChoiceWave& wave);
  // Of each of the batch's trees, [tree][choice of the tree]. Its wave must have been prepared.
  [[nodiscard]] std::vector<std::vector<ChoiceScore>> score(const ChoiceBatch& batch) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onset
