// What the parts of the engine have in common: pieces of work that are computed, kept and shared
// among ranks as a whole. Inside the eval room. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onset/eval/encoding.h"
#include "onset/eval/engine.h"
#include "onset/eval/result_cache.h"

namespace onset {

class Hooks;

struct AnswerSetting {
  const Model& model;
  const Tokenizer& tokenizer;
  std::span<const EvalItem> items;
  const EvalOptions& options;
  ItemEncoder encoder;
  std::shared_ptr<const Hooks> hooks;  // the mask, or null
  std::int64_t context = 0;            // the longest sequence; 0: no limit
  // As the released code, whose choice of dims averages over the batch: then nothing shares a pass.
  bool alone = false;
};

// Called with the number of steps that are done more.
using Advance = std::function<void(std::int64_t steps)>;

struct AnswerUnit {
  std::int64_t cost = 0;   // tokens, for dealing units among ranks
  std::int64_t steps = 0;  // of progress
  std::vector<std::string> keys = {};
  // What of it is not known yet.
  std::function<std::vector<ResultCache::Entry>(const ResultCache& known, const Advance&)> compute =
      {};
};

// Whether an item of `tokens` fits. If not: cut (true for the answer's `cut`), skipped, or an input
// error, as the options say.
[[nodiscard]] bool fits(const AnswerSetting& setting, std::size_t item, std::int64_t tokens,
                        ItemAnswer& answer);

// Throws an input error that names the item where an id is none of the model's.
void require_known(const AnswerSetting& setting, std::size_t item,
                   std::span<const std::int64_t> ids);

}  // namespace onset
