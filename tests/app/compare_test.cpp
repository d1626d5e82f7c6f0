// onset compare: what it prints of two folders of results, and calls that it refuses.

#include "app/program.h"
#include "support/result_files.h"

namespace onset::testing {
namespace {

class Compare : public ::testing::Test {
 protected:
  void SetUp() override {
    // 30 items: 12 of them change for the better, 2 for the worse.
    write_samples(folder_.path() / "a", "quiz", choice_samples("rrrrrrrrrrrrrrrrrrwwwwwwwwwwww"));
    write_samples(folder_.path() / "b", "quiz", choice_samples("wwrrrrrrrrrrrrrrrrrrrrrrrrrrrr"));
    write_results(folder_.path() / "a", results("none"));
    write_results(folder_.path() / "b", results("some"));
  }

  static OrderedJson results(const std::string& arguments) {
    return {{"model_name", "toy"},
            {"config", {{"model_args", arguments}}},
            {"higher_is_better", {{"quiz", {{"acc", true}}}}}};
  }
  [[nodiscard]] std::string a() const { return (folder_.path() / "a").string(); }
  [[nodiscard]] std::string b() const { return (folder_.path() / "b").string(); }

  TemporaryFolder folder_;
};

TEST_F(Compare, TheTableSaysWhatDiffersHowMuchAndWhetherItStands) {
  const auto outcome = run_onset({"compare", a(), b(), "--show", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  EXPECT_LE(widest_line(outcome.out), 80U);
  const auto shows = [&](const std::string& text) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in\n" << outcome.out;
  };
  shows("config.model_args: A none; B some");
  // 2 (1 + 14 + 91) / 2^14 = .0129.
  shows("   30  60.00  93.33 +33.33");
  shows("12/2  .013  .013");
  shows("B is 33.33 points higher, which is better");
  shows("12 items rose and 2 fell");
  shows("changed: quiz, acc: 14 of 30 items, 3 shown");
  shows("A         right (0) yes");
  shows("B         wrong (1) no");
}

TEST_F(Compare, JsonHasTheSameAndTheItems) {
  const auto outcome = run_onset({"compare", a(), b(), "--json", "--show", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const OrderedJson result = outcome.json();
  EXPECT_EQ(result.at("settings"),
            OrderedJson::parse(R"([{"name": "config.model_args", "a": "none", "b": "some"}])"));
  ASSERT_EQ(result.at("comparisons").size(), 1U);
  const auto& row = result.at("comparisons")[0];
  EXPECT_EQ(row.at("n"), 30);
  EXPECT_EQ(row.at("wins"), 12);
  EXPECT_EQ(row.at("losses"), 2);
  EXPECT_EQ(row.at("both_right"), 16);
  EXPECT_EQ(row.at("both_wrong"), 0);
  EXPECT_EQ(row.at("test"), "mcnemar_exact");
  EXPECT_NEAR(row.at("p").get<double>(), 212.0 / 16384, 1e-12);
  EXPECT_EQ(row.at("lost"), OrderedJson::parse("[0, 1]"));
  EXPECT_EQ(row.at("won").size(), 12U);
  EXPECT_EQ(row.at("higher_is_better"), true);
  ASSERT_EQ(row.at("shown").size(), 1U);
  EXPECT_EQ(row.at("shown")[0].at("answer_b"), "(1) no");
  // Everything but `run` is the same a second time.
  const auto again = run_onset({"compare", a(), b(), "--json", "--show", "1"});
  OrderedJson first = result;
  OrderedJson second = again.json();
  first.erase("run");
  second.erase("run");
  EXPECT_EQ(first, second);
}

TEST_F(Compare, TheSameRunTwiceShowsNoDifferenceAndDoesNotClaimThereIsNone) {
  const auto outcome = run_onset({"compare", a(), a()});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("nothing that the results record"), std::string::npos);
  // 1 - .05^(1/30) = 9.50 %, rounded up.
  EXPECT_NE(outcome.out.find("Of all such"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("9.51 %"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("changed:"), std::string::npos);
}

TEST_F(Compare, OneItemTellsNothing) {
  write_samples(folder_.path() / "c", "quiz", choice_samples("w"));
  const auto outcome = run_onset({"compare", a(), (folder_.path() / "c").string()});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("29 items only in A left out"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("So few items (1)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("settings unknown"), std::string::npos);
}

TEST_F(Compare, WrongUseIsRefused) {
  expect_refusal(run_onset({"compare", a()}), 2, "takes two runs");
  expect_refusal(run_onset({"compare", a(), b(), a()}), 2, "takes two runs");
  expect_refusal(run_onset({"compare", a(), b(), "--alpha", "1"}), 2, "--alpha");
  expect_refusal(run_onset({"compare", a(), b(), "--power", "0"}), 2, "--power");
  expect_refusal(run_onset({"compare", a(), b(), "--resamples", "9"}), 2, "--resamples");
  expect_refusal(run_onset({"compare", a(), b(), "--tasks", "quizz"}), 2, "did you mean \"quiz\"");
  expect_refusal(run_onset({"compare", a(), b(), "--tasks", "quiz,"}), 2,
                 "a part of the list is empty");
  expect_refusal(run_onset({"compare", a(), b(), "--metric", "f1"}), 2, "they have: acc");
  expect_refusal(run_onset({"compare", a(), (folder_.path() / "nowhere").string()}), 1,
                 "no such file or folder");
  const auto samples = folder_.path() / "b" / ("samples_quiz_" + result_time + ".jsonl");
  expect_refusal(run_onset({"compare", a(), b(), "-o", samples.string()}), 2, "-o");
  write_file_atomically(samples, "{\"doc_id\": 0,\n");
  expect_refusal(run_onset({"compare", a(), b()}), 1, "line 1: not valid JSON");
}

}  // namespace
}  // namespace onset::testing
