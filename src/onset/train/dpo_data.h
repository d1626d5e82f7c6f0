// Pairs of preference data, by TRL's column names. Torch-free.
//
// A row is one of
//   prompt_ids, chosen_ids, rejected_ids
//   prompt, chosen, rejected    texts or messages
//   chosen, rejected            the prompt is what both begin with: messages, or characters
// the first that fits; a prompt that is a text beside conversations is not read, the messages that
// both begin with are the prompt (as in TRL).
#pragma once

#include <filesystem>
#include <vector>

#include "onset/train/data_options.h"
#include "onset/train/data_report.h"
#include "onset/train/examples.h"

namespace onset {

struct DpoDataOptions {
  DataOptions data;
  // Of prompt and completion together; 0: any. keep_start cuts the completions, and leaves out
  // pairs whose prompt alone fills it; keep_end cuts the prompt's beginning, for both completions
  // alike so that they stay completions of one prompt, and leaves out pairs without room for it.
  std::int64_t max_length = 0;
  TruncationMode truncation = TruncationMode::keep_start;
};

struct DpoData {
  std::vector<PreferencePair> pairs;  // in the file's order
  // Tokens: of prompt and chosen completion and of prompt and rejected one; trained: of the
  // completions.
  DataReport report;
};

// Throws input errors that name file and row: rows that cannot be read, a completion without a
// token, a file of which nothing is kept.
[[nodiscard]] DpoData read_dpo_data(const std::filesystem::path& path,
                                    const DpoDataOptions& options);

}  // namespace onset
