// The summary of a report: the numbers, and answers in words to what a reader wants to know.
#pragma once

#include <string>
#include <vector>

#include "onset/report/page.h"
#include "report_model.h"

namespace onset::app {

// The numbers first; of what was measured.
[[nodiscard]] std::vector<Fact> report_highlights(const ModelReport& report);
// A question and its answer each, with this model's numbers.
[[nodiscard]] std::vector<Fact> report_answers(const ModelReport& report);

// "layers 0 to 1: none; 2 to 9: 14 to 33 %; ..": runs of layers by whether they have sinks.
[[nodiscard]] std::string sink_runs(const std::vector<double>& rates);

// What the verbs' tables say in words, for the sections.
[[nodiscard]] std::vector<std::string> sinks_paragraphs(const ModelSinks& sinks);
[[nodiscard]] std::vector<std::string> rigidity_paragraphs(const ModelRigidity& rigidity);

}  // namespace onset::app
