// Why a layer, a token and its dims: the six parts of `onset explain` (docs/explain.md), for what a
// scan found or for places that are named. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/attribution.h"
#include "onset/massive/dose.h"
#include "onset/massive/experiment.h"
#include "onset/massive/factorial.h"
#include "onset/massive/norm_gain.h"
#include "onset/massive/scan.h"
#include "onset/massive/super_weights.h"
#include "onset/massive/vocabulary.h"

namespace onset {

class Hooks;

struct ExplainParts {
  bool norm = true;
  bool ffn = true;
  bool factorial = true;
  bool fall = true;
  bool vocabulary = true;
  bool dose = true;
};

struct ExplainOptions {
  // What is named is taken; the rest comes from the scan.
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> token;
  std::vector<std::int64_t> dims;
  ExplainParts parts;
  std::int64_t top = 10;  // neurons listed for an entry
  double sink_threshold = 0.3;
};

// One prompt's massive token at the layer.
struct TargetToken {
  std::size_t prompt = 0;  // index into the scan's prompts
  std::int64_t token = 0;
  std::vector<double> values;  // of the state after the layer, at the dims
};

// What is explained.
struct ExplainTarget {
  std::int64_t layer = 0;
  std::vector<std::int64_t> dims;   // the largest value first
  std::vector<TargetToken> tokens;  // of the prompts that have one
  std::size_t shown = 0;            // index into tokens
  bool found = true;                // by the scan, with nothing named
  bool massive = true;              // the shown token has a massive entry there
  // Where the token stands in every text: its position, or empty where it differs from prompt to
  // prompt and the rule has to choose.
  std::optional<std::int64_t> position;
  std::vector<double> mean;  // of the values over the prompts, one a dim
  // The largest median of |x| that makes an entry massive: max(min_abs, min_ratio * the median
  // over prompts of the layer's median).
  double threshold = 0;
};

// A stage of the shown token and who wrote it.
struct StageAttribution {
  Stage stage;
  EntryAttribution entry;
};

struct FfnResult {
  std::vector<EntryAttribution> entries;  // the shown token at the dims, after the layer
  std::vector<StageAttribution> stages;   // up to the layer, and behind it but for its falls
  SuperWeightResult super_weights;
  SingularReading singular;
};

struct FallResult {
  std::vector<StageAttribution> stages;  // falls behind the layer; may be empty
  std::int64_t last_layer = 0;
  double last_largest = 0;  // max |x| of the token after the last block
  double threshold = 0;     // what the entry must exceed before a fall
};

struct ExplainResult {
  ExplainTarget target;
  std::optional<NormResult> norm;
  std::optional<FfnResult> ffn;
  std::optional<FactorialResult> factorial;
  std::optional<FallResult> fall;
  std::optional<VocabularyResult> vocabulary;
  std::optional<DoseResult> dose;
};

// Throws an input error where there is no ME layer and none is named, which says how to name one,
// and a usage error for a place that the model or every prompt lacks.
[[nodiscard]] ExplainTarget choose_target(const Model& model, const ScanResult& scan,
                                          const ExplainOptions& options);
// The same layer, tokens and dims in passes that the interventions edit, as they did those of
// `scan`: what was read there is read again.
[[nodiscard]] ExplainTarget same_target(const Model& model, const ScanResult& scan,
                                        const ExplainTarget& target, const Hooks* interventions);

// `scan` is of the same model, and `target` chosen from it. Without a text the factorial measures
// the massive value alone, and there are no doses. `interventions`: what edits all passes (its
// observers are not called); then `scan` was made with them too, and `target` is of same_target.
[[nodiscard]] ExplainResult explain(const Model& model, const ScanResult& scan,
                                    const ExplainTarget& target,
                                    const std::optional<ExperimentText>& text,
                                    const ExplainOptions& options, const Log& log = {},
                                    const Hooks* interventions = nullptr);

}  // namespace onset
