#include "onset/train/grpo_data.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/train/records.h"
#include "onset/train/rewards.h"
#include "onset/train/row_encoder.h"

namespace onset {
namespace {

void read_completions(const Record& record, const GrpoDataOptions& options, RolloutPrompt& prompt) {
  prompt.completions = record.id_lists("completions");
  prompt.rewards = record.numbers("rewards");
  require_input(prompt.completions.size() == prompt.rewards.size(), record.where(), ": ",
                prompt.rewards.size(), " rewards for ", prompt.completions.size(), " completions");
  for (std::size_t i = 0; i < prompt.rewards.size(); ++i) {
    if (std::isnan(prompt.rewards[i]) || std::abs(prompt.rewards[i]) <= most_reward) continue;
    throw input_error(str_cat(record.place("rewards"), ": entry ", i, " is ", prompt.rewards[i]),
                      most_reward_hint);
  }
  const std::size_t count = prompt.completions.size();
  const std::int64_t wanted = options.num_generations;
  if (wanted > 0 && count != static_cast<std::size_t>(wanted)) {
    throw input_error(
        str_cat(record.where(), ": has ", count, count == 1 ? " completion" : " completions",
                ", and num_generations is ", wanted),
        "the completions of a row are one group: give each row as many as "
        "num_generations says, or set it to what they have");
  }
  for (const auto& completion : prompt.completions) {
    require_input(!completion.empty(), record.where(), ": a completion has no token");
  }
}

RolloutPrompt read_prompt(const Record& record, const GrpoDataOptions& options) {
  RolloutPrompt prompt;
  if (record.has("prompt_ids")) {
    prompt.prompt = record.ids("prompt_ids");
    if (record.has("completions") || record.has("rewards"))
      read_completions(record, options, prompt);
  } else if (record.has("prompt")) {
    const auto speech = speech_of(record, "prompt", "user", options.data);
    prompt.prompt = RowEncoder(options.data).prompt(speech, record);
  } else {
    throw record.no_columns("prompt, or prompt_ids");
  }
  require_input(!prompt.prompt.empty(), record.where(), ": the prompt has no token");
  prompt.record = record.fields();
  return prompt;
}

}  // namespace

GrpoData read_grpo_data(const std::filesystem::path& path, const GrpoDataOptions& options) {
  check_columns(options.data, {"prompt", "prompt_ids", "completions", "rewards"});
  GrpoData data;
  auto& report = data.report;
  report.where = path.string();
  for (const auto& row : read_records(path)) {
    if (options.data.limit > 0 && report.rows == options.data.limit) break;
    ++report.rows;
    auto prompt = read_prompt(Record(row, options.data), options);
    const auto length = static_cast<std::int64_t>(prompt.prompt.size());
    if (options.max_prompt_length > 0 && length > options.max_prompt_length) {
      ++report.dropped;
      continue;
    }
    if (!data.prompts.empty()) {
      require_input(data.prompts.front().completions.empty() == prompt.completions.empty(),
                    row.where, ": some rows of the file have completions and others have none");
    }
    ++report.kept;
    report.tokens += length;
    report.longest = std::max(report.longest, length);
    data.prompts.push_back(std::move(prompt));
  }
  if (data.prompts.empty()) {
    throw input_error(str_cat(path.string(), ": every prompt is longer than max_prompt_length, ",
                              options.max_prompt_length, " tokens"),
                      "choose a longer one");
  }
  return data;
}

}  // namespace onset
