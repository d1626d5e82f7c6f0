// What a model is trained on, as token ids. Padding is none of it: a forward pass packs sequences.
// Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/base/json.h"

namespace onset {

using TokenIds = std::vector<std::int64_t>;

// One document: its first token is at position 0 and attends to no other document.
struct SftExample {
  TokenIds ids;
  // Beside ids; 1: the token there counts in the loss, predicted from those before it. The first is
  // 0: nothing stands before it.
  std::vector<std::uint8_t> trained;
};

// Two completions of one prompt, with the tokens that end them. None of the three is empty.
struct PreferencePair {
  TokenIds prompt;
  TokenIds chosen;
  TokenIds rejected;
};

// A prompt to be completed and rewarded.
struct RolloutPrompt {
  TokenIds prompt;
  OrderedJson record;  // the row of the data, for the rewards
  // Given ones, in place of sampling; a completion without an end token was cut off. NaN: the
  // reward abstained. Both empty, or one reward a completion.
  std::vector<TokenIds> completions = {};
  std::vector<double> rewards = {};
};

}  // namespace onset
