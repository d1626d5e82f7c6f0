#include "onset/train/settings.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "onset/train/settings_table.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
const std::vector<TrainMethod> methods = {TrainMethod::sft, TrainMethod::dpo, TrainMethod::grpo,
                                          TrainMethod::pretrain};

// A change of the defaults, and what the refusal names.
struct Refused {
  TrainMethod method;
  std::function<void(TrainSettings&)> change;
  std::vector<std::string> named;
};

void expect_refused(const std::vector<Refused>& cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    TrainSettings settings = default_settings(cases[i].method);
    cases[i].change(settings);
    const std::string error = error_of([&] { (void)checked_settings(settings, 1); });
    for (const std::string& named : cases[i].named) {
      EXPECT_NE(error.find(named), std::string::npos) << error << " does not name " << named;
    }
  }
}

// The dataclasses of TRL 1.16 and transformers 5.24.
TEST(TrainSettings, DefaultsAreThoseOfTrl) {
  const TrainSettings sft = default_settings(TrainMethod::sft);
  EXPECT_EQ(sft.trainer.learning_rate, 2e-5);
  EXPECT_EQ(sft.trainer.num_train_epochs, 3);
  EXPECT_EQ(sft.trainer.per_device_train_batch_size, 8);
  EXPECT_EQ(sft.trainer.gradient_accumulation_steps, 1);
  EXPECT_EQ(sft.trainer.max_grad_norm, 1);
  EXPECT_EQ(sft.trainer.optimizer.weight_decay, 0);
  EXPECT_EQ(sft.trainer.optimizer.beta1, 0.9);
  EXPECT_EQ(sft.trainer.optimizer.beta2, 0.999);
  EXPECT_EQ(sft.trainer.optimizer.epsilon, 1e-8);
  EXPECT_EQ(sft.trainer.seed, 42);
  EXPECT_EQ(sft.trainer.logging_steps, 10);
  EXPECT_EQ(sft.trainer.save_steps, 500);
  EXPECT_TRUE(sft.trainer.lr_scheduler_type == ScheduleShape::linear);
  EXPECT_EQ(sft.sft.max_length, 1024);
  EXPECT_EQ(sft.lora.r, 16);
  EXPECT_EQ(sft.lora.alpha, 32);
  EXPECT_EQ(sft.lora.dropout, 0.05);
  const TrainSettings dpo = default_settings(TrainMethod::dpo);
  EXPECT_EQ(dpo.trainer.learning_rate, 1e-6);
  EXPECT_EQ(dpo.dpo.loss.beta, 0.1);
  EXPECT_EQ(dpo.dpo.max_length, 1024);
  const TrainSettings grpo = checked_settings(default_settings(TrainMethod::grpo), 1);
  EXPECT_EQ(grpo.trainer.learning_rate, 1e-6);
  EXPECT_EQ(grpo.grpo.num_generations, 8);
  EXPECT_EQ(grpo.grpo.loss.max_completion_length, 512);
  EXPECT_EQ(grpo.grpo.sampling.temperature, 1);
  EXPECT_EQ(grpo.grpo.loss.beta, 0);
  EXPECT_EQ(grpo.grpo.loss.epsilon_low, 0.2);
  EXPECT_EQ(grpo.grpo.loss.epsilon_high, 0.2);
  EXPECT_TRUE(grpo.grpo.loss.type == GrpoLossType::dapo);
  EXPECT_TRUE(grpo.grpo.loss.kl_times_ratio);
  EXPECT_TRUE(grpo.grpo.advantages.scale == RewardScale::group);
  EXPECT_EQ(grpo.grpo.num_iterations, 1);
}

TEST(TrainSettings, EverySettingHasOneNameAndAHelp) {
  for (const TrainMethod method : methods) {
    TrainSettings settings = default_settings(method);
    std::set<std::string> names;
    for (const Setting& setting : settings_table(settings)) {
      EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " is there twice";
      EXPECT_FALSE(setting.help.empty()) << setting.name;
      EXPECT_FALSE(setting.group.empty()) << setting.name;
      EXPECT_EQ(range_fault(setting), "") << setting.name;
      EXPECT_TRUE(advice_for(setting.name).empty() || setting.name == "max_prompt_length")
          << setting.name << " is there, and is said not to be";
    }
  }
}

TEST(TrainSettings, DefaultsOfEveryMethodCanRun) {
  for (const TrainMethod method : methods) {
    EXPECT_NO_THROW((void)checked_settings(default_settings(method), 1));
  }
}

