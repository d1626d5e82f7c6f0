#include "onset/train/training_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/memory.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/kernels/stored_matrix.h"
#include "onset/model/config.h"
#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/train/append_file.h"
#include "onset/train/checkpoint_folders.h"
#include "onset/train/leaks.h"
#include "onset/train/loss_metrics.h"
#include "onset/train/memory_plan.h"
#include "onset/train/new_model.h"
#include "onset/train/records.h"
#include "onset/train/run_data.h"
#include "onset/train/run_folder.h"
#include "onset/train/run_objective.h"
#include "onset/train/settings_toml.h"
#include "onset/train/trained_model.h"
#include "onset/train/trainer.h"
#include "onset/train/watch.h"

namespace onset {
namespace {

constexpr const char* settings_file = "settings.toml";
constexpr const char* watch_file = "watch.jsonl";
constexpr const char* initial_folder = "initial";

// A folder with a tokenizer, or a model that reads ids alone.
std::optional<Tokenizer> tokenizer_of(const std::string& model) {
  try {
    return Tokenizer::open(model);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::input) return std::nullopt;
    throw;
  }
}

// One run, put together part by part.
class Run {
 public:
  Run(const TrainSettings& settings, const Ranks& ranks, const RunEvents& events, const Log& log)
      : settings_(settings), ranks_(ranks), events_(events), log_(log) {}

  TrainingResult go();

 private:
  void say(const std::string& paragraph) const {
    if (!paragraph.empty() && events_.say && ranks_.is_first()) events_.say(paragraph);
  }
  void read_data();
  void require_same_data() const;
  void warn_of_leaks() const;
  void warn_of_an_unmasked_reference() const;
  void refuse_a_model_that_cannot_fit() const;
  void plan_memory() const;
  [[nodiscard]] std::uint64_t seed() const {
    return static_cast<std::uint64_t>(settings_.trainer.seed);
  }
  [[nodiscard]] Device device() const { return parse_device(settings_.trainer.device); }
  [[nodiscard]] std::int64_t total_steps() const;
  [[nodiscard]] TrainerOptions trainer_options(std::int64_t steps) const;
  [[nodiscard]] TrainerCalls trainer_calls(std::int64_t steps);
  void warn_of_nothing_learnt(std::int64_t step, const Metrics& metrics);
  [[nodiscard]] std::filesystem::path write_final(Trainer& trainer, const RunResult& result);

