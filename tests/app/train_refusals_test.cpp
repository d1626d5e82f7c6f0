// onset train: what it refuses, what it warns of, and what its messages say.
#include <gtest/gtest.h>

#include "app/program.h"
#include "app/train_support.h"
#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {
namespace {

namespace fs = std::filesystem;

// Two updates of GRPO on pairs of completions that have their rewards.
std::vector<std::string> judged_arguments(const fs::path& data, const fs::path& output) {
  return {"train",
          "grpo",
          model_path("llama"),
          "--train-file",
          data.string(),
          "--num-generations",
          "2",
          "--per-device-train-batch-size",
          "2",
          "--logging-steps",
          "1",
          "--no-check-leaks",
          "--max-steps",
          "2",
          "-o",
          output.string()};
}

void expect_once(const std::string& text, const std::string& words) {
  const std::size_t first = text.find(words);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(words, first + 1), std::string::npos) << text;
}

TEST(TrainRefusals, RewardsThatCannotWorkAreRefusedBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const auto given = folder.write(
      "given.jsonl",
      "{\"prompt_ids\": [1, 5], \"completions\": [[7, 2], [9, 2]], \"rewards\": [0, 1]}\n");
  const Outcome run = run_onset(
      {"train", "grpo", model_path("llama"), "--train-file", given.string(), "--num-generations",
       "2", "--reward-funcs", "length:4", "--per-device-train-batch-size", "2", "--no-check-leaks",
       "--max-steps", "1", "-o", (folder.path() / "run").string()});
  EXPECT_EQ(run.code, 2) << run.error;
  EXPECT_NE(run.error.find("reward_funcs would do nothing"), std::string::npos) << run.error;
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
  const auto wrong = folder.write(
      "wrong.jsonl",
      "{\"prompt_ids\": [1, 5], \"answer\": \"7\"}\n{\"prompt_ids\": [1, 6], \"answer\": \"x\"}\n");
  const Outcome answers = run_onset(
      {"train", "grpo", model_path("llama"), "--train-file", wrong.string(), "--num-generations",
       "2", "--reward-funcs", "gsm8k_strict", "--per-device-train-batch-size", "2",
       "--no-check-leaks", "--max-steps", "1", "-o", (folder.path() / "run").string()});
  EXPECT_EQ(answers.code, 1) << answers.error;
  EXPECT_NE(answers.error.find("\"answer\":\"x\""), std::string::npos) << answers.error;
}

TEST(TrainRefusals, ARowInAMessageIsCutBetweenCharacters) {
  const TemporaryFolder folder;
  // At one of the two lengths the cut would fall into a character of two bytes.
  for (const std::string begin : {"", "a"}) {
    std::string note = begin;
    for (int i = 0; i < 200; ++i) note += "\u00FC";
    const auto data = folder.write(
        "rows.jsonl",
        OrderedJson{{"prompt_ids", {1, 6}}, {"note", note}, {"answer", "x"}}.dump() + "\n");
    const Outcome run = run_onset({"train", "grpo", model_path("llama"), "--train-file",
                                   data.string(), "--reward-funcs", "gsm8k_strict",
                                   "--no-check-leaks", "-o", (folder.path() / "run").string()});
    EXPECT_EQ(run.code, 1) << run.error;
    EXPECT_NE(run.error.find("\u00FC\u00FC"), std::string::npos) << run.error;
    // How a byte that is no character is shown.
    EXPECT_EQ(run.error.find("\\xC3"), std::string::npos) << run.error;
    EXPECT_EQ(run.error.find("\xEF\xBF\xBD"), std::string::npos) << run.error;
  }
}

TEST(TrainRefusals, WhatCannotFitIsRefusedAndNothingIsWritten) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  const Outcome run = run_onset({"train", "grpo", model_path("llama"), "--train-file",
                                 data.string(), "--reward-funcs", "length:4",
                                 "--max-completion-length", "1000000000", "-o", output.string()});
  EXPECT_EQ(run.code, 1) << run.error;
  EXPECT_NE(run.error.find("set gradient_checkpointing"), std::string::npos) << run.error;
  EXPECT_FALSE(fs::exists(output));
}

TEST(TrainRefusals, ABatchLargerThanTheFileIsTheWholeFile) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  const Outcome run = run_onset(sft_arguments(
      data, output, {"--per-device-train-batch-size", "1000000000", "--max-steps", "2"}));
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(metrics_of(output).back().at("epoch"), 2);
}

TEST(TrainRefusals, AFolderThatCannotBeMadeIsRefusedBeforeTheModelIsRead) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const Outcome run = run_onset({"train", "sft", (folder.path() / "no-model").string(),
                                 "--train-file", data.string(), "-o", (data / "run").string()});
  expect_refusal(run, 2, "rows.jsonl is a file");
}

