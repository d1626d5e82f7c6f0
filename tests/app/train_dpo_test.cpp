// onset train dpo under a mask: the reference is masked as the policy is, unless it is asked not
// to.
#include <gtest/gtest.h>

#include <cmath>

#include "app/program.h"
#include "support/support.h"

namespace onset::testing {
namespace {

class MaskedDpo : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = run_onset({"mask", "make", model_path("llama_me"), "--ids", "1,17,9", "-o",
                                    mask_, "--k", "8", "--from-layer", "1"});
    ASSERT_EQ(made.code, 0) << made.error;
  }

  Outcome run(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"train",
                                       "dpo",
                                       model_path("llama_me"),
                                       "--train-file",
                                       pairs_.string(),
                                       "--max-steps",
                                       "2",
                                       "--logging-steps",
                                       "1",
                                       "--per-device-train-batch-size",
                                       "2",
                                       "--learning-rate",
                                       "0.001",
                                       "--no-check-leaks",
                                       "-o",
                                       (folder_.path() / name).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_onset(arguments);
  }

  std::vector<OrderedJson> metrics(const std::string& name) {
    return read_jsonl(folder_.path() / name / "metrics.jsonl");
  }

  TemporaryFolder folder_;
  std::string mask_ = (folder_.path() / "mask.json").string();
  std::filesystem::path pairs_ = folder_.write(
      "pairs.jsonl",
      "{\"prompt_ids\": [1, 17, 9], \"chosen_ids\": [5, 44, 2], \"rejected_ids\": [61, 2]}\n"
      "{\"prompt_ids\": [1, 30], \"chosen_ids\": [12, 2], \"rejected_ids\": [13, 80, 7, 2]}\n");
};

TEST_F(MaskedDpo, BeginsAtLnTwoAndMoves) {
  const Outcome outcome = run("same", {"--wemask", mask_});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.error.find("its reference is not"), std::string::npos) << outcome.error;
  const auto lines = metrics("same");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NEAR(lines[0].at("loss").get<double>(), std::log(2.0), 1e-6);
  EXPECT_NEAR(lines[0].at("rewards/margins").get<double>(), 0.0, 1e-6);
  EXPECT_GT(std::abs(lines[1].at("loss").get<double>() - std::log(2.0)), 1e-4);
}

TEST_F(MaskedDpo, TheLineOfAnEvaluationHasAccuracyAndMargin) {
  const Outcome outcome = run("evaluated", {"--eval-file", pairs_.string(), "--eval-steps", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const std::size_t line = outcome.error.find("eval loss");
  ASSERT_NE(line, std::string::npos) << outcome.error;
  const std::string words = outcome.error.substr(line, outcome.error.find('\n', line) - line);
  EXPECT_NE(words.find("eval accuracy"), std::string::npos) << words;
  EXPECT_NE(words.find("eval margin"), std::string::npos) << words;
}

TEST_F(MaskedDpo, WarnsOfAReferenceWithoutTheMask) {
  const Outcome outcome = run("none", {"--wemask", mask_, "--reference-wemask", "none"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("its reference is not"), std::string::npos) << outcome.error;
  const auto lines = metrics("none");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_GT(std::abs(lines[0].at("loss").get<double>() - std::log(2.0)), 1e-5);
}

}  // namespace
}  // namespace onset::testing
