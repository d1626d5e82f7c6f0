// onset chat through pipes and on a terminal.
#include <algorithm>

#include "app/background.h"
#include "app/program.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

class Chat : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
  }
  static Outcome chat(const std::string& input, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"chat", demo_model().string(), "--max-tokens", "6"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_onset(arguments, {.input = input, .environment = {"OMP_WAIT_POLICY=passive"}});
  }
};

TEST_F(Chat, AnswersLinesAndSavesThem) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "chat.jsonl").string();
  const auto outcome = chat(
      "/system Answer in one word.\nWhat is the capital of France?\n"
      "And of\\\nItaly?\n/save " +
      path);
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  const auto saved = read_jsonl(path);
  ASSERT_EQ(saved.size(), 1U);
  const auto& messages = saved[0]["messages"];
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[3]["content"], "And of\nItaly?");
  // Standard output holds the answers, a line each, and nothing else.
  EXPECT_EQ(outcome.out, messages[2]["content"].get<std::string>() + "\n" +
                             messages[4]["content"].get<std::string>() + "\n");
  EXPECT_NE(outcome.out.find("Paris"), std::string::npos) << outcome.out;
}

TEST_F(Chat, AnswersEqualThoseOfGenerate) {
  const auto outcome = chat("What is gravity?\n");
  const auto alone = run_onset({"generate", demo_model().string(), "--chat", "--prompt",
                                "What is gravity?", "--max-tokens", "6", "--json"});
  ASSERT_EQ(alone.code, 0) << alone.error;
  EXPECT_EQ(outcome.out, alone.json_lines()[0]["text"].get<std::string>() + "\n");
}

TEST_F(Chat, BothAnswersAndWhichOneStays) {
  const TemporaryFolder folder;
  const auto first = (folder.path() / "first.jsonl").string();
  const auto second = (folder.path() / "second.jsonl").string();
  const auto outcome = chat("/both on\nTell me a story.\n/save " + first + "\n/swap\n/save " +
                            second + "\n/both off\n/mask on\nHi\n");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(outcome.out.starts_with("[unmasked]\n")) << outcome.out;
  const auto middle = outcome.out.find("\n[masked]\n");
  ASSERT_NE(middle, std::string::npos) << outcome.out;
  const auto unmasked = outcome.out.substr(11, middle - 11);
  const std::string kept = read_jsonl(first)[0]["messages"][1]["content"];
  const std::string other = read_jsonl(second)[0]["messages"][1]["content"];
  EXPECT_EQ(unmasked, kept);
  EXPECT_TRUE(outcome.out.substr(middle + 10).starts_with(other + "\n")) << outcome.out;
  EXPECT_NE(outcome.error.find("layers 12 to 29"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("masked answer of this turn; of the turns to come it keeps the "
                               "unmasked one"),
            std::string::npos)
      << outcome.error;
  EXPECT_EQ(read_jsonl(first)[0]["onset"]["masked_answers"], OrderedJson::array({false}));
  EXPECT_TRUE(read_jsonl(first)[0]["onset"]["wemask"].is_null());
  EXPECT_EQ(read_jsonl(second)[0]["onset"]["masked_answers"], OrderedJson::array({true}));
  EXPECT_EQ(read_jsonl(second)[0]["onset"]["wemask"]["from_layer"], 12);
  const auto read = run_onset({"tokenize", demo_model().string(), "--jsonl", second});
  EXPECT_EQ(read.code, 0) << read.error;
}

TEST_F(Chat, TheMaskUnderBothChoosesWhichAnswerStays) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "chat.jsonl").string();
  const auto outcome = chat("/both on\n/mask on\nHi\n/save " + path + "\n");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("both answers are given as before; the conversation goes on with "
                               "the masked one"),
            std::string::npos)
      << outcome.error;
  const auto saved = read_jsonl(path)[0];
  EXPECT_EQ(saved["onset"]["masked_answers"], OrderedJson::array({true}));
  const std::string kept = saved["messages"][1]["content"];
  EXPECT_NE(outcome.out.find("[masked]\n" + kept + "\n"), std::string::npos) << outcome.out;
}

TEST_F(Chat, MistakesEndNothing) {
  const auto outcome =
      chat("/bot\n/mask maybe\n/swap\n/save\n/help\n/reset\nHi\n/quit\nnever said\n");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("did you mean \"/both\"?"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("takes on or off"), std::string::npos);
  EXPECT_NE(outcome.error.find("/system TEXT"), std::string::npos);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
}

TEST_F(Chat, AFullContextIsSaid) {
  const auto outcome = chat("Hi\n", {"--context", "20"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.error.find("the context of 20"), std::string::npos) << outcome.error;
}

TEST_F(Chat, OnATerminalCtrlCStopsTheAnswerAndCtrlDEnds) {
  BackgroundProgram program(
      {"chat", demo_model().string(), "--max-tokens", "4000", "--temperature", "1", "--ignore-eos"},
      {}, BackgroundProgram::Input::terminal);
  program.wait_for("> ");
  program.type("Count from one to a thousand.\n");
  program.wait_for("\r\n");
  program.wait_for(" ");  // some of the answer
  program.type("\x03");
  program.wait_for("stopped");
  program.wait_for("> ");
  program.type("\x03");
  program.wait_for("Ctrl-D or /quit");
  program.wait_for("> ");
  program.type("\x04");
  program.wait_for("\r\n");
  EXPECT_EQ(program.wait(), 0);
}

TEST(ChatOptions, AModelWithoutAChatFormatNamesTheFormats) {
  expect_refusal(run_onset({"chat"}), 2, "needs a model");
  expect_refusal(run_onset({"chat", "x", "--top-p", "2"}), 2, "top_p");
}

}  // namespace
}  // namespace onset::testing
