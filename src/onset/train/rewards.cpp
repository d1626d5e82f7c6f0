#include "onset/train/rewards.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "onset/base/command.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/answer_text.h"
#include "onset/eval/number_answer.h"
#include "onset/eval/same_answer.h"
#include "onset/eval/text_pattern.h"

namespace onset {
namespace {

constexpr double abstains = std::numeric_limits<double>::quiet_NaN();

using Completions = std::span<const RewardedCompletion>;

double one_if(bool right) { return right ? 1 : 0; }

// A reward that looks at one completion at a time.
template <typename Score>
Reward each(const std::string& name, Score score) {
  return {.name = name, .score = [score](Completions completions) {
            std::vector<double> values;
            values.reserve(completions.size());
            for (const auto& completion : completions) values.push_back(score(completion));
            return values;
          }};
}

// The right answer: a text, or a number.
std::string answer_of(const RewardedCompletion& completion, const std::string& column) {
  const OrderedJson* record = completion.record;
  if (record == nullptr || !record->is_object() || !record->contains(column)) {
    std::vector<std::string> columns;
    if (record != nullptr && record->is_object()) {
      for (const auto& [name, value] : record->items()) columns.push_back(quote(name));
    }
    throw input_error(
        str_cat("a reward needs the right answer, and the data have no column ", quote(column)),
        str_cat("set reward_answer to one of ", join(columns, ", ")));
  }
  const OrderedJson& answer = record->at(column);
  if (answer.is_string()) return answer.get<std::string>();
  if (answer.is_number()) return answer.dump();
  throw input_error(str_cat("a reward needs the right answer as a text or a number; column ",
                            quote(column), " holds ", answer.type_name()));
}

Reward number_reward(const std::string& name, const std::string& column, bool is_strict) {
  return each(name, [column, is_strict](const RewardedCompletion& completion) {
    const auto number = is_strict ? strict_number(completion.text) : last_number(completion.text);
    return one_if(same_number(answer_of(completion, column), number.value_or("")) ==
                  Verdict::equal);
  });
}

// What a solution comes to: its last box, or what follows "####", or all of it.
std::string_view bare_answer(std::string_view gold) {
  if (const auto box = last_box(gold)) return *box;
  constexpr std::string_view mark = "####";
  const std::size_t at = gold.rfind(mark);
  return trim(at == std::string_view::npos ? gold : gold.substr(at + mark.size()));
}

Reward boxed_reward(const std::string& name, const std::string& column) {
  return each(name, [column](const RewardedCompletion& completion) {
    const std::string gold = answer_of(completion, column);
    const auto box = last_box(completion.text);
    return one_if(box && same_answer(bare_answer(gold), *box) == Verdict::equal);
  });
}

Reward format_reward(const std::string& name, const std::string& regex) {
  if (regex.empty()) {
    throw usage_error("reward format: the regex is empty, which every completion matches",
                      "as in format:^<think>");
  }
  std::shared_ptr<const TextPattern> pattern;
  try {
    pattern = std::make_shared<const TextPattern>(regex, "reward format");
  } catch (const Error& error) {
    throw usage_error(error.what(), error.hint());
  }
  return each(name, [pattern](const RewardedCompletion& completion) {
    return one_if(!pattern->find_all(valid_utf8(completion.text)).empty());
  });
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

Reward length_reward(const std::string& name, const std::string& description) {
  const auto parts = split(description, ',');
  constexpr std::int64_t soft_share = 5;  // of MAX, as in the paper's own runs
  const auto longest = whole_number(parts.front());
  const auto soft =
      parts.size() == 2 ? whole_number(parts[1]) : std::optional(longest.value_or(0) / soft_share);
  if (parts.size() > 2 || !longest || !soft || *longest < 1 || *soft < 0 || *soft > *longest) {
    throw usage_error(str_cat("reward length: ", quote(description), " is no MAX or MAX,SOFT"),
                      "tokens, as in length:512 or length:512,100");
  }
  return each(name, [max = *longest, soft = *soft](const RewardedCompletion& completion) {
    if (completion.tokens > max) return -1.0;
    if (completion.tokens <= max - soft) return 0.0;
    return static_cast<double>(max - soft - completion.tokens) / static_cast<double>(soft);
  });
}

std::string command_input(Completions completions) {
  std::string lines;
  for (const RewardedCompletion& completion : completions) {
    const OrderedJson line{
        {"prompt", valid_utf8(completion.prompt)},
        {"completion", valid_utf8(completion.text)},
        {"record", completion.record == nullptr ? OrderedJson() : *completion.record},
        {"ended", completion.ended},
        {"tokens", completion.tokens}};
    lines += line.dump() + "\n";
  }
  return lines;
}

std::vector<double> command_scores(const std::string& command, std::string_view output,
                                   std::size_t wanted) {
  const std::string where = str_cat("the command ", quote(command));
  while (output.ends_with('\n') || output.ends_with('\r')) output.remove_suffix(1);
  std::vector<double> scores;
  if (!output.empty()) {
    for (const std::string& line : split(output, '\n')) {
      const std::string place = str_cat(where, ", line ", scores.size() + 1, " of its output");
      Json value;
      try {
        value = parse_json(trim(line), place);
      } catch (const Error&) {
        value = line;  // judged below
      }
      if (!value.is_number() && !value.is_null()) {
        throw input_error(str_cat(place, " is ", quote(line)),
                          "it has to be a number, or null where there is nothing to say");
      }
      scores.push_back(value.is_null() ? abstains : value.get<double>());
      if (std::abs(scores.back()) > most_reward) {
        throw input_error(str_cat(place, " is ", quote(line)), most_reward_hint);
      }
    }
  }
  if (scores.size() != wanted) {
    throw input_error(
        str_cat(where, " printed ", scores.size(), " lines for ", wanted, " completions"),
        "one number, or null, is needed for each line of its input");
  }
  return scores;
}

Reward command_reward(const std::string& name, const std::string& command, double seconds) {
  if (trim(command).empty()) {
    throw usage_error("reward command: no program is given", "as in command:python3 reward.py");
  }
  return {.name = name, .score = [command, seconds](Completions completions) {
            const std::string output = run_command(command, command_input(completions), seconds);
            return command_scores(command, output, completions.size());
          }};
}

// The metrics of one reward. With one number alone there is no std.
void add_metrics(const std::string& name, const std::vector<double>& values, Metrics& metrics) {
  double count = 0;
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    ++count;
    sum += value;
  }
  if (count == 0) return;
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) {
    if (!std::isnan(value)) squares += (value - mean) * (value - mean);
  }
  metrics.emplace_back(str_cat("rewards/", name, "/mean"), mean);
  if (count > 1) {
    metrics.emplace_back(str_cat("rewards/", name, "/std"), std::sqrt(squares / (count - 1)));
  }
}

}  // namespace

