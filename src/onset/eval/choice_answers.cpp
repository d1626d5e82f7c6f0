#include "onset/eval/choice_answers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/generate/prefix_cache.h"
#include "onset/model/model.h"

namespace onset {
namespace {

// The last token of a continuation is predicted and not read.
ChoiceSequence sequence_of(const TokenPair& pair) {
  ChoiceSequence sequence{.input = pair.context, .targets = pair.continuation};
  sequence.input.insert(sequence.input.end(), pair.continuation.begin(),
                        pair.continuation.end() - 1);
  return sequence;
}

std::int64_t length_of(const std::vector<std::int64_t>& ids) {
  return static_cast<std::int64_t>(ids.size());
}

}  // namespace

ChoiceAnswers::ChoiceAnswers(const AnswerSetting& setting)
    : setting_(setting),
      plan_options_{
          .batch_tokens = setting.alone ? 1 : setting.options.batch_tokens,
          .share = !setting.alone,
          .may_share = [&config = setting.model.config()](std::int64_t length, std::int64_t other) {
            return same_rope(config, length, other);
          }} {}

void ChoiceAnswers::add(std::size_t item, ItemAnswer& answer) {
  const std::vector<TokenPair> pairs = setting_.encoder.pairs(setting_.items[item]);
  std::vector<ChoiceSequence> sequences;
  for (const TokenPair& pair : pairs) {
    require_known(setting_, item, pair.context);
    require_known(setting_, item, pair.continuation);
    sequences.push_back(sequence_of(pair));
    sequences.back().item = item;
    sequences.back().choice = sequences.size() - 1;
    answer.context_tokens = std::max(answer.context_tokens, length_of(pair.context));
    answer.choice_tokens.push_back(length_of(pair.continuation));
  }
  for (ChoiceSequence& sequence : sequences) {
    const std::int64_t length = length_of(sequence.input);
    if (fits(setting_, item, length, answer)) continue;
    if (answer.skipped) return;
    if (length_of(sequence.targets) > setting_.context) {
      throw input_error(
          str_cat(describe(setting_.items[item]), ": choice ", sequence.choice, " alone has ",
                  sequence.targets.size(), " tokens, and the context is ", setting_.context),
          "--overlong skip leaves such items out");
    }
    sequence.input.erase(sequence.input.begin(),
                         sequence.input.begin() + (length - setting_.context));
  }
  std::vector<std::string>& keys = keys_[item];
  std::vector<ChoiceSequence> fresh;  // that no other item has: each is in one batch alone
  for (ChoiceSequence& sequence : sequences) {
    keys.push_back(ContentHash().add("choice").add(sequence.input).add(sequence.targets).hex());
    asked_tokens_ += length_of(sequence.input);
    if (planned_.insert(keys.back()).second) fresh.push_back(std::move(sequence));
  }
  for (ChoiceTree& tree : choice_trees(fresh, plan_options_)) trees_.push_back(std::move(tree));
}

std::vector<AnswerUnit> ChoiceAnswers::units() {
  plan_ = plan_choices(std::move(trees_), plan_options_);
  scorer_.emplace(setting_.model, plan_, setting_.hooks);
  std::vector<AnswerUnit> units;
  std::set<std::size_t> counted;  // items, each a step of the first batch that it is in
  for (std::size_t w = 0; w < plan_.waves.size(); ++w) {
    for (const ChoiceBatch& batch : plan_.waves[w].batches) {
      AnswerUnit unit{.cost = batch.rows};
      for (const std::size_t t : batch.trees) {
        for (const auto& member : plan_.trees[t].choices) {
          unit.keys.push_back(key_of(member));
          if (counted.insert(member.item).second) ++unit.steps;
        }
      }
      unit.compute = [this, w, &batch, steps = unit.steps](const ResultCache& known,
                                                           const Advance& advance) {
        auto entries = compute(w, batch, known);
        advance(steps);
        return entries;
      };
      units.push_back(std::move(unit));
    }
  }
  return units;
}

const std::string& ChoiceAnswers::key_of(const ChoiceTree::Member& member) const {
  return keys_.at(member.item)[member.choice];
}

std::vector<ResultCache::Entry> ChoiceAnswers::compute(std::size_t wave, const ChoiceBatch& batch,
                                                       const ResultCache& known) {
  if (prepared_ != wave) {
    scorer_->prepare(plan_.waves[wave]);
    prepared_ = wave;
    for (const std::size_t prefix : plan_.waves[wave].prefixes) {
      computed_tokens_ += length_of(plan_.prefixes[prefix].ids);
    }
  }
  ChoiceBatch missing;
  for (const std::size_t t : batch.trees) {
    const auto& choices = plan_.trees[t].choices;
    if (std::all_of(choices.begin(), choices.end(),
                    [&](const auto& member) { return known.find(key_of(member)) != nullptr; })) {
      continue;
    }
    missing.trees.push_back(t);
    missing.rows += plan_.trees[t].rows();
  }
  computed_tokens_ += missing.rows;
  const auto scores = scorer_->score(missing);
  std::vector<ResultCache::Entry> entries;
  for (std::size_t i = 0; i < missing.trees.size(); ++i) {
    const auto& choices = plan_.trees[missing.trees[i]].choices;
    for (std::size_t c = 0; c < choices.size(); ++c) {
      const ChoiceScore& score = scores[i][c];
      require_input(std::isfinite(score.loglik), describe(setting_.items[choices[c].item]),
                    ": the model's logits are not finite (NaN or infinity)");
      entries.emplace_back(key_of(choices[c]), Json::array({score.loglik, score.greedy}));
    }
  }
  return entries;
}

bool ChoiceAnswers::knows(const ResultCache& known, std::size_t item) const {
  const auto keys = keys_.find(item);
  return keys != keys_.end() &&
         std::all_of(keys->second.begin(), keys->second.end(),
                     [&](const std::string& key) { return known.find(key) != nullptr; });
}

void ChoiceAnswers::fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const {
  for (const std::string& key : keys_.at(item)) {
    const Json& value = known.at(key);
    answer.loglik.push_back(value.at(0).get<double>());
    answer.greedy.push_back(value.at(1).get<bool>());
  }
}

}  // namespace onset
