#include "onset/train/settings_toml.h"

#include <gtest/gtest.h>

#include <string>

#include "onset/train/settings_table.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

TrainSettings read(TrainMethod method, const std::string& text) {
  TrainSettings settings = default_settings(method);
  apply_settings(TomlTable::parse(text, "run.toml"), settings);
  return settings;
}

std::string fault(TrainMethod method, const std::string& text) {
  return error_of([&] { (void)read(method, text); });
}

void expect_same(TrainSettings a, TrainSettings b) {
  const auto left = settings_table(a);
  const auto right = settings_table(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(same_value(left[i], right[i])) << left[i].name;
  }
}

TEST(SettingsToml, ValuesOfEveryTypeReachTheirFields) {
  const TrainSettings sft = read(TrainMethod::sft, R"(
    model = "smollm2"
    train_file = "train.jsonl"
    learning_rate = 1
    warmup_ratio = 0.03
    lr_scheduler_type = "cosine_with_warmup"
    packing = true
    completion_only_loss = false
    lora_target_modules = ["q_proj", "v_proj"]
    lora_modules_to_save = "lm_head"
    use_peft = true
    columns = {prompt = "question", completion = "answer"}
    rank_pattern = {"layers.0.self_attn.q_proj" = 4}
    decay = "all"
  )");
  EXPECT_EQ(sft.model, "smollm2");
  EXPECT_EQ(sft.data.train_file, "train.jsonl");
  EXPECT_EQ(sft.trainer.learning_rate, 1);
  EXPECT_EQ(sft.trainer.warmup_ratio, 0.03);
  EXPECT_TRUE(sft.trainer.lr_scheduler_type == ScheduleShape::cosine);
  EXPECT_TRUE(sft.sft.packing);
  EXPECT_EQ(sft.sft.completion_only_loss, false);
  EXPECT_EQ(sft.lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(sft.lora.modules_to_save, std::vector<std::string>{"lm_head"});
  EXPECT_EQ(sft.data.columns.at("prompt"), "question");
  EXPECT_EQ(sft.lora.rank_pattern.at("layers.0.self_attn.q_proj"), 4);
  EXPECT_TRUE(sft.trainer.optimizer.decays == WeightDecay::all);

  const TrainSettings grpo = read(TrainMethod::grpo, R"(
    reward_funcs = ["gsm8k_strict", "format:<b>"]
    reward_weights = [1, 0.5]
    epsilon_high = 0.28
    top_k = 40
  )");
  EXPECT_EQ(grpo.grpo.reward_funcs.size(), 2);
  EXPECT_EQ(grpo.grpo.reward_weights, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(grpo.grpo.epsilon_high, 0.28);
  EXPECT_EQ(grpo.grpo.sampling.top_k, 40);
}

TEST(SettingsToml, FaultsNameLineAndKeyAndWhatToDo) {
  const auto names = [](TrainMethod method, const std::string& text,
                        const std::vector<std::string>& parts) {
    const std::string error = fault(method, text);
    for (const auto& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << error << " does not name " << part;
    }
  };
  names(TrainMethod::sft, "\nlearning_rat = 1",
        {"run.toml:2", "learning_rat", "\"learning_rate\""});
  names(TrainMethod::sft, "num_generations = 4",
        {"num_generations", "train grpo, not of train sft"});
  names(TrainMethod::sft, "dataset_name = \"x\"", {"dataset_name", "train_file"});
  names(TrainMethod::sft, "fp16 = true", {"fp16", "bf16"});
  names(TrainMethod::sft, "seed = \"1\"", {"seed", "an integer", "string"});
  names(TrainMethod::sft, "packing = 1", {"packing", "true or false"});
  names(TrainMethod::sft, "train_file = 1", {"train_file", "text"});
  names(TrainMethod::sft, "columns = 1", {"columns", "a table"});
  names(TrainMethod::sft, "lora_target_modules = [1]", {"lora_target_modules", "text"});
  names(TrainMethod::sft, "learning_rate = -1e-5", {"learning_rate", "0 or above"});
  names(TrainMethod::sft, "truncation_mode = \"keep_ends\"",
        {"keep_ends", "keep_start, keep_end", "did you mean \"keep_end\""});
  names(TrainMethod::grpo, "reward_weights = 1", {"reward_weights", "a list"});
}

TEST(SettingsToml, WhatIsWrittenIsReadAsTheSame) {
  TrainSettings sft = default_settings(TrainMethod::sft);
  sft.model = "a \"model\"\\with\tall\x7f";
  sft.data.train_file = "b.jsonl";
  sft.data.columns = {{"prompt", "a b"}, {"c.d", "e"}};
  sft.data.hold_out = 10;
  sft.data.enable_thinking = false;
  sft.trainer.learning_rate = 0.1 + 0.2;
  sft.trainer.optimizer.epsilon = 1e-12;
  sft.trainer.eval_steps = 100;
  sft.trainer.load_best_model_at_end = true;
  sft.trainer.metric_for_best_model = "loss";
  sft.trainer.greater_is_better = false;
  sft.lora.use_peft = true;
  sft.lora.alpha_pattern = {{"q_proj", 8}};
  sft.lora.rank_pattern = {{"q_proj", 2}};
  TrainSettings grpo = default_settings(TrainMethod::grpo);
  grpo.grpo.reward_funcs = {"format:^<think>[\\s\\S]*\"$", "length:100"};
  grpo.grpo.reward_weights = {-1, 0.25};
  grpo.wemask.wemask = "wemask.json";
  TrainSettings pretrain = default_settings(TrainMethod::pretrain);
  pretrain.wemask.from_layer = 2;
  for (const TrainSettings& given : {sft, grpo, pretrain, default_settings(TrainMethod::dpo),
                                     default_settings(TrainMethod::sft)}) {
    const TrainSettings settings = checked_settings(given, 1);
    const TrainSettings again = read(settings.method, settings_toml(settings));
    EXPECT_EQ(again.model, settings.model);
    expect_same(again, settings);
    expect_same(checked_settings(again, 1), settings);
  }
}

TEST(SettingsToml, ARunThatGoesOnMayChangeWhatDoesNotShapeItsCurve) {
  TrainSettings settings = default_settings(TrainMethod::sft);
  const OrderedJson before = curve_settings(settings);
  settings.trainer.output_dir = "elsewhere";
  settings.trainer.logging_steps = 1;
  settings.trainer.save_steps = 7;
  settings.trainer.watch = 5;
  settings.trainer.gradient_checkpointing = true;
  settings.trainer.resume_from_checkpoint = "last";
  EXPECT_EQ(curve_settings(settings), before);
  EXPECT_NE(settings_json(settings), settings_json(default_settings(TrainMethod::sft)));
  settings.trainer.learning_rate = 1;
  EXPECT_NE(curve_settings(settings), before);
}

}  // namespace
}  // namespace onset
