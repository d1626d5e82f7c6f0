// Completions sampled from the model in training, and their rewards. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onset/base/ranks.h"
#include "onset/generate/sampling.h"
#include "onset/train/examples.h"
#include "onset/train/metrics.h"
#include "onset/train/rewards.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;
class Tokenizer;

// A number for each completion, NaN where it abstains, and the metrics of all of them.
using RewardFunction = std::function<RewardSums(std::span<const RewardedCompletion> completions)>;

struct RolloutRequest {
  std::vector<const RolloutPrompt*> prompts = {};
  std::vector<std::int64_t> indices = {};   // beside prompts: where they stand in the data
  std::vector<std::uint64_t> numbers = {};  // beside prompts: of their random draws
  std::int64_t completions = 1;             // of each prompt
  std::int64_t max_length = 256;
  SamplingOptions sampling = {};
  std::shared_ptr<const MaskSpec> mask = nullptr;
  std::int64_t rows_at_once = 64;
};

// One completion of the prompt at `prompt` in the data.
struct RolledOut {
  std::int64_t prompt = 0;
  TokenIds ids = {};  // with the token that ended it
  bool ended = false;
  double reward = 0;  // NaN: abstained
  // ln of each token's probability in the distribution it was drawn from; empty where limits or
  // penalties made that another one than softmax(logits / temperature).
  std::vector<double> logps = {};
  std::string text = {};
};

// Of the model's present weights: groups one after the other. Throws an input error for a request
// that fails, with its reason.
[[nodiscard]] std::vector<RolledOut> roll_out(const Model& model, const Tokenizer& tokenizer,
                                              const RolloutRequest& request);

// Fills in the rewards of `own`, the answers to `request`, and returns their metrics.
[[nodiscard]] Metrics reward_all(const RolloutRequest& request, const Tokenizer& tokenizer,
                                 std::vector<RolledOut>& own, const RewardFunction& reward);

// The answers of all ranks in the order of `prompts` (rank r did those at r, r + ranks, ..), and
// the means of their metrics weighted by answers. Texts stay where they are.
[[nodiscard]] std::vector<RolledOut> gathered(const std::vector<RolledOut>& own,
                                              std::span<const std::int64_t> prompts,
                                              const Ranks& ranks, Metrics& metrics);

}  // namespace onset
