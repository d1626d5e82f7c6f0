// The text of the experiments, and the names of parts: what `explain` and `report` share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain_report.h"
#include "onset/base/log.h"
#include "onset/massive/experiment.h"
#include "prompts.h"

namespace onset {
class Model;
}

namespace onset::app {

struct ExperimentTextOptions {
  std::string file;
  std::string ids;
  std::int64_t tokens = 512;
  std::int64_t window = 512;

  void declare(CommandLine& line);
  // A usage error where both a file and ids are given.
  void check() const;
};

// The whole text in the model's tokens: the file, the ids, or the built-in sample.
[[nodiscard]] std::vector<std::int64_t> text_ids(const ExperimentTextOptions& options,
                                                 PromptEncoder& encoder);

// The text of the experiments; nothing, with a warning, where there is no tokenizer for the
// built-in one. Leaves what was used in the explanation.
[[nodiscard]] std::optional<ExperimentText> experiment_text_of(const ExperimentTextOptions& options,
                                                               const Model& model,
                                                               PromptEncoder& encoder,
                                                               const Log& log,
                                                               Explanation& explanation);

// The scan, if there is none yet, and the explanation of the same target under explanation.mask.
void explain_under_mask(const Model& model, const std::optional<ExperimentText>& text,
                        const ExplainOptions& wanted, const Log& log, Explanation& explanation);

// The pieces of the vocabulary's entries that are listed; none without a tokenizer.
void name_vocabulary(PromptEncoder& encoder, Explanation& explanation);

// "norm, ffn" as indices into `known`. A usage error for a name that is not there.
[[nodiscard]] std::vector<std::size_t> parse_part_names(const std::string& option,
                                                        const std::string& given,
                                                        const std::vector<std::string>& known);

}  // namespace onset::app
