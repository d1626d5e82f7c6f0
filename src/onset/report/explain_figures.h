// The pictures of an explanation: their data and captions. Their data are the fields of
// docs/json.md where they can be. Formulas: docs/explain.md. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onset/massive/explain.h"
#include "onset/report/page.h"

namespace onset {

struct ExplainFiguresInput {
  const ExplainResult& result;
  std::int64_t layers = 0;                            // of the model
  std::string token;                                  // "token 0 ("My")"; plain text
  const std::map<std::int64_t, std::string>& pieces;  // texts of vocabulary entries; may be empty
};

// Gains of the norms by layer; energy before and after the gain. Of what there is: a family may
// have no norm before the FFN.
[[nodiscard]] std::vector<Figure> norm_figures(const ExplainFiguresInput& input);
// What each neuron writes into the entries that are explained, and at the other rises.
[[nodiscard]] std::vector<Figure> neuron_figures(const ExplainFiguresInput& input);
// The same of the layers that take the entry away; none where there are none.
[[nodiscard]] std::vector<Figure> fall_figures(const ExplainFiguresInput& input);
// In explain_experiment_figures.cpp.
[[nodiscard]] std::vector<Figure> factorial_figures(const ExplainFiguresInput& input);
[[nodiscard]] std::vector<Figure> vocabulary_figures(const ExplainFiguresInput& input);
[[nodiscard]] std::vector<Figure> dose_figures(const ExplainFiguresInput& input);

// "as is", "product normalised", ..
[[nodiscard]] std::string ffn_change_label(FfnChange change);
// "as it is", "times 0.5", "set to the mean", "control: dim 247", "control: token 1".
[[nodiscard]] std::string dose_label(const DoseResult& dose, const DoseCondition& condition);

// What people call a module of a mixture's FFN: "expert 7" for "experts.7", "the shared expert";
// others as they are.
[[nodiscard]] std::string module_label(const std::string& module);

// "99.6 %"; empty for no number.
[[nodiscard]] std::string share_text(double share);

}  // namespace onset
