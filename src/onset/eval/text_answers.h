// The text items of an evaluation, in windows. Inside the eval room. Torch-free.
#pragma once

#include <cstddef>
#include <map>
#include <set>
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
  std::vector<TextWindow> windows_;                          // of all texts, each content once
  std::vector<std::string> keys_;                            // of windows_
  std::vector<std::size_t> items_;                           // the first item that has the window
  std::set<std::string> planned_;                            // keys_ as a set
  std::map<std::size_t, std::vector<std::string>> of_item_;  // keys of all its windows
};

}  // namespace onset
