// Data of supervised fine-tuning and of pre-training, by TRL's column names. Torch-free.
//
// A row is one of
//   input_ids [, labels]    labels as ids with -100 where nothing is trained; else all is trained
//   prompt, completion      texts or messages; the completion is trained
//   messages                a conversation; the assistant's words are trained
//   text                    all is trained
// the first that fits. A completion or text is followed by the end token, which is trained, also
// where it is the padding token.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "onset/train/data_options.h"
#include "onset/train/data_report.h"
#include "onset/train/examples.h"

namespace onset {

struct SftDataOptions {
  DataOptions data;
  std::int64_t max_length = 0;  // tokens of an example; 0: any
  TruncationMode truncation = TruncationMode::keep_start;
  // Of conversations: the assistant's text and the token that ends its turn, nothing else. (TRL
  // trains on all of a conversation unless it is told so.)
  bool assistant_only_loss = true;
  // Of rows with prompt and completion; not given: yes. True for other rows is an error.
  std::optional<bool> completion_only_loss = {};
};

struct SftData {
  std::vector<SftExample> examples;  // in the file's order
  DataReport report;
};

// Throws input errors that name file and row: rows that cannot be read, a conversation without a
// word of the assistant, a file of which nothing is kept, or of which all is trained though a part
// was asked for.
[[nodiscard]] SftData read_sft_data(const std::filesystem::path& path,
                                    const SftDataOptions& options);

}  // namespace onset
