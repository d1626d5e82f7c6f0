// onset generate as a user runs it.
#include <cmath>
#include <set>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

using Arguments = std::vector<std::string>;

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::string ids = "1,9,42,77,5,130";

TEST(Generate, IdsGiveALineOfJsonWithoutATokenizer) {
  const auto outcome = run_onset(
      {"generate", model_path("llama_me"), "--ids", ids, "--max-tokens", "5", "--ignore-eos"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto rows = outcome.json_lines();
  ASSERT_EQ(rows.size(), 1U);
  const auto& row = rows[0];
  EXPECT_EQ(row["prompt"], 0);
  EXPECT_EQ(row["sample"], 0);
  EXPECT_TRUE(row["text"].is_null());
  EXPECT_EQ(row["ids"].size(), 5U);
  EXPECT_EQ(row["finish_reason"], "length");
  EXPECT_TRUE(row["wemask"].is_null());
  EXPECT_TRUE(row["logprobs"].is_null());
  EXPECT_EQ(row["prompt_ids"].dump(), "[" + ids + "]");
  EXPECT_EQ(row["sampling"]["temperature"], 0.0);
  EXPECT_EQ(row["run"]["weights"], "resident");
  EXPECT_NE(outcome.error.find("greedy"), std::string::npos) << outcome.error;
}

// The order of the input whatever ends first, and the same tokens in any batch.
TEST(Generate, RowsComeInTheOrderOfTheInput) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 7; ++i) {
    lines += "{\"ids\": [1";
    for (int j = 0; j <= i; ++j) lines += "," + std::to_string(3 + (7 * i + 11 * j) % 250);
    lines += "]}\n";
  }
  const auto file = folder.write("rows.jsonl", lines).string();
  const Arguments arguments{
      "generate", model_path("llama_me"), "--jsonl", file,     "--n", "3",         "--temperature",
      "1.5",      "--max-tokens",         "9",       "--seed", "4",   "--compute", "f64"};
  const auto rows = run_onset(with(arguments, {"--batch", "2"})).json_lines();
  ASSERT_EQ(rows.size(), 21U);
  std::set<std::string> different;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["prompt"], i / 3);
    EXPECT_EQ(rows[i]["sample"], i % 3);
    different.insert(rows[i]["ids"].dump());
  }
  EXPECT_GT(different.size(), 15U);
  const auto output = (folder.path() / "out.jsonl").string();
  const auto silent = run_onset(with(arguments, {"--batch", "32", "-o", output, "--quiet"}));
  EXPECT_EQ(silent.code, 0);
  EXPECT_EQ(silent.out + silent.error, "");
  const auto others = read_jsonl(output);
  ASSERT_EQ(others.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(others[i]["ids"], rows[i]["ids"]) << i;
  const auto reseeded = run_onset(with(arguments, {"--seed", "5"}));
  EXPECT_EQ(reseeded.code, 2) << "an option given twice";
}

TEST(Generate, BothRunsThePromptWithoutAndWithTheMask) {
  const TemporaryFolder folder;
  const auto mask = (folder.path() / "wemask.json").string();
  const auto made = run_onset({"mask", "make", model_path("llama_me"), "--ids", ids, "--k", "40",
                               "--from-layer", "1", "-o", mask});
  ASSERT_EQ(made.code, 0) << made.error;
  const Arguments arguments{"generate", model_path("llama_me"), "--ids", ids, "--max-tokens",
                            "12",       "--ignore-eos"};
  const auto plain = run_onset(arguments).json_lines();
  const auto masked = run_onset(with(arguments, {"--wemask", mask})).json_lines();
  const auto both = run_onset(with(arguments, {"--wemask", mask, "--both"})).json_lines();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_NE(plain[0]["ids"], masked[0]["ids"]);
  EXPECT_EQ(both[0]["ids"], plain[0]["ids"]);
  EXPECT_EQ(both[1]["ids"], masked[0]["ids"]);
  EXPECT_TRUE(both[0]["wemask"].is_null());
  EXPECT_EQ(both[1]["wemask"]["k"], 40);
  EXPECT_EQ(both[1]["wemask"]["from_layer"], 1);
  EXPECT_EQ(both[1]["wemask"]["id"].get<std::string>().size(), 16U);
}