TEST(TrainSettings, ValuesOutOfRangeAreRefusedByName) {
  expect_refused({
      {TrainMethod::sft, [](auto& s) { s.trainer.learning_rate = -1; }, {"learning_rate is -1"}},
      {TrainMethod::sft, [](auto& s) { s.trainer.learning_rate = nan; }, {"learning_rate is nan"}},
      {TrainMethod::sft, [](auto& s) { s.trainer.warmup_ratio = 1.5; }, {"warmup_ratio", "0 to 1"}},
      {TrainMethod::sft, [](auto& s) { s.trainer.optimizer.beta2 = 1; }, {"adam_beta2", "below 1"}},
      {TrainMethod::sft,
       [](auto& s) { s.trainer.per_device_train_batch_size = 0; },
       {"per_device_train_batch_size is 0"}},
      {TrainMethod::sft, [](auto& s) { s.trainer.max_steps = -2; }, {"max_steps is -2"}},
      {TrainMethod::dpo, [](auto& s) { s.dpo.loss.beta = 0; }, {"beta is 0", "above 0"}},
      {TrainMethod::grpo, [](auto& s) { s.grpo.num_generations = 1; }, {"num_generations is 1"}},
      {TrainMethod::grpo, [](auto& s) { s.grpo.sampling.temperature = 0; }, {"temperature is 0"}},
      {TrainMethod::grpo, [](auto& s) { s.grpo.epsilon_high = nan; }, {"epsilon_high is nan"}},
      {TrainMethod::sft,
       [](auto& s) {
         s.lora.use_peft = true;
         s.lora.rank_pattern = {{"q_proj", 0}};
       },
       {"rank_pattern is 0"}},
  });
}

TEST(TrainSettings, ContradictionsAreRefused) {
  expect_refused({
      {TrainMethod::sft,
       [](auto& s) {
         s.trainer.warmup_steps = 5;
         s.trainer.warmup_ratio = 0.1;
       },
       {"warmup_steps", "warmup_ratio"}},
      {TrainMethod::sft,
       [](auto& s) { s.trainer.num_train_epochs = 0; },
       {"max_steps", "num_train_epochs"}},
      {TrainMethod::dpo,
       [](auto& s) {
         s.dpo.loss.type = DpoLossType::ipo;
         s.dpo.loss.label_smoothing = 0.1;
       },
       {"label smoothing has no effect on ipo"}},
      {TrainMethod::dpo,
       [](auto& s) {
         s.lora.use_peft = true;
         s.lora.dropout = 0.1;
       },
       {"lora_dropout is 0.1", "dpo"}},
      {TrainMethod::grpo,
       [](auto& s) { s.trainer.per_device_train_batch_size = 12; },
       {"12 completions", "num_generations 8"}},
      {TrainMethod::grpo,
       [](auto& s) {
         s.grpo.reward_funcs = {"gsm8k_strict"};
         s.grpo.reward_weights = {1, 2};
       },
       {"reward_weights has 2", "reward_funcs 1"}},
      {TrainMethod::grpo,
       [](auto& s) { s.grpo.reward_funcs = {"boxed_maths"}; },
       {"boxed_maths", "did you mean \"boxed_math\""}},
      {TrainMethod::sft,
       [](auto& s) {
         s.sft.packing = true;
         s.sft.max_length = 0;
       },
       {"max_length is 0"}},
      {TrainMethod::sft,
       [](auto& s) {
         s.data.eval_file = "a";
         s.data.hold_out = 10;
       },
       {"eval_file", "hold_out"}},
      {TrainMethod::sft, [](auto& s) { s.data.hold_out = 1; }, {"hold_out is 1"}},
      {TrainMethod::sft,
       [](auto& s) {
         s.data.hold_out = 10;
         s.trainer.load_best_model_at_end = true;
         s.trainer.eval_steps = 200;
       },
       {"save_steps (500)", "eval_steps (200)"}},
      {TrainMethod::sft,
       [](auto& s) {
         s.lora.use_peft = true;
         s.lora.target_modules.clear();
       },
       {"lora_target_modules is empty"}},
      {TrainMethod::pretrain,
       [](auto& s) { s.pretrain.num_attention_heads = 7; },
       {"hidden_size 256", "num_attention_heads 7"}},
      {TrainMethod::pretrain,
       [](auto& s) { s.pretrain.num_key_value_heads = 3; },
       {"num_attention_heads 8", "num_key_value_heads 3"}},
      {TrainMethod::pretrain, [](auto& s) { s.pretrain.head_dim = 5; }, {"head_dim is 5"}},
      {TrainMethod::pretrain,
       [](auto& s) { s.wemask.from_layer = 8; },
       {"wemask_from_layer is 8", "8 layers"}},
      {TrainMethod::pretrain,
       [](auto& s) {
         s.wemask.from_layer = 2;
         s.wemask.rate = 0.001;
       },
       {"0 of 256 dims"}},
      {TrainMethod::pretrain,
       [](auto& s) {
         s.wemask.wemask = "wemask.json";
         s.wemask.k = 4;
       },
       {"wemask_k", "has its own"}},
  });
}

