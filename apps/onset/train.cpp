// onset train sft|dpo|grpo|pretrain: fine-tuning, with WeMask inside where it is asked for.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/model/runtime.h"
#include "onset/report/training_page.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/train/settings_toml.h"
#include "onset/train/training_run.h"
#include "output.h"
#include "prompts.h"
#include "stop_signals.h"
#include "text.h"
#include "train_options.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct Method {
  std::string name;
  TrainMethod method;
  std::string summary;
};

const std::vector<Method>& methods() {
  static const std::vector<Method> table{
      {"sft", TrainMethod::sft, "supervised fine-tuning on texts, prompts with answers, chats"},
      {"dpo", TrainMethod::dpo, "preferences: a better and a worse answer to each prompt"},
      {"grpo", TrainMethod::grpo, "answers sampled from the model itself, and rewarded"},
      {"pretrain", TrainMethod::pretrain, "a new small model from random weights, on texts"},
  };
  return table;
}

std::string overview() {
  std::vector<HelpRow> rows;
  for (const Method& method : methods()) rows.push_back({method.name, "", method.summary, ""});
  return str_cat("usage: onset train METHOD MODEL --train-file FILE -o DIR [options]\n\n",
                 wrap("Trains a model, or an adapter on it, as it is or under a WeMask.", 80, 0),
                 "\n\nMethods:\n", help_rows(rows),
                 "\nonset train METHOD --help lists the settings; --config FILE reads them from "
                 "TOML.\n");
}

constexpr const char* stopping_words =
    "\nonset: stopping after this update, which is saved; a second signal ends at once\n";

// "6 h 56 min", "12 min", "40 s".
std::string duration_words(double seconds) {
  constexpr double minute = 60;
  constexpr double hour = 3600;
  constexpr double longest = 1e7 * hour;
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  if (!(seconds < longest)) return "years";
  if (seconds < 100) return str_cat(whole(std::round(seconds)), " s");
  const std::int64_t minutes = whole(std::round(seconds / minute));
  if (seconds < 100 * minute) return str_cat(minutes, " min");
  return str_cat(grouped(minutes / 60), " h ", minutes % 60, " min");
}

// "loss 1.2345", as many digits as say something.
std::string number_text(double value) {
  const double size = std::abs(value);
  if (value == 0 || (size >= 1e-3 && size < 1e5)) return fixed(value, size < 10 ? 4 : 1);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

// What a line on the terminal shows of a line of metrics, in this order.
const std::vector<std::pair<std::string, std::string>>& shown_metrics() {
  static const std::vector<std::pair<std::string, std::string>> names{
      {"loss", "loss"},
      {"eval_loss", "eval loss"},
      {"mean_token_accuracy", "accuracy"},
      {"rewards/accuracies", "accuracy"},
      {"rewards/margins", "margin"},
      {"eval_mean_token_accuracy", "eval accuracy"},
      {"eval_rewards/accuracies", "eval accuracy"},
      {"eval_rewards/margins", "eval margin"},
      {"reward", "reward"},
      {"frac_reward_abstained", "abstained"},
      {"eval_reward", "eval reward"},
      {"completions/mean_length", "length"},
      {"kl", "kl"},
      {"ratio_error", "ratio error"},
      {"grad_norm", "grad norm"},
      {"learning_rate", "rate"},
      {"tokens_per_second", "tokens/s"},
  };
  return names;
}

// Where every completion has a reward, no line says so.
bool is_shown(const std::string& metric, double value) {
  return metric != "frac_reward_abstained" || value > 0;
}

class RunView {
 public:
  explicit RunView(Console& console) : console_(console) {}

  void updated(std::int64_t step, std::int64_t total) {
    if (!first_step_) {
      first_step_ = step;
      begin_ = std::chrono::steady_clock::now();
    }
    step_ = step;
    total_ = total;
    console_.progress("updates", step, total);
  }

  void logged(std::int64_t step, const Metrics& metrics) {
    std::string text = str_cat("step ", step, "/", total_);
    for (const auto& [name, words] : shown_metrics()) {
      for (const auto& [key, value] : metrics) {
        if (key == name && is_shown(key, value)) {
          text += str_cat("  ", words, " ", number_text(value));
        }
      }
    }
    const std::string left = time_left();
    if (!left.empty()) text += "  " + left + " left";
    console_.erase();
    console_.note(text);
  }

 private:
  [[nodiscard]] std::string time_left() const {
    if (!first_step_ || step_ <= *first_step_ || step_ >= total_) return {};
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const auto made = static_cast<double>(step_ - *first_step_);
    return duration_words(elapsed.count() / made * static_cast<double>(total_ - step_));
  }

  Console& console_;
  std::optional<std::int64_t> first_step_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t step_ = 0;
  std::int64_t total_ = 0;
};

std::vector<ScanPrompt> watched_prompts(const Tokenizer& tokenizer) {
  std::vector<ScanPrompt> prompts;
  for (const std::string& text : built_in_texts()) {
    const auto ids = tokenizer.encode(text, {.add_special = true});
    prompts.push_back({.text = text, .ids = {ids.begin(), ids.end()}});
  }
  return prompts;
}

std::string result_text(const TrainingResult& result, const std::string& output) {
  std::string text = str_cat(result.step, " of ", counted(result.steps, "update"), " made");
  if (result.skipped > 0) {
    text += str_cat(", ", result.skipped, " left out for gradients that were not finite");
  }
  if (result.best) {
    text += str_cat("; best ", result.best->metric, " ", number_text(result.best->value),
                    " at step ", result.best->step);
  }
  if (result.stopped) {
    return text + str_cat("; stopped and saved, ", output,
                          "/final is not written yet.\nTo go on to it: the same command with "
                          "--resume-from-checkpoint last\nrun    ",
                          output, ": report.html\n");
  }
  return text + str_cat("\nmodel  ", result.model.string(), "\nrun    ", output, ": report.html\n");
}

}  // namespace

