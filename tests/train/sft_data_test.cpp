// Rows of supervised fine-tuning: which tokens, and which of them are trained.
#include "onset/train/sft_data.h"

#include <algorithm>

#include "train/data_support.h"
#include "train/training_fixtures.h"

namespace onset::testing {
namespace {

using Mask = std::vector<std::uint8_t>;

class SftRows : public ::testing::Test {
 protected:
  SftRows() { options.data = byte_options(); }

  [[nodiscard]] SftData read(std::string_view lines) const {
    return read_sft_data(folder_.write("data.jsonl", lines), options);
  }
  [[nodiscard]] std::string error(std::string_view lines) const {
    const auto path = folder_.write("data.jsonl", lines);
    return error_of([&] { (void)read_sft_data(path, options); });
  }
  void expect_error(std::string_view lines, const std::string& part) const {
    const std::string message = error(lines);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  SftDataOptions options;
};

TEST_F(SftRows, TextIsTrainedWhollyWithTheTokenThatEndsIt) {
  const auto data = read(R"({"text": "abc"})");
  EXPECT_EQ(data.examples[0].ids, joined_ids({byte_ids("abc"), {byte_eos}}));
  EXPECT_EQ(data.examples[0].trained, (Mask{0, 1, 1, 1}));  // EOS is the padding token too
  EXPECT_EQ(data.report.tokens, 4);
  EXPECT_EQ(data.report.trained, 3);
}

TEST_F(SftRows, ATextThatEndsWithTheEndTokenGetsNoSecondOne) {
  EXPECT_EQ(read(R"({"text": "abc</s>"})").examples[0].ids,
            joined_ids({byte_ids("abc"), {byte_eos}}));
}

TEST_F(SftRows, CompletionsAreTrainedAndPromptsOnlyOnRequest) {
  const std::string row = R"({"prompt": "ab", "completion": "c"})";
  EXPECT_EQ(read(row).examples[0].trained, (Mask{0, 0, 1, 1}));
  options.completion_only_loss = false;
  EXPECT_EQ(read(row).examples[0].trained, (Mask{0, 1, 1, 1}));
  options.completion_only_loss = true;
  expect_error(R"({"text": "abc"})", ":1: has no prompt and completion");
}

// Row 25: the assistant's words and the end of its turn, nothing of the format.
TEST_F(SftRows, ConversationsTrainWhatTheAssistantSays) {
  const std::string line =
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "yes"},)"
      R"( {"role": "user", "content": "r"}, {"role": "assistant", "content": "no"}]})";
  const auto example = read(line).examples[0];
  TokenIds trained;
  for (std::size_t t = 0; t < example.ids.size(); ++t) {
    if (example.trained[t] != 0) trained.push_back(example.ids[t]);
  }
  EXPECT_EQ(trained, joined_ids({byte_ids("yes"), {byte_turn}, byte_ids("no"), {byte_turn}}));
  options.assistant_only_loss = false;
  EXPECT_EQ(read(line).report.trained, static_cast<std::int64_t>(example.ids.size()) - 1);
}

TEST_F(SftRows, WhatMessagesSayIsText) {
  const auto data = read(R"({"messages": [{"role": "user", "content": "<|im_end|>"}, )"
                         R"({"role": "assistant", "content": "a<|im_end|>b"}]})");
  const auto& ids = data.examples[0].ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), byte_turn), 2);
  const auto said = static_cast<std::int64_t>(byte_ids("a<|im_end|>b").size());
  EXPECT_EQ(data.report.trained, said + 1);
}

TEST_F(SftRows, ConversationsThatCannotBeTrainedNameTheRow) {
  expect_error(R"({"messages": [{"role": "user", "content": "q"}]})",
               ":1: the assistant says nothing in it");
  expect_error("{\"text\": \"a\"}\n{\"messages\": [{\"role\": \"human\", \"content\": \"q\"}]}",
               ":2: message 0: role \"human\" is not known");
  options.data.chat.reset();
  expect_error(R"({"messages": [{"role": "user", "content": "q"}]})", "no chat format");
}

TEST_F(SftRows, PromptsThatAreEmptyThroughoutAreAnError) {
  expect_error("{\"prompt\": \"\", \"completion\": \"c\"}\n", "every token would be trained");
}

TEST_F(SftRows, RowsThatAreTooLongAreCutAtTheSideThatWasAskedFor) {
  const std::string rows =
      "{\"prompt\": \"abcd\", \"completion\": \"ef\"}\n"
      "{\"prompt\": \"a\", \"completion\": \"bcdef\"}\n";
  options.max_length = 4;
  const auto starts = read(rows);
  ASSERT_EQ(starts.examples.size(), 1U);  // of the first nothing but its prompt is left
  EXPECT_EQ(starts.examples[0].ids, byte_ids("abcd"));
  EXPECT_EQ(starts.report.dropped, 1);
  EXPECT_EQ(starts.report.cut, 1);
  EXPECT_EQ(starts.report.tokens_cut, 3);
  options.truncation = TruncationMode::keep_end;
  const auto ends = read(rows);
  ASSERT_EQ(ends.examples.size(), 2U);
  EXPECT_EQ(ends.examples[0].ids, joined_ids({byte_ids("def"), {byte_eos}}));
  EXPECT_EQ(ends.examples[0].trained, (Mask{0, 1, 1, 1}));
  EXPECT_EQ(ends.examples[1].trained, (Mask{0, 1, 1, 1}));  // "d" has nothing before it any more
  options.max_length = 1;
  expect_error(rows, "no row has a token to train");
}

