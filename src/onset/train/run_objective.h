// The objective of a run as its settings describe it, with what it stands on: rewards, and the
// reference of GRPO.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "onset/base/log.h"
#include "onset/base/ranks.h"
#include "onset/model/model.h"
#include "onset/train/objective.h"
#include "onset/train/policy.h"
#include "onset/train/rewards.h"
#include "onset/train/rollout.h"
#include "onset/train/run_data.h"
#include "onset/train/settings.h"
#include "onset/train/trained_model.h"

namespace onset {

class DpoObjective;

class RunObjective {
 public:
  // Of checked settings; `path` is the model's, for the reference of GRPO with a KL term. Throws
  // what the objectives throw, and input errors for rows whose right answer no reward can judge.
  // All references must outlive it; `tokenizer` may be null.
  RunObjective(const TrainSettings& settings, const std::filesystem::path& path,
               TrainedModel& trained, const Tokenizer* tokenizer, RunData data, const Ranks& ranks,
               const Log& log);
  RunObjective(const RunObjective&) = delete;
  RunObjective& operator=(const RunObjective&) = delete;
  ~RunObjective();

  [[nodiscard]] Objective& objective() const { return *objective_; }
  // Before the first update, once `steps` of the run are known: the log-probabilities of DPO's
  // reference.
  void take_reference(std::int64_t steps, const Log& log);

 private:
  void make_dpo(TrainedModel& trained, RunData data, const Ranks& ranks);
  void make_grpo(const std::filesystem::path& path, TrainedModel& trained,
                 const Tokenizer* tokenizer, RunData data, const Ranks& ranks, const Log& log);
  [[nodiscard]] WindowShape window() const;
  [[nodiscard]] std::uint64_t seed() const;
  [[nodiscard]] std::optional<std::uint64_t> shuffle_seed() const;
  [[nodiscard]] bool reference_masked() const;
  [[nodiscard]] RewardFunction reward_function();

  const TrainSettings& settings_;
  // The policy as the run began, for GRPO with a KL term.
  std::optional<Model> reference_model_;
  std::unique_ptr<Policy> reference_;
  std::optional<Rewards> rewards_;
  std::unique_ptr<Objective> objective_;
  DpoObjective* dpo_ = nullptr;  // the same, of DPO
};

}  // namespace onset
