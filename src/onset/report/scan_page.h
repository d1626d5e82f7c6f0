// The page of `onset scan --report`: what a scan found, in words and pictures. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/massive/scan.h"
#include "onset/report/page.h"
#include "onset/report/states.h"

namespace onset {

struct ScanPageInput {
  std::string model;                 // its name, for the heading
  std::vector<std::string> verdict;  // what was found, in words: paragraphs
  std::vector<Fact> facts;           // model, rule and run, for the last section
  const ScanResult& scan;
  std::size_t prompt = 0;           // the one that is drawn
  std::string bos;                  // what was put before it: "none", or the id
  std::vector<std::string> tokens;  // its tokens as text; empty without a tokenizer
  const PromptStates& states;       // of that prompt
};

// The answer in numbers.
[[nodiscard]] std::vector<Fact> scan_highlights(const ScanPageInput& input);
[[nodiscard]] Page scan_page(const ScanPageInput& input);

}  // namespace onset
