#include "onset/train/trainer.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/train/rank_gradients.h"

namespace onset {
namespace {

// Of these the latest value is told, of all others the mean since the last line.
bool is_latest(std::string_view name) {
  return name == "num_tokens" || name == "epoch" || name == "learning_rate";
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const double* find(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

Trainer::Trainer(Policy& policy, Objective& objective, const Ranks& ranks, TrainerOptions options,
                 TrainerCalls calls)
    : policy_(policy),
      objective_(objective),
      ranks_(ranks),
      options_(std::move(options)),
      calls_(std::move(calls)),
      optimizer_({policy.trained().begin(), policy.trained().end()}, options_.optimizer) {
  static_cast<void>(learning_rate_at(options_.schedule, 0));  // throws for what is out of range
}

void Trainer::resume(const std::filesystem::path& checkpoint) {
  const TrainState state = read_train_state(checkpoint);
  check_same_run(state, options_.identity, checkpoint);
  objective_.restore(state.progress);
  read_optimizer(checkpoint, optimizer_);
  policy_.changed();
  step_ = state.step;
  resumed_ = state.step;
  saved_step_ = state.step;
  best_ = state.best;
}

void Trainer::take_weights(const std::filesystem::path& checkpoint) {
  read_optimizer(checkpoint, optimizer_);
  policy_.changed();
}

Metrics Trainer::update() {
  const auto begin = std::chrono::steady_clock::now();
  const auto trained = policy_.trained();
  const double* before = find(latest_, "num_tokens");
  const double tokens_before = before == nullptr ? 0 : *before;
  Metrics metrics = objective_.accumulate(step_);
  add_gradients(trained, ranks_);
  const double rate = learning_rate_at(options_.schedule, step_);
  const auto norm = options_.skip_non_finite
                        ? clip_gradients_if_finite(trained, options_.max_grad_norm)
                        : std::optional(clip_gradients(trained, options_.max_grad_norm));
  if (norm) {
    optimizer_.step(rate);
    policy_.changed();
  } else {
    ++skipped_;
  }
  clear_gradients(trained);
  metrics.emplace_back("grad_norm", norm.value_or(std::nan("")));
  metrics.emplace_back("learning_rate", rate);
  if (const double* tokens = find(metrics, "num_tokens"); tokens != nullptr && before != nullptr) {
    metrics.emplace_back("tokens_per_second", (*tokens - tokens_before) / seconds_since(begin));
  }
  ++step_;
  return metrics;
}

void Trainer::log(const Metrics& metrics) {
  if (writer_) writer_->write(step_, metrics);
  if (calls_.logged && ranks_.is_first()) calls_.logged(step_, metrics);
}

void Trainer::log_means() {
  if (means_.empty()) return;
  Metrics line = means_.take();
  line.insert(line.end(), latest_.begin(), latest_.end());
  log(line);
}

void Trainer::evaluate() {
  const Metrics metrics = objective_.evaluate();
  if (metrics.empty()) return;
  log(metrics);
  const double* value = find(metrics, options_.best_metric);
  if (value == nullptr || std::isnan(*value)) return;
  const bool better =
      !best_ || (options_.greater_is_better ? *value > best_->value : *value < best_->value);
  if (!better) return;
  best_ = {.step = step_, .metric = options_.best_metric, .value = *value};
  new_best_ = true;
}

void Trainer::save() {
  log_means();
  check_same_weights(policy_.trained(), ranks_);
  if (!options_.output.empty() && ranks_.is_first()) {
    const TrainState state{.step = step_,
                           .identity = options_.identity,
                           .progress = objective_.progress(),
                           .best = best_};
    const auto path = save_checkpoint(
        options_.output, state, optimizer_,
        [&](const std::filesystem::path& folder) {
          if (calls_.write_model) calls_.write_model(folder);
        },
        options_.retention);
    if (calls_.saved) calls_.saved(path);
  }
  saved_step_ = step_;
  new_best_ = false;
}

bool Trainer::asked_to_stop() {
  std::array<double, 1> asked{};
  if (ranks_.is_first() && calls_.should_stop && calls_.should_stop()) asked[0] = 1;
  ranks_.add(asked);
  return asked[0] > 0;
}

RunResult Trainer::run() {
  if (!options_.output.empty() && ranks_.is_first()) {
    writer_.emplace(options_.output, resumed_, options_.event_files);
  }
  const auto due = [this](std::int64_t every) { return every > 0 && step_ % every == 0; };
  const auto watch = [this] {
    if (calls_.watch && ranks_.is_first()) calls_.watch(step_);
  };
  if (options_.watch_steps > 0 && step_ == 0) watch();
  const std::int64_t total = options_.schedule.total_steps;
  bool stopped = false;
  bool save_waits = false;
  while (step_ < total && !stopped) {
    const Metrics metrics = update();
    if (calls_.updated) calls_.updated(step_, metrics);
    latest_.clear();
    for (const auto& [name, value] : metrics) {
      if (is_latest(name)) {
        latest_.emplace_back(name, value);
      } else {
        means_.add(name, value);
      }
    }
    if (due(options_.logging_steps) || step_ == total) log_means();
    if (due(options_.eval_steps) || (options_.eval_steps > 0 && step_ == total)) evaluate();
    if (due(options_.watch_steps)) watch();
    stopped = asked_to_stop();
    save_waits = save_waits || due(options_.save_steps) || new_best_;
    if (save_waits && objective_.can_be_saved()) {
      save();
      save_waits = false;
    }
    // A rollout that is not used up is not saved: the run goes on until it is.
    if (stopped && !objective_.can_be_saved() && step_ < total) {
      stopped = false;
      save_waits = true;
    }
  }
  if (saved_step_ != step_) save();
  return {.step = step_, .skipped = skipped_, .stopped = stopped, .best = best_};
}

}  // namespace onset