TEST(Generate, LogprobsSumToOne) {
  const auto outcome = run_onset({"generate", model_path("llama_me"), "--ids", ids, "--max-tokens",
                                  "4", "--logprobs", "256", "--ignore-eos"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto row = outcome.json_lines().at(0);
  ASSERT_EQ(row["logprobs"].size(), 4U);
  for (const auto& token : row["logprobs"]) {
    double sum = 0;
    for (const auto& other : token["top"]) sum += std::exp(other["logprob"].get<double>());
    EXPECT_NEAR(sum, 1.0, 1e-5);
    EXPECT_EQ(token["top"][0]["id"], token["id"]) << "greedy takes the most likely";
    EXPECT_EQ(token["top"][0]["logprob"], token["logprob"]);
  }
}

TEST(Generate, AFailedPromptIsSaidAndTheOthersAreThere) {
  Toy toy;
  toy.draw();
  for (std::size_t i = 0; i < 8; ++i)
    toy.values["model.embed_tokens.weight"][std::size_t{7} * 8 + i] = NAN;
  const TemporaryFolder folder;
  toy.write(folder.path());
  const auto outcome = run_onset(
      {"generate", folder.path().string(), "--ids", "1,5", "--ids", "1,7", "--max-tokens", "1"});
  EXPECT_EQ(outcome.code, 1);
  const auto rows = outcome.json_lines();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["finish_reason"], "failed");
  EXPECT_NE(rows[1]["error"].get<std::string>().find("NaN"), std::string::npos);
  EXPECT_FALSE(rows[0].contains("error"));
  EXPECT_NE(outcome.error.find("--ids 2: "), std::string::npos) << outcome.error;
}

TEST(Generate, WrongOptionsAreRefusedWithARemedy) {
  const auto model = model_path("llama_me");
  const auto refuse = [&](const Arguments& more, int code, const std::string& part,
                          const std::string& hint) {
    const auto outcome = run_onset(with({"generate", model}, more));
    expect_refusal(outcome, code, part);
    EXPECT_NE(outcome.error.find(hint), std::string::npos) << outcome.error;
  };
  refuse({}, 2, "needs a prompt", "--prompt TEXT");
  refuse({"--ids", "1", "--both"}, 2, "--both is about a mask", "--wemask");
  refuse({"--ids", "1", "--n", "2"}, 2, "all samples would be the same", "--temperature 0.8");
  refuse({"--ids", "1", "--top-p", "1.5"}, 2, "top_p is 1.5", "");
  refuse({"--ids", "1", "--top-p", "0"}, 2, "top_p is 0", "");
  refuse({"--ids", "1", "--temperature", "-1"}, 2, "is negative", "");
  refuse({"--ids", "1", "--repetition-penalty", "-1"}, 2, "is negative", "");
  refuse({"--ids", "1", "--max-tokens", "0"}, 2, "--max-tokens", "");
  refuse({"--ids", "1", "--max-new-tokens", "5"}, 2, "unknown option", "--max-tokens");
  refuse({"--ids", "1", "--logprobs", "x"}, 2, "--logprobs", "");
  refuse({"--ids", "1", "--stop", ""}, 2, "--stop is empty", "");
  refuse({"--ids", "1", "--stop", "x"}, 2, "stop strings need a tokenizer", "");
  refuse({"--prompt", "-", "--jsonl", "-"}, 2, "more than once", "");
  refuse({"--prompt", "x"}, 1, "tokenizer", "--ids");
  std::string long_prompt = "1";
  for (int i = 0; i < 127; ++i) long_prompt += ",5";
  refuse({"--ids", "1", "--ids", long_prompt}, 2, "--ids 2: the prompt has 128 tokens",
         "shorter prompt");
}

// By the formula: a token that was generated gains enough to be taken again and again.
TEST(Generate, NegativePenaltiesFavourWhatWasSaid) {
  for (const Arguments& penalty :
       {Arguments{"--presence-penalty", "-1000"}, Arguments{"--presence-penalty=-1000"},
        Arguments{"--frequency-penalty", "-1000"}}) {
    const auto outcome = run_onset(with({"generate", model_path("llama_me"), "--ids", "1,5",
                                         "--max-tokens", "6", "--ignore-eos", "--json"},
                                        penalty));
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    const auto said = outcome.json_lines()[0]["ids"].get<std::vector<int>>();
    ASSERT_EQ(said.size(), 6U);
    EXPECT_EQ(said, std::vector<int>(6, said.front()));
  }
}

class DemoGenerate : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "run scripts/setup";
    model_ = demo_model().string();
  }
  std::string model_;
};

TEST_F(DemoGenerate, OnePromptGivesItsText) {
  const Arguments arguments{"generate", model_, "--chat", "--max-tokens", "12", "--compute", "f32"};
  const auto outcome = run_onset(with(arguments, {"--prompt", "Say hello."}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto row =
      run_onset(with(arguments, {"--prompt", "Say hello.", "--json"})).json_lines().at(0);
  EXPECT_EQ(outcome.out, row["text"].get<std::string>() + "\n");
  EXPECT_NE(outcome.error.find("tokens/s"), std::string::npos) << outcome.error;
  // The same prompt from standard input.
  const auto piped = run_onset(with(arguments, {"--prompt", "-"}), {.input = "Say hello."});
  EXPECT_EQ(piped.out, outcome.out);
  const auto rows = run_onset(with(arguments, {"--jsonl", "-"}),
                              {.input = "{\"text\": \"Say hello.\"}\n\n{\"ids\": [5, 6]}\n"})
                        .json_lines();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["text"], row["text"]);
}

TEST_F(DemoGenerate, BothOnATerminalStandSideBySide) {
  const TemporaryFolder folder;
  const auto mask = (folder.path() / "wemask.json").string();
  ASSERT_EQ(run_onset({"mask", "make", model_, "--from-layer", "12", "-o", mask}).code, 0);
  const auto outcome = run_onset({"generate", model_, "--prompt", "The sea is", "--max-tokens",
                                  "30", "--wemask", mask, "--both"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out.rfind("unmasked", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("masked\n"), std::string::npos) << outcome.out;
  EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
}

TEST_F(DemoGenerate, AReaderThatLeftIsAFailure) {
  const auto outcome = run_onset(
      {"generate", model_, "--prompt", "The sea is", "--max-tokens", "50", "--ignore-eos"},
      {.reader_left = true});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find("its reader left"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace onset::testing
