#include "onset/train/settings.h"

#include <string>

namespace onset {

std::string_view name_of(TrainMethod method) {
  switch (method) {
    case TrainMethod::sft:
      return "sft";
    case TrainMethod::dpo:
      return "dpo";
    case TrainMethod::grpo:
      return "grpo";
    case TrainMethod::pretrain:
      break;
  }
  return "pretrain";
}

TrainSettings default_settings(TrainMethod method) {
  TrainSettings settings{.method = method};
  TrainerSettings& trainer = settings.trainer;
  switch (method) {
    case TrainMethod::sft:
      settings.lora.dropout = 0.05;
      break;
    case TrainMethod::dpo:
    case TrainMethod::grpo:
      trainer.learning_rate = 1e-6;
      break;
    case TrainMethod::pretrain:
      trainer.learning_rate = 6e-4;
      trainer.lr_scheduler_type = ScheduleShape::cosine;
      trainer.warmup_steps = 100;
      trainer.num_train_epochs = 1;
      trainer.optimizer.beta2 = 0.95;
      trainer.optimizer.weight_decay = 0.1;
      // All gains are 1 at the start: dims that were frozen then would say nothing of the model.
      settings.wemask.update = MaskUpdate::recompute;
      break;
  }
  return settings;
}

Schedule schedule_of(const TrainerSettings& settings, std::int64_t total_steps) {
  return {.shape = settings.lr_scheduler_type,
          .learning_rate = settings.learning_rate,
          .warmup_steps = settings.warmup_ratio > 0
                              ? warmup_steps_of(settings.warmup_ratio, total_steps)
                              : settings.warmup_steps,
          .total_steps = total_steps};
}

RewardOptions reward_options(const GrpoSettings& settings) {
  return {.answer = settings.reward_answer, .command_seconds = settings.reward_timeout};
}

bool greater_is_better(const TrainerSettings& settings) {
  return settings.greater_is_better.value_or(!settings.metric_for_best_model.empty() &&
                                             !settings.metric_for_best_model.ends_with("loss"));
}

}  // namespace onset