TEST(TrainSettings, WhatWouldDoNothingIsRefused) {
  expect_refused({
      {TrainMethod::sft, [](auto& s) { s.lora.r = 8; }, {"lora_r", "use_peft"}},
      {TrainMethod::sft, [](auto& s) { s.lora.dropout = 0.1; }, {"lora_dropout", "use_peft"}},
      {TrainMethod::dpo, [](auto& s) { s.lora.adapter = "a"; }, {"adapter", "onset merge"}},
      {TrainMethod::sft,
       [](auto& s) {
         s.lora.use_peft = true;
         s.lora.adapter = "a";
         s.lora.r = 8;
       },
       {"lora_r", "has its own"}},
      {TrainMethod::sft,
       [](auto& s) { s.sft.packing_strategy = PackingStrategy::wrapped; },
       {"packing_strategy", "without packing"}},
      {TrainMethod::sft,
       [](auto& s) { s.wemask.update = MaskUpdate::recompute; },
       {"wemask_update", "no mask"}},
      {TrainMethod::dpo,
       [](auto& s) { s.wemask.reference = ReferenceWemask::none; },
       {"reference_wemask", "no mask"}},
      {TrainMethod::grpo,
       [](auto& s) {
         s.wemask.wemask = "wemask.json";
         s.wemask.reference = ReferenceWemask::none;
       },
       {"reference_wemask", "no reference"}},
      {TrainMethod::sft, [](auto& s) { s.trainer.eval_steps = 5; }, {"eval_steps", "evaluate"}},
      {TrainMethod::sft,
       [](auto& s) { s.trainer.metric_for_best_model = "loss"; },
       {"metric_for_best_model", "load_best_model_at_end"}},
      {TrainMethod::sft, [](auto& s) { s.data.system = "Be kind."; }, {"system", "text_as_chat"}},
      {TrainMethod::grpo,
       [](auto& s) { s.grpo.reward_weights = {1}; },
       {"reward_weights has 1", "reward_funcs 0"}},
  });
}

TEST(TrainSettings, RanksShareTheCompletionsOfAStep) {
  TrainSettings settings = default_settings(TrainMethod::grpo);
  settings.trainer.per_device_train_batch_size = 2;
  settings.trainer.gradient_accumulation_steps = 2;
  EXPECT_NE(error_of([&] { (void)checked_settings(settings, 1); }), "");
  EXPECT_NO_THROW((void)checked_settings(settings, 2));
}

TEST(TrainSettings, WhatOthersDecideIsFilledIn) {
  TrainSettings settings = default_settings(TrainMethod::pretrain);
  settings.wemask.from_layer = 3;
  settings.trainer.max_steps = -1;  // TRL's word for none
  settings = checked_settings(settings, 1);
  EXPECT_EQ(settings.pretrain.head_dim, 32);
  EXPECT_EQ(settings.pretrain.num_key_value_heads, 8);
  EXPECT_EQ(settings.pretrain.intermediate_size, 704);  // 682.67, up to a multiple of 64
  EXPECT_EQ(settings.wemask.rate, 0.25);
  EXPECT_EQ(settings.trainer.max_steps, 0);

  TrainSettings grpo = default_settings(TrainMethod::grpo);
  grpo.grpo.loss.epsilon_low = 0.1;
  EXPECT_EQ(checked_settings(grpo, 1).grpo.loss.epsilon_high, 0.1);
  grpo.grpo.epsilon_high = 0.28;
  EXPECT_EQ(checked_settings(grpo, 1).grpo.loss.epsilon_high, 0.28);
}

TEST(TrainSettings, AShareOfWarmUpIsOfTheStepsOfTheRun) {
  TrainerSettings trainer{.warmup_ratio = 0.1};
  EXPECT_EQ(schedule_of(trainer, 95).warmup_steps, 10);
  trainer = {.warmup_steps = 7};
  EXPECT_EQ(schedule_of(trainer, 95).warmup_steps, 7);
}

TEST(TrainSettings, LossesAreBetterWhenTheyAreSmall) {
  EXPECT_FALSE(greater_is_better({}));
  EXPECT_FALSE(greater_is_better({.metric_for_best_model = "eval_loss"}));
  EXPECT_TRUE(greater_is_better({.metric_for_best_model = "eval_reward"}));
  EXPECT_FALSE(greater_is_better({.metric_for_best_model = "eval_kl", .greater_is_better = false}));
}

}  // namespace
}  // namespace onset
