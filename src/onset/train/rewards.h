// How good a completion is, for GRPO. Torch-free; docs/train-rewards.md.
//
//   gsm8k_strict     1 where the number behind the first "#### " is the right one, else 0
//   gsm8k_flexible   the same of the last number
//   boxed_math       1 where the last \boxed{..} is the right answer as mathematics
//                    (eval/same_answer.h), else 0
//   format:REGEX     1 where the regex matches somewhere, else 0 (eval/text_pattern.h)
//   length:MAX[,SOFT]  DAPO's penalty (Yu et al. 2503.14476, equation 13): 0 up to MAX - SOFT
//                    tokens, then falling to -1 at MAX; SOFT is a fifth of MAX when not given
//   command:PROGRAM  a program of one's own, run by the shell once for each call: a JSON object a
//                    line comes in (prompt, completion, record, ended, tokens), a number a line
//                    goes out, or null where it has nothing to say
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/train/metrics.h"

namespace onset {

// Losses are float32: a larger reward would be infinite there.
inline constexpr double most_reward = std::numeric_limits<float>::max();
inline constexpr const char* most_reward_hint =
    "the loss is computed in float32, which ends at 3.4e38: scale the rewards down";

struct RewardedCompletion {
  std::string prompt;                   // as the model read it
  std::string text;                     // without the token that ended it
  const OrderedJson* record = nullptr;  // the row of the data; the right answer is in it
  bool ended = true;                    // by itself, not by the length limit
  std::int64_t tokens = 0;
};

struct RewardOptions {
  std::string answer = "answer";  // the column of the record with the right answer
  double command_seconds = 60;    // for a command, each call
};

struct Reward {
  std::string name;  // of its metrics: "gsm8k_strict"
  // One number a completion; NaN: it abstains. Throws input errors: a record without the answer, a
  // command that fails.
  std::function<std::vector<double>(std::span<const RewardedCompletion>)> score;
};

// Throws a usage error for a text that describes no reward, with the nearest name.
[[nodiscard]] Reward make_reward(const std::string& description, const RewardOptions& options);

struct RewardSums {
  // [C]: the weighted sum of what did not abstain; NaN where all did.
  std::vector<double> values;
  // rewards/NAME/mean and rewards/NAME/std (divisor n - 1), over completions it did not abstain
  // from; a reward that abstained from all has neither.
  Metrics metrics;
};

// Several rewards, added up with weights.
class Rewards {
 public:
  // One weight each, or none: 1 each. A name that comes twice becomes NAME_2. Throws usage errors.
  Rewards(const std::vector<std::string>& descriptions, std::vector<double> weights,
          const RewardOptions& options);

  [[nodiscard]] RewardSums score(std::span<const RewardedCompletion> completions) const;
  [[nodiscard]] bool empty() const { return rewards_.empty(); }

 private:
  std::vector<Reward> rewards_;
  std::vector<double> weights_;
};

}  // namespace onset
