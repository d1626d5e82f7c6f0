// The data of a run as its settings describe them: read, cut, packed, and a part held out.
// Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/train/examples.h"
#include "onset/train/packing.h"
#include "onset/train/settings.h"

namespace onset {

// What reads the data's texts; without a tokenizer rows of ids alone can be read.
struct TextReader {
  const Tokenizer* tokenizer = nullptr;
  std::optional<ChatFormat> chat = {};
  std::int64_t vocabulary = 0;  // of the model
};

// Of the method's kind, the others are empty.
struct RunData {
  std::vector<PackedRow> rows, held_out_rows;
  std::vector<PreferencePair> pairs, held_out_pairs;
  std::vector<RolloutPrompt> prompts, held_out_prompts;
  std::vector<std::string> notes;  // what became of the files, a paragraph each
  std::int64_t longest = 0;        // tokens of the longest row, pair's sequence or prompt

  // Rows, pairs or prompts to train on.
  [[nodiscard]] std::int64_t examples() const {
    return static_cast<std::int64_t>(rows.size() + pairs.size() + prompts.size());
  }
};

// Names what a run is trained and evaluated on, down to each token and reward: equal data have
// equal names.
[[nodiscard]] std::string content_of(const RunData& data);

// Of checked settings. Throws input errors as the readers of each kind do (sft_data.h and its
// neighbours), and where nothing is left to train on.
[[nodiscard]] RunData read_run_data(const TrainSettings& settings, const TextReader& reader);

}  // namespace onset
