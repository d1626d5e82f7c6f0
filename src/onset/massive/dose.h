// Dose and response: the massive entries scaled, set to zero or to their mean, and what becomes of
// the sinks, the perplexity, and the keys and values of that token; with controls. The causal test
// of the claim that sinks follow from massive activations. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/experiment.h"
#include "onset/massive/interventions.h"

namespace onset {

struct DoseQuestion {
  EntryChoice entries;       // the massive entries
  std::vector<double> mean;  // their mean over prompts, one a dim
  std::vector<double> doses{1.0, 0.5, 0.25, 0.0};
  std::int64_t control_dim = 0;       // not massive, of the same token
  std::int64_t control_position = 1;  // another token
  ExperimentText text;
  SinkOptions sinks;
  // Attention writes the entries: with the FFN's write its own is removed too.
  bool attention_writes = false;
};

// The key of one layer beside the other keys; means over samples and heads.
struct KeyReading {
  double key_norm = 0;         // |k_t|
  double others_key_norm = 0;  // median over the other tokens
  double value_norm = 0;       // |v_t|
  double others_value_norm = 0;
  double query_cosine = 0;         // of queries after t with k_t
  double others_query_cosine = 0;  // of the same queries with the other keys they see
};

struct DoseCondition {
  // "dose" (with `dose`), "mean", "block_write" (all that the block writes to the token removed),
  // "control_dim", "control_token".
  std::string name;
  std::optional<double> dose;
  TextMeasure text;
  // |x|_2 of the token after the edited layer, and the median of the other tokens; means over
  // samples.
  double state_norm = 0;
  double others_state_norm = 0;
  std::vector<KeyReading> keys;  // [L]
};

struct DoseResult {
  std::int64_t layer = 0;
  std::vector<std::int64_t> dims;
  std::optional<std::int64_t> position;  // of the edited token; empty: chosen by the rule
  std::int64_t key = 0;                  // the position whose sink is measured
  std::vector<double> mean;
  std::int64_t control_dim = 0;
  std::int64_t control_position = 0;
  bool attention_removed = false;  // under "block_write", beside ffn_out
  std::vector<DoseCondition> conditions;
};

// By name and, for "dose", its value; nullptr where the condition was not run.
[[nodiscard]] const DoseCondition* condition_of(const DoseResult& result, const std::string& name,
                                                std::optional<double> dose = std::nullopt);

// `interventions` edit the passes of every condition, before what the condition changes.
[[nodiscard]] DoseResult run_doses(const Model& model, const DoseQuestion& question,
                                   const Log& log = {}, const Hooks* interventions = nullptr);

}  // namespace onset
