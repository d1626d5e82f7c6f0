// Detection of massive activations: the ME layer, its tokens and dimensions, the stages of the
// massive token, and who wrote them. Definitions: docs/scan.md (Sun et al. 2402.17762; the ME layer
// of arXiv 2605.08504).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/model/sites.h"

namespace onset {

class Hooks;
class Model;

enum class ScanRule { absolute, relative };

struct ScanOptions {
  double min_abs = 100.0;     // also the threshold of stages
  double min_ratio = 1000.0;  // times the median of the layer
  ScanRule rule = ScanRule::absolute;
  std::int64_t top = 5;  // entries listed per layer
  // Experts that add nothing: the test of whether one of them makes the massive activation.
  std::vector<ExpertId> without_experts = {};
};

// One entry of a state: |value| is what is ranked. Token is the position in its prompt.
struct StateEntry {
  std::int64_t token = 0;
  std::int64_t dim = 0;
  float value = 0;
};

struct LayerStatistics {
  std::int64_t layer = 0;
  StateEntry largest;    // by |value|; first in (token, dim) order on ties
  float median_abs = 0;  // lower median of |x| over all tokens and dims
  bool massive = false;
  std::vector<StateEntry> massive_entries;  // in falling order of |value|
  std::int64_t massive_count = 0;           // entries beyond the list's limit are counted here
  std::vector<StateEntry> top;              // in falling order of |value|

  [[nodiscard]] double ratio() const;  // |largest| / median; infinity when the median is 0
};

enum class StageKind { rise, fall };

// What one expert of a mixture adds to an entry.
struct ExpertPart {
  std::int64_t expert = 0;
  float value = 0;
};

// A block after which the largest entry of the massive token at least doubled or halved, with the
// exact attribution at (token, dim): after = (resid_pre + attn_out) + ffn_out.
struct Stage {
  std::int64_t layer = 0;
  StageKind kind = StageKind::rise;
  std::int64_t token = 0;
  std::int64_t dim = 0;
  float before = 0;  // the largest |entry| of the token before and after the block
  float after = 0;
  float resid_pre = 0;  // signed values at (token, dim)
  float attn_out = 0;
  float ffn_out = 0;
  // part / (attn_out + ffn_out); empty when |attn_out + ffn_out| < 1.
  std::optional<double> attn_share;
  std::optional<double> ffn_share;

  // The entry at (token, dim) after the block, signed.
  // Of a mixture: what each expert that the token was sent to adds, the largest |value| first, and
  // the shared expert where there is one; together they are ffn_out (before a norm on it).
  std::vector<ExpertPart> experts = {};
  std::optional<float> shared_out = std::nullopt;

  [[nodiscard]] float resid_post() const { return (resid_pre + attn_out) + ffn_out; }
};

// "expert 5" or "the shared expert": the one that adds most to ffn_out, in its direction; empty
// where the layer is no mixture.
[[nodiscard]] std::string main_expert(const Stage& stage);

// An entry after a block and what it is the sum of: value = (resid_pre + attn_out) + ffn_out.
struct WrittenEntry {
  std::int64_t layer = 0;
  std::int64_t token = 0;
  std::int64_t dim = 0;
  float value = 0;
  float resid_pre = 0;
  float attn_out = 0;
  float ffn_out = 0;
  std::vector<ExpertPart> experts = {};  // as in Stage
  std::optional<float> shared_out = std::nullopt;
};

struct PromptScan {
  std::string text;
  std::vector<std::int64_t> ids;
  std::vector<std::string> pieces;  // filled by the caller that has a tokenizer; may be empty
  std::optional<std::int64_t> me_layer;
  std::optional<std::int64_t> last_massive_layer;
  std::vector<Stage> stages;
  // The largest entry after the ME layer, and the largest of all layers (the first on ties).
  std::optional<WrittenEntry> at_me_layer;
  WrittenEntry largest;
  std::vector<LayerStatistics> layers;
  // "too_short" (one token) or "uniform" (one repeated token): the median is no yardstick.
  std::optional<std::string> note;
};

struct MassiveToken {
  bool first = false;  // the first token of its prompt
  std::int64_t position = 0;
  std::int64_t id = 0;
};

struct Candidate {
  std::int64_t prompt = 0;
  std::int64_t layer = 0;
  std::int64_t token = 0;
  std::int64_t dim = 0;
  float value = 0;
  double ratio = 0;
};

struct ScanResult {
  ScanOptions options;
  std::optional<std::int64_t> me_layer;
  double agreement = 0;
  std::optional<std::int64_t> last_massive_layer;
  std::vector<std::int64_t> massive_dims;
  std::vector<MassiveToken> massive_tokens;
  std::optional<Candidate> candidate;  // where there is no ME layer
  std::optional<std::string> note;     // below_rule, too_short, uniform
  std::vector<Stage> stages;           // of the first prompt that agrees
  std::vector<PromptScan> prompts;
  // Where the other rule finds another ME layer: what it finds, in words. Empty when they agree.
  std::string rule_disagreement;
};

struct ScanPrompt {
  std::string text;
  std::vector<std::int64_t> ids;
};

// Runs the prompts through the model's blocks (the head is not needed) and analyses them.
// `interventions`: what edits the passes (its observers are not called), for a masked run beside an
// unmasked one.
// Throws a usage error for an empty prompt and for an expert that the model does not have, and an
// input error for an id outside the vocabulary.
[[nodiscard]] ScanResult scan(const Model& model, const std::vector<ScanPrompt>& prompts,
                              const ScanOptions& options, const Log& log = {},
                              const Hooks* interventions = nullptr);

// The stages of any token of a prompt: of PromptScan::stages, which are those of the token with the
// largest entry, for another one. One pass.
[[nodiscard]] std::vector<Stage> token_stages(const Model& model, const ScanPrompt& prompt,
                                              std::int64_t token, const ScanOptions& options,
                                              const Hooks* interventions = nullptr);

}  // namespace onset