int run_train(const Invocation& invocation) {
  std::vector<std::string> rest = invocation.arguments;
  const std::string name = rest.empty() ? "" : rest.front();
  if (name.empty() || name == "--help" || name == "-h") {
    ResultWriter writer("");
    writer.write(overview());
    writer.finish();
    return name.empty() ? 2 : 0;
  }
  const auto found = std::find_if(methods().begin(), methods().end(),
                                  [&](const Method& method) { return method.name == name; });
  if (found == methods().end()) {
    throw usage_error(str_cat("onset train knows no method ", quote(name)),
                      "sft, dpo, grpo or pretrain; onset train --help");
  }
  rest.erase(rest.begin());
  const auto options = parse_train_options(found->method, rest);
  if (!options) return 0;
  const Ranks ranks = Ranks::join();
  require_files(options->settings);
  const TrainSettings settings = checked_settings(options->settings, ranks.count());
  ResultWriter writer("");
  if (options->print_settings) {
    writer.write(settings_toml(settings));
    writer.finish();
    return 0;
  }
  StopSignals signals(
      {.early_exit = 1, .said = ranks.is_first() ? stopping_words : nullptr, .again_ends = true});
  keep_freed_memory();
  set_threads(static_cast<int>(options->threads));
  Console console(options->quiet || !ranks.is_first());
  RunView view(console);
  RunEvents events;
  events.say = [&](const std::string& paragraph) {
    for (const std::string& row : split(wrap(paragraph, 90, 2), '\n')) console.note(row);
  };
  events.updated = [&](std::int64_t step, std::int64_t total, const Metrics&) {
    view.updated(step, total);
  };
  events.logged = [&](std::int64_t step, const Metrics& metrics) { view.logged(step, metrics); };
  events.saved = [&](const std::filesystem::path& checkpoint) {
    console.note(str_cat("saved ", checkpoint.string()));
  };
  events.should_stop = [&] { return signals.wait_for(std::chrono::milliseconds(0)); };
  events.watched_prompts = watched_prompts;
  events.begins = [&] { signals.ready(); };
  const TrainingResult result = run_training(settings, ranks, events, console.log());
  console.erase();
  if (!ranks.is_first()) return 0;
  const std::filesystem::path page =
      std::filesystem::path(settings.trainer.output_dir) / "report.html";
  write_file_atomically(page, training_report(settings.trainer.output_dir));
  writer.write(result_text(result, settings.trainer.output_dir));
  writer.finish();
  return 0;
}

}  // namespace onset::app
