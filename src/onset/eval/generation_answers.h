// The generation items of an evaluation. Inside the eval room. Torch-free.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onset/eval/answer_units.h"
#include "onset/generate/generator.h"

namespace onset {

// Items are generated in groups, each in a generator of its own and run to its end, so that what an
// item is batched with depends on the items alone and a resumed run repeats it.
class GenerationAnswers {
 public:
  explicit GenerationAnswers(const AnswerSetting& setting) : setting_(setting) {}

  void add(std::size_t item, ItemAnswer& answer);
  // The units refer to this object; nothing is added behind them.
  [[nodiscard]] std::vector<AnswerUnit> units();
  [[nodiscard]] bool knows(const ResultCache& known, std::size_t item) const;
  void fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const;

 private:
  struct Prompt {
    std::size_t item = 0;
    std::string key = {};
    GenerationRequest request = {};
  };
  [[nodiscard]] std::vector<ResultCache::Entry> compute(std::span<const Prompt> prompts,
                                                        const ResultCache& known,
                                                        const Advance& advance) const;

  const AnswerSetting& setting_;
  std::vector<Prompt> prompts_;
  std::map<std::size_t, std::string> keys_;         // of items
  std::set<std::string> planned_;                   // keys of prompts_, each of which is there once
  std::map<std::string, std::uint64_t> same_text_;  // how often a prompt came before
};

}  // namespace onset
