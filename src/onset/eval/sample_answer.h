// What a model answered to one item, from its line of samples_*.jsonl, for people to read.
// Torch-free.
#pragma once

#include <string>

#include "onset/base/json.h"

namespace onset {

struct SampleAnswer {
  std::string question;  // the end of the prompt, from its last empty line on
  std::string target;    // the right answer
  std::string answer;    // what was taken as the answer
};

// Choices are shown as "(1) text": by the metric's name the one with the highest log-likelihood, or
// that divided by the characters (acc_norm) or bytes (acc_bytes) of its text. Generated answers are
// shown as the filter left them. Parts that the line does not have are empty.
[[nodiscard]] SampleAnswer sample_answer(const Json& line, const std::string& metric);

}  // namespace onset