Reward make_reward(const std::string& description, const RewardOptions& options) {
  const std::size_t colon = std::min(description.find(':'), description.size());
  const std::string name = description.substr(0, colon);
  const bool has_argument = colon < description.size();
  const std::string argument = has_argument ? description.substr(colon + 1) : "";
  const bool takes_argument = name == "format" || name == "length" || name == "command";
  const bool is_known =
      takes_argument || name == "gsm8k_strict" || name == "gsm8k_flexible" || name == "boxed_math";
  if (!is_known) {
    throw usage_error(
        str_cat("there is no reward ", quote(description),
                ": gsm8k_strict, gsm8k_flexible, boxed_math, format:REGEX, length:MAX and "
                "command:PROGRAM are"),
        did_you_mean(nearest(
            name, {"gsm8k_strict", "gsm8k_flexible", "boxed_math", "format", "length", "command"},
            1)));
  }
  if (takes_argument != has_argument) {
    throw usage_error(has_argument ? str_cat("reward ", name, " takes nothing behind a colon")
                                   : str_cat("reward ", name, " needs more: ", name, ":.."));
  }
  if (name == "format") return format_reward(name, argument);
  if (name == "length") return length_reward(name, argument);
  if (name == "command") return command_reward(name, argument, options.command_seconds);
  if (name == "boxed_math") return boxed_reward(name, options.answer);
  return number_reward(name, options.answer, name == "gsm8k_strict");
}

Rewards::Rewards(const std::vector<std::string>& descriptions, std::vector<double> weights,
                 const RewardOptions& options)
    : weights_(std::move(weights)) {
  if (weights_.empty()) weights_.assign(descriptions.size(), 1);
  if (weights_.size() != descriptions.size()) {
    throw usage_error(str_cat(descriptions.size(), " rewards have ", weights_.size(), " weights"));
  }
  std::map<std::string, int> seen;
  for (const std::string& description : descriptions) {
    Reward reward = make_reward(description, options);
    const int count = ++seen[reward.name];
    if (count > 1) reward.name += str_cat("_", count);
    rewards_.push_back(std::move(reward));
  }
}

RewardSums Rewards::score(std::span<const RewardedCompletion> completions) const {
  RewardSums sums{.values = std::vector<double>(completions.size(), abstains), .metrics = {}};
  for (std::size_t i = 0; i < rewards_.size(); ++i) {
    const std::vector<double> values = rewards_[i].score(completions);
    add_metrics(rewards_[i].name, values, sums.metrics);
    for (std::size_t c = 0; c < values.size(); ++c) {
      if (std::isnan(values[c])) continue;
      double& sum = sums.values[c];
      sum = (std::isnan(sum) ? 0 : sum) + weights_[i] * values[c];
    }
  }
  return sums;
}

}  // namespace onset
