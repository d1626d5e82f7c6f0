// Prompts for GRPO, by TRL's column names. Torch-free.
//
// A row is one of
//   prompt_ids [, completions, rewards]   ids, and given completions with a reward each
//   prompt                                a text, or messages that end with the user
// and any other columns, which the rewards may read.
#pragma once

#include <filesystem>
#include <vector>

#include "onset/train/data_options.h"
#include "onset/train/data_report.h"
#include "onset/train/examples.h"

namespace onset {

struct GrpoDataOptions {
  DataOptions data;
  // Longer prompts are left out: one that is cut asks something else. 0: any.
  std::int64_t max_prompt_length = 0;
  std::int64_t num_generations = 0;  // completions of a row that has some; 0: any number
};

struct GrpoData {
  std::vector<RolloutPrompt> prompts;  // in the file's order
  DataReport report;                   // tokens of prompts, none of them trained
};

// Throws input errors that name file and row: rows that cannot be read, a prompt or a completion
// without a token, not as many rewards as completions, not num_generations of them, rows with and
// without completions in one
// file, a file of which nothing is kept.
[[nodiscard]] GrpoData read_grpo_data(const std::filesystem::path& path,
                                      const GrpoDataOptions& options);

}  // namespace onset
