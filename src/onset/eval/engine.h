// The evaluation engine: items of any kind, answered by a model. Torch-free.
//
// It knows nothing of right and wrong: graders judge its answers. Log-likelihoods are those that
// lm-evaluation-harness 0.4 gives for the same text (encoding.h); a context that several choices or
// several items share is computed once. What an item is batched with, and by which rank, changes no
// score beyond the rounding of products (below 1e-4).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/log.h"
#include "onset/eval/item.h"
#include "onset/generate/generator.h"
#include "onset/generate/sampling.h"
#include "onset/massive/perplexity.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;
class Ranks;
class Tokenizer;

// What is done with an item that is longer than the model's context: context and continuation less
// its last token, or prompt and max_new_tokens.
enum class Overlong {
  truncate,  // the context loses its beginning, as in lm-evaluation-harness; the answer is `cut`
  skip,      // not answered: the answer is `skipped`
  error,     // an input error that names the item
};
// "truncate", "skip", "error"; throws a usage error for others.
[[nodiscard]] Overlong parse_overlong(std::string_view name);
[[nodiscard]] std::string_view name_of(Overlong overlong);

// The most likely token each time.
[[nodiscard]] SamplingOptions greedy_sampling();

struct EvalOptions {
  std::shared_ptr<const MaskSpec> mask = nullptr;  // none: the model as it is
  // BOS before each sequence; not given: as the tokenizer's own configuration says. Never a second
  // one before a text that a chat format began with it.
  std::optional<bool> bos = std::nullopt;
  // Tokens of one forward pass; a longer item is alone. With more, what passes from one product to
  // the next leaves the caches; with fewer, weights are read too often.
  std::int64_t batch_tokens = 1024;
  Overlong overlong = Overlong::truncate;
  std::int64_t context = 0;  // the longest sequence; 0: what the model was trained for
  // Of text items. `bos` is taken from EvalOptions::bos, not from here.
  WindowOptions windows = {};
  // Of generation items. Draws depend on the seed and the prompt; items with the same prompt draw
  // differently, in their order.
  SamplingOptions sampling = greedy_sampling();
  std::int64_t generation_rows = 32;  // sequences that are generated at a time
  // Folder where answers are kept by content and looked up (result_cache.h); empty: nowhere.
  std::filesystem::path cache = {};
  const Ranks* ranks = nullptr;  // those that share the items (base/ranks.h); none: this process
};

// One for each item, in the order of the items.
struct ItemAnswer {
  // Choices: for each the log-likelihood of its tokens after the context, in nats, whether each of
  // them was the most likely one, and how many they are.
  std::vector<double> loglik = {};
  std::vector<bool> greedy = {};
  std::vector<std::int64_t> choice_tokens = {};
  // Tokens of the context (of the prompt, of the text), BOS included, before any cut.
  std::int64_t context_tokens = 0;
  // Generation: the text without the stop string, and how it ended. `truncated`: at its length.
  std::string text = {};
  std::int64_t new_tokens = 0;
  FinishReason finish = FinishReason::stop;
  bool truncated = false;
  // Text: negative log-likelihoods in nats, summed over the scored tokens and for each window.
  double nll = 0;
  std::int64_t scored_tokens = 0;
  std::vector<double> nll_per_window = {};
  // Overlong items; of a skipped one nothing but context_tokens and choice_tokens is filled.
  bool skipped = false;
  bool cut = false;
};

struct EvalCounts {
  std::int64_t answered = 0;         // computed now
  std::int64_t reused = 0;           // found in the cache
  std::int64_t skipped = 0;          // overlong
  std::int64_t cut = 0;              // overlong
  std::int64_t computed_tokens = 0;  // rows of forward passes for choices
  std::int64_t asked_tokens = 0;     // what they would be without anything shared
};

struct EvalResult {
  std::vector<ItemAnswer> answers;
  EvalCounts counts;
};

// Progress goes to `log.progress` as "items" (windows of a text count as items each), of this
// rank's share. With ranks every one calls it with the same items and options and gets all answers.
// Throws an input error that names the item: choices without a token of their own, a context
// without a token, an overlong item with Overlong::error, logits that are not finite.
[[nodiscard]] EvalResult answer_items(const Model& model, const Tokenizer& tokenizer,
                                      std::span<const EvalItem> items,
                                      const EvalOptions& options = {}, const Log& log = {});

}  // namespace onset