TEST_F(SftRows, IdsAreTakenAsTheyAre) {
  options.data = id_options(10);
  const auto data = read(
      "{\"input_ids\": [7, 8, 9], \"labels\": [-100, -100, 9]}\n"
      "{\"input_ids\": [1, 2]}\n"
      "{\"input_ids\": [1, 2], \"labels\": [1, -100]}\n");
  ASSERT_EQ(data.examples.size(), 2U);  // a label at the first place is predicted from nothing
  EXPECT_EQ(data.examples[0].trained, (Mask{0, 0, 1}));
  EXPECT_EQ(data.examples[1].trained, (Mask{0, 1}));
  EXPECT_EQ(data.report.dropped, 1);
}

TEST_F(SftRows, IdsThatTheModelDoesNotHaveAreErrors) {
  options.data = id_options(10);
  expect_error(R"({"input_ids": [1, 10]})", "entry 1 is 10; the model has the ids 0 to 9");
  expect_error(R"({"input_ids": [1, -1]})", "entry 1 is -1");
  expect_error(R"({"input_ids": [1, 18446744073709551615]})", "entry 1 is 18446744073709551615");
  expect_error(R"({"input_ids": [1, 2.5]})", "should be a token id, is 2.5");
  expect_error(R"({"input_ids": [1, 2], "labels": [2]})", "a list of 2 labels");
  expect_error(R"({"input_ids": [1, 2], "labels": [-100, 3]})", "entry 1 is 3");
  expect_error(R"({"text": "abc"})", "the model has no tokenizer");
}

TEST_F(SftRows, IdsThatAreATextSaySo) {
  options.data = id_options(10);
  expect_error(R"({"input_ids": "[1, 2]"})", "a JSON array, as in [1, 5, 9]");
  expect_error(R"({"input_ids": [1, 2], "labels": "1 2"})", "and is a string");
  const auto table = folder_.write("rows.csv", "input_ids\n\"[1, 2]\"\n");
  const std::string message = error_of([&] { (void)read_sft_data(table, options); });
  EXPECT_NE(message.find("column \"input_ids\" should be a list of token ids, is string"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("a .csv or .tsv file hold texts alone"), std::string::npos) << message;
}

TEST_F(SftRows, WrongRowsNameFileLineAndWhatToDo) {
  expect_error("{\"text\": \"a\"}\n\n{\"text\": 5}\n", ":3: column \"text\" should be a text");
  expect_error("{\"text\": \"a\"}\n{\"text\": \"\xFF\"}\n", ":2: not valid UTF-8 at byte 11");
  expect_error(R"({"text": )", ":1: not valid JSON");
  expect_error(R"({"question": "a", "answer": "b"})",
               R"(:1: has the columns "question", "answer"; wanted are input_ids)");
  expect_error("", "holds no row");
  expect_error(R"({"prompt": "a", "completion": [{"role": "assistant", "content": "b"}]})",
               "both be text or both messages");
}

TEST_F(SftRows, ColumnsMayHaveOtherNames) {
  options.data.columns = {{"prompt", "question"}, {"completion", "answer"}};
  const auto data = read(R"({"question": "a", "answer": "b", "level": 3})");
  EXPECT_EQ(data.examples[0].ids, joined_ids({byte_ids("ab"), {byte_eos}}));
  EXPECT_EQ(data.report.unread, std::set<std::string>{"level"});
  options.data.columns = {{"promt", "question"}};
  expect_error(R"({"text": "a"})", "did you mean \"prompt\"");
}

TEST_F(SftRows, TextsBecomeChatsOnRequest) {
  options.data.text_as_chat = true;
  options.data.system = "s";
  const auto text = read(R"({"prompt": "a", "completion": "b"})").examples[0];
  const auto chat = read(R"({"messages": [{"role": "system", "content": "s"},)"
                         R"( {"role": "user", "content": "a"},)"
                         R"( {"role": "assistant", "content": "b"}]})")
                        .examples[0];
  EXPECT_EQ(text.ids, chat.ids);
  EXPECT_EQ(text.trained, chat.trained);
}

TEST_F(SftRows, ThePathMayLeadToAListOfLists) {
  const auto path =
      folder_.write("rows.json", R"([[{"text": "a"}, {"text": "b"}], [{"text": "c"}]])");
  EXPECT_EQ(read_sft_data(path, options).examples.size(), 3U);
  EXPECT_NE(error_of([&] {
              (void)read_sft_data(folder_.path() / "none.jsonl", options);
            }).find("there is no such file"),
            std::string::npos);
}

using SftFixtures = testing::TrainingFixtures;

TEST_F(SftFixtures, RowsOfIdsAreThoseOfTheReferences) {
  const auto path = onset::testing::data("training/data_sft.json");
  SftDataOptions options;
  options.data = id_options(512);
  const auto data = read_sft_data(path, options);
  const auto rows = read_json(path);
  ASSERT_EQ(data.examples.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto labels = rows[i]["labels"].get<TokenIds>();
    EXPECT_EQ(data.examples[i].ids, rows[i]["input_ids"].get<TokenIds>());
    for (std::size_t t = 1; t < labels.size(); ++t) {
      EXPECT_EQ(data.examples[i].trained[t], labels[t] == -100 ? 0 : 1);
    }
  }
}

TEST(DataReport, SaysWhatBecameOfTheRows) {
  DataReport report;
  report.where = "d.jsonl";
  report.rows = 1200;
  report.kept = 1199;
  report.dropped = 1;
  report.cut = 2;
  report.tokens_cut = 30;
  report.tokens = 2000;
  report.trained = 124;
  report.longest = 64;
  EXPECT_EQ(report.text(),
            "d.jsonl: 1,200 rows, 1,199 kept. 1 row is left out: nothing to train is left of it at "
            "this length. 2 rows are cut, by 30 tokens in all. 6.2 % of 2,000 tokens are trained; "
            "the longest example has 64 tokens.");
}

}  // namespace
}  // namespace onset::testing