TEST(TrainRefusals, SamplingWithoutARewardSaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto prompts = folder.write("prompts.jsonl", "{\"prompt_ids\": [1, 5]}\n");
  std::vector<std::string> arguments{"train",
                                     "grpo",
                                     model_path("llama"),
                                     "--train-file",
                                     prompts.string(),
                                     "--max-completion-length",
                                     "8",
                                     "--no-check-leaks",
                                     "-o",
                                     (folder.path() / "run").string()};
  const Outcome unrewarded = run_onset(arguments);
  EXPECT_EQ(unrewarded.code, 2);
  EXPECT_NE(unrewarded.error.find("set reward_funcs"), std::string::npos) << unrewarded.error;
  arguments.insert(arguments.end(), {"--reward-funcs", "length:4"});
  const Outcome unwritten = run_onset(arguments);
  EXPECT_EQ(unwritten.code, 2);
  EXPECT_NE(unwritten.error.find("the model has no tokenizer"), std::string::npos)
      << unwritten.error;
}

TEST(TrainRefusals, AStepWithoutAnyRewardIsSaidOnce) {
  const TemporaryFolder folder;
  const auto data = folder.write(
      "rows.jsonl",
      "{\"prompt_ids\": [1, 5], \"completions\": [[7, 2], [9, 2]], \"rewards\": [null, null]}\n"
      "{\"prompt_ids\": [1, 6], \"completions\": [[7, 2], [9, 2]], \"rewards\": [null, null]}\n");
  const auto output = folder.path() / "run";
  const Outcome run = run_onset(judged_arguments(data, output));
  ASSERT_EQ(run.code, 0) << run.error;
  expect_once(run.error, "every reward abstained from every completion");
  for (const auto& line : metrics_of(output)) {
    EXPECT_EQ(line.at("frac_reward_abstained"), 1);
    EXPECT_FALSE(line.contains("reward"));
  }
}

TEST(TrainRefusals, AStepWithEqualRewardsIsWarnedOf) {
  const TemporaryFolder folder;
  const auto data = folder.write(
      "rows.jsonl",
      "{\"prompt_ids\": [1, 5], \"completions\": [[7, 2], [9, 2]], \"rewards\": [1, 1]}\n");
  const Outcome run = run_onset(judged_arguments(data, folder.path() / "run"));
  ASSERT_EQ(run.code, 0) << run.error;
  expect_once(run.error, "all completions of a prompt have the same reward");
}

TEST(TrainRefusals, FilesOfAnotherKindAreNamed) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.parquet", "PAR1");
  const Outcome run = run_onset(sft_arguments(data, folder.path() / "run"));
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.error.find(".parquet files are not read"), std::string::npos) << run.error;
}

TEST(TrainRefusals, ColumnsAreNamedOneFlagEach) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const Outcome run = run_onset(sft_arguments(
      data, folder.path() / "run",
      {"--columns", "prompt=question", "--columns", "completion=answer", "--print-settings"}));
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_NE(run.out.find(R"(columns = {"completion" = "answer", "prompt" = "question"})"),
            std::string::npos)
      << run.out;
}

TEST(TrainRefusals, WrongUseIsRefusedBeforeAnythingIsRead) {
  expect_refusal(run_onset({"train", "rlhf"}), 2, "knows no method");
  expect_refusal(run_onset({"train", "sft", model_path("llama")}), 2, "needs data to train on");
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  expect_refusal(run_onset(sft_arguments(data, folder.path() / "run",
                                         {"--warmup-steps", "3", "--warmup-ratio", "0.1"})),
                 2, "both say how long the warm-up is");
  expect_refusal(run_onset(sft_arguments(data, folder.path() / "run",
                                         {"--use-peft", "--lora-target-modules", "k_porj"})),
                 2, "k_proj");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

TEST(TrainRefusals, AnAdapterThatCannotFitIsRefusedBeforeItIsMade) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const auto output = folder.path() / "run";
  const Outcome adapter =
      run_onset(sft_arguments(data, output, {"--use-peft", "--lora-r", "1000000000000"}));
  EXPECT_EQ(adapter.code, 1) << adapter.error;
  EXPECT_NE(adapter.error.find("make lora_r smaller"), std::string::npos) << adapter.error;
  EXPECT_FALSE(fs::exists(output));
}

TEST(TrainRefusals, ASwitchWithAValueIsExplained) {
  const Outcome run = run_onset({"train", "sft", model_path("llama"), "--bf16", "true"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.error.find("a switch takes no value"), std::string::npos) << run.error;
}

}  // namespace
}  // namespace onset::testing