  const TrainSettings& settings_;
  const Ranks& ranks_;
  const RunEvents& events_;
  const Log& log_;
  // Of the device, before anything of the run stood in it.
  std::optional<std::int64_t> memory_ = available_memory();
  std::filesystem::path model_path_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<TrainedModel> trained_;
  RunData data_;
  std::string data_content_;
  std::optional<RunObjective> objective_;
  bool warned_of_nothing_learnt_ = false;
  std::vector<ScanPrompt> watched_;
  std::optional<AppendFile> watch_lines_;
};

void Run::read_data() {
  TextReader reader;
  reader.vocabulary = trained_->model().config().vocabulary;
  if (tokenizer_) {
    reader.tokenizer = &*tokenizer_;
    if (const auto& own = tokenizer_->chat_template()) reader.chat = recognise_chat_format(*own);
  }
  data_ = read_run_data(settings_, reader);
  for (const std::string& note : data_.notes) say(note);
  data_content_ = content_of(data_);
  require_same_data();
}

// Ranks that read other rows would train something else than the settings say, or wait for ever.
void Run::require_same_data() const {
  const auto other = ranks_.first_that_differs(data_content_);
  if (!other) return;
  throw input_error(str_cat("rank ", *other, " has read other data than rank 0"),
                    "put the same files and tokenizer at the same paths of every machine");
}

void Run::warn_of_leaks() const {
  if (!settings_.data.check_leaks || !ranks_.is_first()) return;
  const LeakReport report =
      find_leaks(settings_.data.train_file, settings_.data.limit, settings_.data.task_data);
  if (report.leaking > 0) {
    log_.warning(report.text());
  } else {
    say(report.text());
  }
}

void Run::warn_of_an_unmasked_reference() const {
  const bool compares =
      settings_.method == TrainMethod::dpo || settings_.method == TrainMethod::grpo;
  if (!compares || !settings_.wemask.given() ||
      settings_.wemask.reference == ReferenceWemask::same || !ranks_.is_first())
    return;
  log_.warning(str_cat(
      "reference_wemask = \"none\": the policy is masked and its reference is not, so that they ",
      "differ before the first update",
      settings_.method == TrainMethod::dpo ? ", and DPO's first loss is not ln 2" : ""));
}

// Before the weights are in memory, since they may be what does not fit: with the shortest data,
// and an adapter of no size.
void Run::refuse_a_model_that_cannot_fit() const {
  const Checkpoint checkpoint = Checkpoint::open(model_path_);
  MemoryFacts facts = memory_facts(checkpoint);
  facts.trained = settings_.lora.use_peft ? 0 : facts.weights;
  facts.longest = 1;
  facts.examples = 1;
  facts.rounds_in_products = multiplies_bf16_by_tiles();
  refuse_what_cannot_fit(memory_plan(settings_, read_config(checkpoint), facts), settings_, facts,
                         memory_);
}

void Run::plan_memory() const {
  const Model& model = trained_->model();
  MemoryFacts facts = memory_facts(model.checkpoint());
  facts.trained = trained_->trained_count();
  facts.longest = data_.longest;
  facts.examples = data_.examples();
  facts.rounds_in_products = multiplies_bf16_by_tiles();
  const MemoryPlan plan = memory_plan(settings_, model.config(), facts);
  say(plan.text());
  refuse_what_cannot_fit(plan, settings_, facts, memory_);
}

std::int64_t Run::total_steps() const {
  if (settings_.trainer.max_steps > 0) return settings_.trainer.max_steps;
  const double steps = settings_.trainer.num_train_epochs *
                       static_cast<double>(objective_->objective().steps_per_epoch());
  return std::max<std::int64_t>(1, std::llround(std::ceil(steps)));
}

TrainerOptions Run::trainer_options(std::int64_t steps) const {
  const TrainerSettings& trainer = settings_.trainer;
  const bool evaluates = !settings_.data.eval_file.empty() || settings_.data.hold_out > 0;
  TrainerOptions options;
  options.output = trainer.output_dir;
  options.schedule = schedule_of(trainer, steps);
  options.optimizer = trainer.optimizer;
  options.max_grad_norm = trainer.max_grad_norm;
  options.skip_non_finite = trainer.skip_non_finite;
  options.logging_steps = trainer.logging_steps;
  if (evaluates) {
    options.eval_steps =
        trainer.eval_steps > 0 ? trainer.eval_steps : objective_->objective().steps_per_epoch();
  }
  options.save_steps = trainer.save_steps;
  options.retention = {.keep = trainer.save_total_limit};
  options.best_metric = "";
  if (trainer.load_best_model_at_end) {
    options.best_metric =
        trainer.metric_for_best_model.empty() ? "eval_loss" : trainer.metric_for_best_model;
  }
  options.greater_is_better = greater_is_better(trainer);
  options.watch_steps = trainer.watch;
  options.event_files = trainer.tensorboard;
  options.identity =
      identity_of(settings_, trained_->model().config(), data_content_, steps, ranks_);
  return options;
}

TrainerCalls Run::trainer_calls(std::int64_t steps) {
  TrainerCalls calls;
  calls.write_model = [this](const std::filesystem::path& folder) { trained_->write(folder); };
  calls.updated = [this, steps](std::int64_t step, const Metrics& metrics) {
    if (!ranks_.is_first()) return;
    warn_of_nothing_learnt(step, metrics);
    if (events_.updated) events_.updated(step, steps, metrics);
  };
  calls.logged = events_.logged;
  calls.saved = events_.saved;
  calls.should_stop = events_.should_stop;
  calls.watch = [this](std::int64_t step) {
    watch_lines_->write(watch_line(trained_->policy(), watched_, step).dump() + "\n");
  };
  return calls;
}

// Once: metrics.jsonl has the others.
void Run::warn_of_nothing_learnt(std::int64_t step, const Metrics& metrics) {
  if (warned_of_nothing_learnt_) return;
  const auto is_whole = [&](const std::string& share) {
    return std::any_of(metrics.begin(), metrics.end(), [&](const auto& metric) {
      return metric.first == share && metric.second >= 1;
    });
  };
  std::string why;
  if (is_whole(abstained_metric)) {
    why = str_cat("every reward abstained from every completion; ", abstained_metric,
                  " in metrics.jsonl is the share of completions without a reward");
  } else if (is_whole(equal_rewards_metric)) {
    why = str_cat("all completions of a prompt have the same reward; ", equal_rewards_metric,
                  " in metrics.jsonl is the share of such prompts");
    if (is_whole("completions/clipped_ratio")) {
      why += ", and every completion was cut at max_completion_length";
    }
  }
  if (why.empty()) return;
  log_.warning(str_cat("step ", step, ": nothing is learnt from it, since ", why));
  warned_of_nothing_learnt_ = true;
}

std::filesystem::path Run::write_final(Trainer& trainer, const RunResult& result) {
  if (result.stopped) return {};
  if (settings_.trainer.load_best_model_at_end && result.best) {
    const auto best = checkpoint_path(settings_.trainer.output_dir, result.best->step);
    if (ranks_.is_first()) check_checkpoint(best);
    trainer.take_weights(best);
    say(str_cat("The best checkpoint is that of step ", result.best->step, ": ",
                result.best->metric, " ", result.best->value, "."));
  }
  const auto path = std::filesystem::path(settings_.trainer.output_dir) / final_folder;
  if (ranks_.is_first()) {
    write_folder_atomically(
        path, [this](const std::filesystem::path& folder) { trained_->write(folder); });
  }
  return path;
}

TrainingResult Run::go() {
  require_device(device());
  const std::filesystem::path output = settings_.trainer.output_dir;
  require_folder(output);
  require_records(settings_.data.train_file);
  if (!settings_.data.eval_file.empty()) require_records(settings_.data.eval_file);
  const auto resumed = resumed_checkpoint(settings_.trainer);
  if (!resumed) refuse_another_run(output);
  // Not by each of them: they read the same files.
  if (resumed && ranks_.is_first()) check_checkpoint(*resumed);
  tokenizer_ = tokenizer_of(settings_.model);
  model_path_ = settings_.model;
  if (settings_.method == TrainMethod::pretrain) {
    model_path_ = output / initial_folder;
    if (ranks_.is_first() && !resumed) {
      require_input(tokenizer_.has_value(), settings_.model, ": has no tokenizer");
      refuse_a_new_model_that_cannot_fit(
          new_model_weights(settings_.pretrain, tokenizer_->vocabulary_size()), memory_);
      make_folder(output);
      write_folder_atomically(model_path_, [this](const std::filesystem::path& folder) {
        write_new_model(folder, settings_.pretrain, settings_.model, *tokenizer_, seed());
      });
    }
    static_cast<void>(ranks_.gather(""));  // the others wait for it
  }
  if (device().kind != DeviceKind::cpu) memory_ = free_device_memory(device());
  refuse_a_model_that_cannot_fit();
  trained_ = std::make_unique<TrainedModel>(model_path_, settings_, log_, memory_);
  say(trained_->words());
  read_data();
  warn_of_leaks();
  warn_of_an_unmasked_reference();
  plan_memory();
  objective_.emplace(settings_, model_path_, *trained_, tokenizer_ ? &*tokenizer_ : nullptr,
                     std::move(data_), ranks_, log_);
  const std::int64_t steps = total_steps();
  objective_->take_reference(steps, log_);
  Trainer trainer(trained_->policy(), objective_->objective(), ranks_, trainer_options(steps),
                  trainer_calls(steps));
  if (resumed) {
    trainer.resume(*resumed);
    say(str_cat("Going on after ", resumed->string(), "."));
  }
  if (ranks_.is_first()) {
    make_folder(output);
    write_file_atomically(output / settings_file, settings_toml(settings_));
    if (settings_.trainer.watch > 0) {
      require_input(tokenizer_ && events_.watched_prompts, "watch needs the model's tokenizer");
      watched_ = events_.watched_prompts(*tokenizer_);
      watch_lines_.emplace(output / watch_file,
                           resumed ? AppendFile::Mode::append : AppendFile::Mode::truncate);
    }
  }
  if (events_.begins) events_.begins();
  const RunResult result = trainer.run();
  return {.step = result.step,
          .steps = steps,
          .skipped = result.skipped,
          .stopped = result.stopped,
          .best = result.best,
          .model = write_final(trainer, result)};
}

}  // namespace

TrainingResult run_training(const TrainSettings& settings, const Ranks& ranks,
                            const RunEvents& events, const Log& log) {
  return Run(settings, ranks, events, log).go();
}

}  // namespace onset
