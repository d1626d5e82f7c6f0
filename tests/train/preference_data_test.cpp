// Rows of DPO and GRPO.
#include <cmath>

#include "onset/train/dpo_data.h"
#include "onset/train/grpo_data.h"
#include "onset/train/row_encoder.h"
#include "train/data_support.h"
#include "train/training_fixtures.h"

namespace onset::testing {
namespace {

class PreferenceRows : public ::testing::Test {
 protected:
  PreferenceRows() { options.data = byte_options(); }

  [[nodiscard]] DpoData read(std::string_view lines) const {
    return read_dpo_data(folder_.write("data.jsonl", lines), options);
  }
  void expect_error(std::string_view lines, const std::string& part) const {
    const std::string message = error_of([&] { (void)read(lines); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  DpoDataOptions options;
};

TEST_F(PreferenceRows, PromptsMayBeImplicit) {
  const auto pair = read(R"({"chosen": "so it is", "rejected": "so it was"})").pairs[0];
  EXPECT_EQ(pair.prompt, byte_ids("so it"));  // the space goes with the completions
  EXPECT_EQ(pair.chosen, joined_ids({byte_ids(" is"), {byte_eos}}));
  EXPECT_EQ(pair.rejected, joined_ids({byte_ids(" was"), {byte_eos}}));
  // These two letters share their first byte, which is no character.
  const auto accents = read("{\"chosen\": \"a\u00E9\", \"rejected\": \"a\u00E8\"}").pairs[0];
  EXPECT_EQ(accents.prompt, byte_ids("a"));
}

TEST_F(PreferenceRows, ConversationsShareTheirFirstMessages) {
  const std::string user = R"({"role": "user", "content": "q"})";
  const std::string yes = R"({"role": "assistant", "content": "yes"})";
  const std::string no = R"({"role": "assistant", "content": "no"})";
  const std::string wholes =
      "\"chosen\": [" + user + "," + yes + "], \"rejected\": [" + user + "," + no + "]}";
  const auto implicit = read("{" + wholes).pairs[0];
  const auto open =
      read("{\"prompt\": [" + user + "], \"chosen\": [" + yes + "], \"rejected\": [" + no + "]}")
          .pairs[0];
  EXPECT_EQ(implicit.prompt, open.prompt);
  EXPECT_EQ(implicit.chosen, joined_ids({byte_ids("yes"), {byte_turn}, byte_ids("\n")}));
  EXPECT_EQ(implicit.rejected, open.rejected);
  // A prompt that is a text beside conversations is not their prompt.
  EXPECT_EQ(read("{\"prompt\": \"z\", " + wholes).pairs[0].prompt, open.prompt);
}

TEST_F(PreferenceRows, DialoguesBecomeConversations) {
  const auto messages = dialogue_messages("\n\nHuman: a\nb\n\nAssistant: c \n\nHuman: d");
  EXPECT_EQ(messages, OrderedJson::parse(R"([{"role": "user", "content": "a\nb"},
    {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}])"));
  EXPECT_TRUE(dialogue_messages("Human: a").empty());
  options.data.text_as_chat = true;
  const auto pair = read(R"({"chosen": "\n\nHuman: q\n\nAssistant: yes",)"
                         R"( "rejected": "\n\nHuman: q\n\nAssistant: yet"})")
                        .pairs[0];
  EXPECT_EQ(pair.chosen, joined_ids({byte_ids("yes"), {byte_turn}, byte_ids("\n")}));
  EXPECT_EQ(pair.rejected, joined_ids({byte_ids("yet"), {byte_turn}, byte_ids("\n")}));
}

TEST_F(PreferenceRows, PairsThatAreTooLongKeepOnePrompt) {
  const std::string rows = R"({"prompt": "abcd", "chosen": "ef", "rejected": "ghi"})";
  options.max_length = 6;
  const auto starts = read(rows);
  EXPECT_EQ(starts.pairs[0].chosen, byte_ids("ef"));
  EXPECT_EQ(starts.pairs[0].rejected, byte_ids("gh"));
  EXPECT_EQ(starts.report.tokens_cut, 3);
  options.truncation = TruncationMode::keep_end;
  const auto ends = read(rows);
  EXPECT_EQ(ends.pairs[0].prompt, byte_ids("cd"));
  EXPECT_EQ(ends.pairs[0].rejected, joined_ids({byte_ids("ghi"), {byte_eos}}));
  options.max_length = 4;
  expect_error(rows, "no pair is left");
  options.truncation = TruncationMode::keep_start;
  expect_error(rows, "no pair is left");
}

TEST_F(PreferenceRows, WrongRowsSaySo) {
  expect_error(R"({"chosen": "a", "rejected": "a"})", ":1: chosen and rejected are the same");
  expect_error(R"({"prompt": "a"})", "wanted are prompt, chosen and rejected");
  expect_error(R"({"prompt_ids": [1], "chosen_ids": [], "rejected_ids": [2]})",
               "the chosen completion has no token");
  expect_error(R"({"chosen": "abc", "rejected": "xyz"})", "the prompt has no token");
}

TEST_F(PreferenceRows, EqualCompletionsAreCounted) {
  const std::string rows =
      "{\"prompt\": \"a\", \"chosen\": \"same\", \"rejected\": \"same\"}\n"
      "{\"prompt_ids\": [1], \"chosen_ids\": [5, 2], \"rejected_ids\": [5, 2]}\n"
      "{\"prompt_ids\": [1], \"chosen_ids\": [5, 2], \"rejected_ids\": [5, 7]}\n";
  const DpoData whole = read(rows);
  EXPECT_EQ(whole.report.equal, 2);
  EXPECT_EQ(whole.pairs.size(), 3U);
  EXPECT_NE(whole.report.text().find("In 2 pairs chosen and rejected are the same: nothing is "
                                     "learnt from them."),
            std::string::npos)
      << whole.report.text();
  // Two that differ behind the place where they are cut.
  options.max_length = 2;
  const DpoData cut = read(rows);
  EXPECT_EQ(cut.report.equal, 3);
  EXPECT_NE(cut.report.text().find("are the same (or are where they are cut)"), std::string::npos)
      << cut.report.text();
}

using PreferenceFixtures = testing::TrainingFixtures;

TEST_F(PreferenceFixtures, RowsOfIdsAreThoseOfTheReferences) {
  const auto path = onset::testing::data("training/data_dpo.json");
  DpoDataOptions options;
  options.data = id_options(512);
  const auto data = read_dpo_data(path, options);
  const auto rows = read_json(path);
  ASSERT_EQ(data.pairs.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(data.pairs[i].prompt, rows[i]["prompt_ids"].get<TokenIds>());
    EXPECT_EQ(data.pairs[i].chosen, rows[i]["chosen_ids"].get<TokenIds>());
    EXPECT_EQ(data.pairs[i].rejected, rows[i]["rejected_ids"].get<TokenIds>());
  }
}

class RolloutRows : public ::testing::Test {
 protected:
  RolloutRows() { options.data = byte_options(); }

  [[nodiscard]] GrpoData read(std::string_view lines) const {
    return read_grpo_data(folder_.write("data.jsonl", lines), options);
  }
  void expect_error(std::string_view lines, const std::string& part) const {
    const std::string message = error_of([&] { (void)read(lines); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  GrpoDataOptions options;
};

TEST_F(RolloutRows, KeepTheirOtherColumns) {
  options.max_prompt_length = 5;
  const auto data = read(
      "{\"prompt\": \"2+2\", \"answer\": \"4\"}\n"
      "{\"prompt\": \"a long one\", \"answer\": \"4\"}\n");
  ASSERT_EQ(data.prompts.size(), 1U);
  EXPECT_EQ(data.prompts[0].prompt, byte_ids("2+2"));  // no end token: it goes on
  EXPECT_EQ(data.prompts[0].record["answer"], "4");
  EXPECT_EQ(data.report.dropped, 1);
}

TEST_F(RolloutRows, ARewardThatIsNullAbstains) {
  const auto data =
      read(R"({"prompt_ids": [1], "completions": [[2], [3]], "rewards": [0.5, null]})");
  const auto& rewards = data.prompts[0].rewards;
  EXPECT_EQ(rewards[0], 0.5);
  EXPECT_TRUE(std::isnan(rewards[1]));
}

TEST_F(RolloutRows, ARewardIsWithinFloat32) {
  for (const std::string reward : {"1e308", "-1e308", "3.5e38"}) {
    expect_error(
        "{\"prompt_ids\": [1], \"completions\": [[2], [3]], \"rewards\": [0, 1]}\n"
        "{\"prompt_ids\": [1], \"completions\": [[2], [3]], \"rewards\": [0, " +
            reward + "]}\n",
        "data.jsonl:2: column \"rewards\": entry 1 is ");
  }
}

TEST_F(RolloutRows, ARowHasAWholeGroupOfCompletions) {
  options.num_generations = 2;
  expect_error(
      "{\"prompt_ids\": [1], \"completions\": [[2], [3]], \"rewards\": [1, 2]}\n"
      "{\"prompt_ids\": [4], \"completions\": [[2]], \"rewards\": [1]}\n",
      "data.jsonl:2: has 1 completion, and num_generations is 2");
}

TEST_F(RolloutRows, WrongRowsSaySo) {
  expect_error(R"({"prompt": [{"role": "user", "content": "q"},)"
               R"( {"role": "assistant", "content": "a"}]})",
               "the prompt ends with the assistant");
  expect_error(R"({"prompt_ids": [1], "completions": [[2]], "rewards": [1, 2]})",
               "2 rewards for 1 completions");
  expect_error(R"({"prompt_ids": [1], "completions": [[2]], "rewards": ["x"]})",
               "should be a number or null");
  expect_error(
      "{\"prompt_ids\": [1], \"completions\": [[2]], \"rewards\": [1]}\n"
      "{\"prompt_ids\": [1]}\n",
      ":2: some rows of the file have completions");
}

using RolloutFixtures = testing::TrainingFixtures;

TEST_F(RolloutFixtures, CompletionsAndRewardsAreThoseOfTheReferences) {
  const auto path = onset::testing::data("training/data_grpo.json");
  GrpoDataOptions options;
  options.data = id_options(512);
  const auto data = read_grpo_data(path, options);
  std::size_t at = 0;
  for (const auto& generation : read_json(path)) {
    for (const auto& group : generation) {
      ASSERT_LT(at, data.prompts.size());
      const auto& prompt = data.prompts[at++];
      EXPECT_EQ(prompt.prompt, group["prompt_ids"].get<TokenIds>());
      EXPECT_EQ(prompt.completions, group["completions"].get<std::vector<TokenIds>>());
      EXPECT_EQ(prompt.rewards, group["rewards"].get<std::vector<double>>());
    }
  }
  EXPECT_EQ(at, data.prompts.size());
}

}  // namespace
}  // namespace onset::testing
