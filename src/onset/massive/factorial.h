// Is the massive value the joint work of the norm and the FFN? A factorial experiment at one block:
// the norm before the FFN as it is or flattened, times the FFN as it is or held down, and what
// becomes of the massive value, of a text's perplexity and of the sinks. docs/explain.md; the
// variants are the probes in the released code of arXiv 2605.08504. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/experiment.h"
#include "onset/massive/norm_gain.h"

namespace onset {

enum class FfnChange {
  as_is,
  // product / rms(product), of every token (RMS over the inner dims).
  normalised,
  // product scaled down to the median token's RMS where its own is larger.
  clamped,
  // ffn_out scaled down to c times the median token's L2 norm where its own is larger.
  capped,
};
[[nodiscard]] std::string_view ffn_change_name(FfnChange change);

struct FactorialQuestion {
  std::int64_t layer = 0;
  std::vector<MassiveTokenOf> prompts;
  // w' = mean(w) + a (w - mean(w)); 1 is the norm as it is.
  std::vector<double> flattening{1.0, 0.5, 0.0};
  double cap = 2.0;  // c
  std::optional<ExperimentText> text;
  SinkOptions sinks;
};

struct FactorialCell {
  double a = 1.0;
  FfnChange ffn = FfnChange::as_is;
  // Geometric means over prompts of M = max |x| over all tokens and dims.
  double at_layer = 0;  // after the block
  double later = 0;     // the largest after any later block
  // The same of the massive token alone, after the block.
  double of_token = 0;
  std::vector<double> by_layer;  // [L] geometric means of M
  std::optional<TextMeasure> text;
};

// log M11 - log M10 - log M01 + log M00 of M after the block, 1 = as it is, first the norm. 0: each
// change has its own factor, whatever the other does. Above 0: norm and FFN as they are make more
// together than the product of what each makes alone, and either change alone takes most of that
// away. Below 0: either of them as it is still makes most of it. Where a change does nothing alone,
// it says nothing but how far the other's effect is the same with both.
struct Interaction {
  double a = 0;
  FfnChange ffn = FfnChange::normalised;
  double value = 0;
};

struct FactorialResult {
  std::int64_t layer = 0;
  bool norm_can_change = true;  // false in families without a norm before the FFN
  double cap = 2.0;
  std::vector<FactorialCell> cells;
  std::vector<Interaction> interactions;
};

// nullptr where the cell was not run.
[[nodiscard]] const FactorialCell* cell_of(const FactorialResult& result, double a, FfnChange ffn);

// Medians are over the tokens of each sequence (the lower of two middle ones); in mixtures those of
// the product are over the rows of the pass that are sent to one expert.
// `interventions` edit the passes of every cell, before what the cell changes.
[[nodiscard]] FactorialResult run_factorial(const Model& model, const FactorialQuestion& question,
                                            const Log& log = {},
                                            const Hooks* interventions = nullptr);

// The interventions of one cell.
[[nodiscard]] Installer factorial_cell(const Model& model, std::int64_t layer, double a,
                                       FfnChange ffn, double cap);

}  // namespace onset
