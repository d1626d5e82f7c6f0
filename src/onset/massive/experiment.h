// What the experiments of `explain` measure under an intervention: the massive value on prompts,
// and the perplexity and the sinks of a text. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/perplexity.h"
#include "onset/massive/sink_meter.h"

namespace onset {

class Hooks;
class Model;

// Adds the interventions of a condition to the hooks of one pass or more.
using Installer = std::function<void(Hooks&)>;

// The interventions, if any, and behind them those of a condition. They must outlive the installer.
[[nodiscard]] Installer behind(const Hooks* interventions, Installer condition);

// A text as the experiments use it.
struct ExperimentText {
  std::vector<std::int64_t> ids;                   // for the perplexity, without BOS
  WindowOptions windows;                           // how they are cut
  std::vector<std::vector<std::int64_t>> samples;  // for the sinks, each from position 0 on
};

// `length` tokens a sample, BOS included, one behind the other, at most `most`.
[[nodiscard]] ExperimentText experiment_text(std::vector<std::int64_t> ids,
                                             const WindowOptions& windows, std::int64_t length = 64,
                                             std::int64_t most = 8);

struct TextMeasure {
  double perplexity = 0;  // NaN where no text was given
  std::int64_t scored_tokens = 0;
  SinkSummary sinks;
};

// The steps of one part of a longer work: "windows" of `part` "doses 2/8" is "doses 2/8, windows".
[[nodiscard]] Log steps_within(const Log& log, std::string part);

// `also` sees the passes over the samples too.
[[nodiscard]] TextMeasure measure_text(const Model& model, const ExperimentText& text,
                                       const SinkOptions& sinks, const Installer& install,
                                       const Installer& also = {}, const Log& log = {});

// The sink rate of the layers behind that one: the mean over those that have a rate; NaN without.
[[nodiscard]] double sinks_behind(const SinkSummary& sinks, std::int64_t layer);

// The largest |entry| of a prompt after each layer, and one entry's value.
struct PromptMeasure {
  std::vector<double> largest;   // [L], of all tokens and dims
  std::vector<double> of_token;  // [L], of the massive token
};

[[nodiscard]] PromptMeasure measure_prompt(const Model& model, const std::vector<std::int64_t>& ids,
                                           std::int64_t token, const Installer& install);

}  // namespace onset
