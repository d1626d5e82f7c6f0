// onset eval as a user runs it: a small task of the user's on the demonstration model.
#include <algorithm>
#include <filesystem>

#include "app/program.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

using Arguments = std::vector<std::string>;

const std::string toy_task =
    "format = 'onset.task.1'\nname = 'toy'\nversion = '1.0'\nsummary = 'a toy'\nkind = 'choice'\n"
    "[data]\nfile = 'toy.jsonl'\nsource = 'the toy set'\n[prompt]\nquestion = 'The capital of "
    "{q}'\n"
    "[choice]\ntexts = '{c}'\ngold = '{g}'\n[[metrics]]\nmeasure = 'acc'\n[[metrics]]\n"
    "measure = 'acc_norm'\n";
const std::string toy_rows =
    "{\"q\":\"France is\",\"c\":[\"Paris\",\"Oslo\",\"a green hat\"],\"g\":0}\n"
    "{\"q\":\"Norway is\",\"c\":[\"Paris\",\"Oslo\"],\"g\":1}\n"
    "{\"q\":\"Italy is\",\"c\":[\"Rome\",\"Oslo\"],\"g\":0}\n";

class Eval : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
    file_ = folder_.write("toy.toml", toy_task).string();
    static_cast<void>(folder_.write("toy.jsonl", toy_rows));
  }

  [[nodiscard]] Outcome run(const Arguments& more) const {
    Arguments arguments{"eval",   demo_model().string(),  "--task-file", file_,
                        "--data", folder_.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_onset(arguments);
  }
  // The one file of the folder whose name begins so.
  [[nodiscard]] std::string found(const std::string& folder, const std::string& begin) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().filename().string().starts_with(begin)) return entry.path().string();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::string file_;
};

TEST_F(Eval, ATaskOfTheUserGivesScores) {
  const auto outcome = run({});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("toy "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("acc_norm"), std::string::npos) << outcome.out;
  EXPECT_LE(widest_line(outcome.out), 80U);
  const auto json = run({"--json"}).json();
  // Known capitals beside a wrong one: a model of language gets these right.
  EXPECT_EQ(json.at("results").at("toy").at("acc,none"), 1.0);
  EXPECT_EQ(json.at("n-samples").at("toy").at("effective"), 3);
  EXPECT_TRUE(json.at("wemask").is_null());
  EXPECT_EQ(json.at("config").at("model_dtype"), "float32");
}

TEST_F(Eval, FilesHoldTheScoresAndTheSamples) {
  const auto out = (folder_.path() / "out").string();
  const auto outcome = run({"-o", out, "--log-samples", "--limit", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto results = read_json(found(out, "results_"));
  EXPECT_EQ(results.at("n-samples").at("toy").at("original"), 3);
  EXPECT_EQ(results.at("n-samples").at("toy").at("effective"), 2);
  const auto samples = read_jsonl(found(out, "samples_toy_"));
  ASSERT_EQ(samples.size(), 2U);
  const auto loglik = samples[0].at("loglik").get<std::vector<double>>();
  ASSERT_EQ(loglik.size(), 3U);
  EXPECT_EQ(std::max_element(loglik.begin(), loglik.end()) - loglik.begin(), 0);
  EXPECT_EQ(samples[0].at("arguments").at("gen_args_1").at("arg_1"), " Oslo");
}

TEST_F(Eval, AMaskIsRecordedAndChangesTheAnswers) {
  const auto mask = (folder_.path() / "wemask.json").string();
  ASSERT_EQ(run_onset({"mask", "make", demo_model().string(), "--rate", "0.75", "-o", mask}).code,
            0);
  const auto out = (folder_.path() / "masked").string();
  const auto outcome = run({"--wemask", mask, "-o", out, "--log-samples"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(read_json(found(out, "results_")).at("wemask").at("k"), 432);
  const auto plain = (folder_.path() / "plain").string();
  ASSERT_EQ(run({"-o", plain, "--log-samples"}).code, 0);
  const auto a = read_jsonl(found(out, "samples_"));
  const auto b = read_jsonl(found(plain, "samples_"));
  EXPECT_NE(a.at(0).at("loglik"), b.at(0).at("loglik"));
  EXPECT_EQ(a.at(0).at("doc_hash"), b.at(0).at("doc_hash"));
}

TEST_F(Eval, ACacheGivesTheSameAnswersAgain) {
  const auto cache = (folder_.path() / "cache").string();
  const auto first = run({"--cache", cache, "--json"}).json();
  const auto second = run({"--cache", cache, "--json"}).json();
  EXPECT_EQ(first.at("results"), second.at("results"));
  EXPECT_EQ(first.at("run").at("engine").at("answered"), 3);
  EXPECT_EQ(second.at("run").at("engine").at("answered"), 0);
  EXPECT_EQ(second.at("run").at("engine").at("reused"), 3);
}

TEST_F(Eval, ChatsExamplesAndSystemTextsAreAccepted) {
  const auto outcome = run({"--chat", "--system", "Be brief.", "--num-fewshot", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json().at("n-shot").at("toy"), 1);
  EXPECT_EQ(outcome.json().at("chat_template"), "smollm2");
}

TEST_F(Eval, WrongUseIsRefused) {
  expect_refusal(run({"--tasks", "toyy"}), 2, "no task is called \"toyy\"");
  expect_refusal(run({"--log-samples"}), 2, "--log-samples writes files");
  expect_refusal(run({"--one-message"}), 2, "--one-message is about chats");
  expect_refusal(run({"--limit", "1", "--sample", "1"}), 2, "both choose documents");
  expect_refusal(run({"--num-fewshot", "3"}), 2,
                 "3 examples are asked for, and 2 are there beside the document");
  expect_refusal(run({"--tasks", ""}), 2, "--tasks: a part of the list is empty");
  expect_refusal(run({"--tasks", "toy,"}), 2, "--tasks: a part of the list is empty");
  expect_refusal(run({"--tasks", "toy,toy"}), 2, "--tasks: \"toy\" is there twice");
}

TEST_F(Eval, ARunThatFailsLeavesNoFolder) {
  const auto out = folder_.path() / "deep" / "out";
  expect_refusal(run({"--tasks", "piqa", "-o", out.string()}), 1, "no data at");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "deep"));
  std::filesystem::create_directories(out);
  expect_refusal(run({"--tasks", "piqa", "-o", out.string()}), 1, "no data at");
  EXPECT_TRUE(std::filesystem::exists(out)) << "what was there before stays";
}

TEST(EvalList, NamesTasksWithTheirData) {
  const auto outcome = run_onset({"eval", "--list"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const auto* text : {"mmlu", "mmlu/test/*_test.csv", "5-shot", "piqa", "acc_norm"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
  EXPECT_LE(widest_line(outcome.out), 80U);
  const auto json = run_onset({"eval", "--list", "--json"}).json();
  EXPECT_GE(json.size(), 6U);
}

TEST(EvalList, AModelWithoutTasksIsRefused) {
  expect_refusal(run_onset({"eval", model_path("llama_me")}), 2, "onset eval needs tasks");
  expect_refusal(run_onset({"eval"}), 2, "needs a model");
}

}  // namespace
}  // namespace onset::testing
