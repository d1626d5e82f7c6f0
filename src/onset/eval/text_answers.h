// The text items of an evaluation, in windows. Inside the eval room. Torch-free.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "onset/eval/answer_units.h"

namespace onset {

class TextAnswers {
 public:
  explicit TextAnswers(const AnswerSetting& setting) : setting_(setting) {}

  void add(std::size_t item, ItemAnswer& answer);
  // The units refer to this object; nothing is added behind them.
  [[nodiscard]] std::vector<AnswerUnit> units() const;
  [[nodiscard]] bool knows(const ResultCache& known, std::size_t item) const;
  void fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const;

 private:
  [[nodiscard]] std::vector<ResultCache::Entry> compute(std::size_t begin, std::size_t end) const;

  const AnswerSetting& setting_;
  std::vector<TextWindow> windows_;                                     // of all texts
  std::vector<std::string> keys_;                                       // of windows_
  std::vector<std::size_t> items_;                                      // whose window it is
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> of_item_;  // [begin, end) in windows_
};

}  // namespace onset
