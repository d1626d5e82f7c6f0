// The choice items of an evaluation. Inside the eval room. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onset/eval/answer_units.h"
#include "onset/eval/choice_plan.h"
#include "onset/eval/choice_scores.h"

namespace onset {

class ChoiceAnswers {
 public:
  explicit ChoiceAnswers(const AnswerSetting& setting);

  // Encodes it; an overlong one that is skipped gives no unit.
  void add(std::size_t item, ItemAnswer& answer);
  // Plans what was added, once. The units refer to this object.
  [[nodiscard]] std::vector<AnswerUnit> units();
  [[nodiscard]] bool knows(const ResultCache& known, std::size_t item) const;
  void fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const;

  [[nodiscard]] std::int64_t asked_tokens() const { return asked_tokens_; }
  [[nodiscard]] std::int64_t computed_tokens() const { return computed_tokens_; }

 private:
  [[nodiscard]] const std::string& key_of(const ChoiceTree::Member& member) const;
  [[nodiscard]] std::vector<ResultCache::Entry> compute(std::size_t wave, const ChoiceBatch& batch,
                                                        const ResultCache& known);

  const AnswerSetting& setting_;
  PlanOptions plan_options_;
  std::vector<ChoiceTree> trees_;
  ChoicePlan plan_;
  std::optional<ChoiceScorer> scorer_;
  std::optional<std::size_t> prepared_;  // the wave whose prefixes the scorer holds
  std::map<std::size_t, std::vector<std::string>> keys_;  // of an item's choices
  std::set<std::string> planned_;                         // keys of what is in trees_
  std::int64_t asked_tokens_ = 0;
  std::int64_t computed_tokens_ = 0;
};

}  // namespace onset
