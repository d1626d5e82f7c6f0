#include "onset/eval/text_answers.h"

#include <algorithm>
#include <cmath>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/model/batches.h"

namespace onset {

void TextAnswers::add(std::size_t item, ItemAnswer& answer) {
  const std::vector<std::int64_t> ids = setting_.encoder.text(setting_.items[item]);
  require_known(setting_, item, ids);
  answer.context_tokens = static_cast<std::int64_t>(ids.size());
  WindowOptions options = setting_.options.windows;
  options.bos = setting_.encoder.bos();
  if (setting_.context > 0 && options.window > setting_.context) {
    throw usage_error(str_cat("windows of ", options.window, " tokens are longer than the context ",
                              setting_.context),
                      "make the windows shorter");
  }
  std::vector<TextWindow> windows;
  try {
    windows = text_windows(ids, options);
  } catch (const Error& error) {
    throw Error(error.kind(), str_cat(describe(setting_.items[item]), ": ", error.what()),
                error.hint());
  }
  std::vector<std::string>& keys = of_item_[item];
  for (TextWindow& window : windows) {
    answer.scored_tokens += window.scored_tokens();
    keys.push_back(ContentHash().add("window").add(window.ids).add(window.first_scored).hex());
    if (!planned_.insert(keys.back()).second) continue;
    keys_.push_back(keys.back());
    items_.push_back(item);
    windows_.push_back(std::move(window));
  }
}

std::vector<AnswerUnit> TextAnswers::units() const {
  std::vector<std::int64_t> lengths;
  for (const TextWindow& window : windows_) {
    lengths.push_back(static_cast<std::int64_t>(window.ids.size()));
  }
  std::vector<AnswerUnit> units;
  for (const PromptRange& range :
       divide(lengths, setting_.alone ? 1 : setting_.options.batch_tokens)) {
    AnswerUnit unit{.steps = static_cast<std::int64_t>(range.end - range.begin)};
    for (std::size_t w = range.begin; w < range.end; ++w) {
      unit.cost += lengths[w];
      unit.keys.push_back(keys_[w]);
    }
    unit.compute = [this, range](const ResultCache&, const Advance& advance) {
      auto entries = compute(range.begin, range.end);
      advance(static_cast<std::int64_t>(range.end - range.begin));
      return entries;
    };
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<ResultCache::Entry> TextAnswers::compute(std::size_t begin, std::size_t end) const {
  const std::vector<double> nll = score_windows(
      setting_.model, std::span(windows_).subspan(begin, end - begin), setting_.hooks.get());
  std::vector<ResultCache::Entry> entries;
  for (std::size_t w = begin; w < end; ++w) {
    require_input(std::isfinite(nll[w - begin]), describe(setting_.items[items_[w]]),
                  ": the model's logits are not finite (NaN or infinity)");
    entries.emplace_back(keys_[w], nll[w - begin]);
  }
  return entries;
}

bool TextAnswers::knows(const ResultCache& known, std::size_t item) const {
  const std::vector<std::string>& keys = of_item_.at(item);
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return known.find(key) != nullptr; });
}

void TextAnswers::fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const {
  for (const std::string& key : of_item_.at(item)) {
    answer.nll_per_window.push_back(known.at(key).get<double>());
    answer.nll += answer.nll_per_window.back();
  }
}

}  // namespace onset
