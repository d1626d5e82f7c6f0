// Two folders of results, compared: which files make a run, what is paired, and the rows.

#include "onset/eval/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/result_files.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::choice_sample;
using testing::choice_samples;
using testing::TemporaryFolder;
using testing::write_results;
using testing::write_samples;

class ComparisonTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path a() const { return folder_.path() / "a"; }
  [[nodiscard]] std::filesystem::path b() const { return folder_.path() / "b"; }
  Comparison compare(const ComparisonOptions& options = {}) {
    run_a_ = open_run(a());
    run_b_ = open_run(b());
    return compare_runs(run_a_, run_b_, options);
  }
  std::string fault(const ComparisonOptions& options = {}) {
    return testing::error_of([&] { static_cast<void>(compare(options)); });
  }

  TemporaryFolder folder_;
  EvaluationRun run_a_;
  EvaluationRun run_b_;
};

TEST_F(ComparisonTest, PairsByDocumentWhateverTheOrder) {
  auto lines = choice_samples("rrrwwwwwww");
  write_samples(a(), "t", lines);
  lines = choice_samples("wrrrrrrrww");
  std::reverse(lines.begin(), lines.end());
  write_samples(b(), "t", lines);
  const Comparison comparison = compare();
  ASSERT_EQ(comparison.rows.size(), 1U);
  const auto& row = comparison.rows[0];
  EXPECT_EQ(row.task, "t");
  EXPECT_EQ(row.metric, "acc");
  EXPECT_EQ(row.result.n, 10);
  EXPECT_EQ(row.result.wins, 5);
  EXPECT_EQ(row.result.losses, 1);
  EXPECT_DOUBLE_EQ(row.result.difference, 0.4);
  EXPECT_NEAR(row.result.p, 14.0 / 64, 1e-12);  // 2 (1 + 6) / 2^6
  EXPECT_NEAR(row.holm_p, 14.0 / 64, 1e-12);
  std::vector<std::int64_t> changed;
  for (const auto& item : row.changed) changed.push_back(item.doc);
  EXPECT_EQ(changed, (std::vector<std::int64_t>{0, 3, 4, 5, 6, 7}));
  ASSERT_EQ(comparison.pairings.size(), 1U);
  EXPECT_EQ(comparison.pairings[0].items, 10);
  EXPECT_EQ(comparison.pairings[0].other_prompts, 0);
  EXPECT_TRUE(comparison.pairings[0].hashed);
}

TEST_F(ComparisonTest, ItemsOfOneRunAreLeftOutAndCounted) {
  write_samples(a(), "t", choice_samples("rrww"));
  auto lines = choice_samples("rwwwwwwrr");
  lines.erase(lines.begin());
  write_samples(b(), "t", lines);
  write_samples(a(), "only_a", choice_samples("r"));
  write_samples(b(), "only_b", choice_samples("r"));
  const Comparison comparison = compare();
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_EQ(comparison.rows[0].result.n, 3);
  EXPECT_EQ(comparison.pairings[0].only_a, 1);
  EXPECT_EQ(comparison.pairings[0].only_b, 5);
  EXPECT_EQ(comparison.only_a, std::vector<std::string>{"only_a"});
  EXPECT_EQ(comparison.only_b, std::vector<std::string>{"only_b"});
}

TEST_F(ComparisonTest, AnotherDocumentIsRefusedAndAnotherPromptCounted) {
  write_samples(a(), "t", choice_samples("rr"));
  auto lines = choice_samples("rr");
  lines[1]["prompt_hash"] = "with examples";
  write_samples(b(), "t", lines);
  EXPECT_EQ(compare().pairings[0].other_prompts, 1);
  lines[1]["doc_hash"] = "another";
  write_samples(b(), "t", lines);
  const auto message = fault();
  EXPECT_NE(message.find("document 1 is not the same in both runs"), std::string::npos) << message;
  EXPECT_NE(message.find("1 of 2"), std::string::npos) << message;
  EXPECT_NE(message.find("--by-number"), std::string::npos) << message;
  const auto comparison = compare({.by_number = true});
  EXPECT_EQ(comparison.rows[0].result.n, 2);
  EXPECT_EQ(comparison.pairings[0].other_documents, 1);
}

TEST_F(ComparisonTest, FiltersAndMetricsHaveRowsOfTheirOwn) {
  std::vector<OrderedJson> lines;
  for (const char* filter : {"strict", "flexible"}) {
    auto line = choice_sample(0, 1);
    line["filter"] = filter;
    line["metrics"] = {"acc", "length"};
    line["length"] = 12.5;
    lines.push_back(line);
  }
  write_samples(a(), "t", lines);
  write_samples(b(), "t", lines);
  const auto comparison = compare();
  ASSERT_EQ(comparison.rows.size(), 4U);
  EXPECT_EQ(comparison.rows[0].filter, "strict");
  EXPECT_EQ(comparison.rows[1].metric, "length");
  EXPECT_FALSE(comparison.rows[1].result.binary);
  EXPECT_EQ(comparison.rows[3].filter, "flexible");
  EXPECT_EQ(comparison.rows[3].family, 4);
  EXPECT_EQ(compare({.metrics = {"length"}}).rows.size(), 2U);
  EXPECT_NE(fault({.metrics = {"accc"}}).find("they have: acc, length"), std::string::npos);
}

TEST_F(ComparisonTest, ItemsWithoutAFiniteScoreAreLeftOutAndCounted) {
  auto lines = choice_samples("rwr");
  lines[0]["acc"] = nullptr;
  write_samples(a(), "t", lines);
  lines = choice_samples("rww");
  lines[1].erase("acc");
  write_samples(b(), "t", lines);
  const auto comparison = compare();
  EXPECT_EQ(comparison.rows[0].result.n, 1);
  EXPECT_EQ(comparison.rows[0].without_score, 2);
  EXPECT_EQ(comparison.rows[0].result.losses, 1);
  EXPECT_EQ(comparison.rows[0].result.p, 1);
  ASSERT_EQ(comparison.notes.size(), 1U);
  EXPECT_EQ(comparison.notes[0],
            "t, acc: 2 items left out, without a finite score in A (1) or B (1)");
}

TEST_F(ComparisonTest, ResultsOfAnotherShapeAreRefused) {
  write_samples(a(), "t", choice_samples("rr"));
  write_samples(b(), "t", choice_samples("rr"));
  const auto error = [&](const OrderedJson& results) {
    testing::write_results(b(), results);
    return fault();
  };
  testing::write_results(b(), {{"results", OrderedJson::object()}});
  EXPECT_EQ(compare().rows.size(), 1U);
  EXPECT_NE(error({{"results", 3}}).find("\"results\" should be an object, is number"),
            std::string::npos);
  EXPECT_NE(error({{"group_subtasks", {{"g", "t"}}}}).find("group \"g\" should be a list of names"),
            std::string::npos);
  EXPECT_NE(error({{"group_subtasks", {{"g", {"t", "g"}}}}}).find("group \"g\" holds itself"),
            std::string::npos);
  testing::write_results(b(), OrderedJson::object());
  EXPECT_EQ(compare().rows.size(), 1U);
  auto lines = choice_samples("rr");
  lines[1]["metrics"] = "acc";
  write_samples(b(), "t", lines);
  EXPECT_NE(fault().find("line 2: \"metrics\" should be a list of names, is string"),
            std::string::npos);
}

TEST_F(ComparisonTest, WithoutHashesNothingIsSaidOfPrompts) {
  auto lines = choice_samples("rrw");
  write_samples(a(), "t", lines);
  for (auto& line : lines) {
    line.erase("prompt_hash");
    line.erase("doc_hash");
  }
  write_samples(b(), "t", lines);
  const auto comparison = compare();
  EXPECT_EQ(comparison.pairings[0].other_prompts, 0);
  EXPECT_FALSE(comparison.pairings[0].hashed);
}

TEST_F(ComparisonTest, PairsAreMeanNegativeLogLikelihoods) {
  const auto line = [](std::int64_t doc, double loglik, double words) {
    auto sample = choice_sample(doc, 0);
    sample["metrics"] = {"word_perplexity"};
    sample["word_perplexity"] = {loglik, words};
    return sample;
  };
  write_samples(a(), "t", {line(0, -30, 10), line(1, -4, 2)});
  write_samples(b(), "t", {line(0, -20, 10), line(1, -6, 2)});
  const auto comparison = compare();
  ASSERT_EQ(comparison.rows.size(), 1U);
  const auto& row = comparison.rows[0];
  EXPECT_TRUE(row.is_nll);
  EXPECT_EQ(row.higher_is_better, false);
  EXPECT_DOUBLE_EQ(row.result.a, 34.0 / 12);
  EXPECT_DOUBLE_EQ(row.result.b, 26.0 / 12);
  // Another count of words means another measure.
  write_samples(b(), "t", {line(0, -20, 11), line(1, -6, 2)});
  const auto message = fault();
  EXPECT_NE(message.find("share no item with a score"), std::string::npos) << message;
}

TEST_F(ComparisonTest, TextsArePairedWindowByWindow) {
  const auto line = [](const std::vector<double>& windows, double loglik) {
    auto sample = choice_sample(0, 0);
    sample["metrics"] = {"token_perplexity"};
    sample["token_perplexity"] = {loglik, 40};
    sample["nll_per_window"] = windows;
    return sample;
  };
  write_samples(a(), "t", {line({10, 20, 30, 40}, -100)});
  write_samples(b(), "t", {line({11, 22, 29, 46}, -108)});
  const auto comparison = compare();
  const auto& row = comparison.rows.at(0);
  EXPECT_TRUE(row.by_windows);
  EXPECT_EQ(row.result.n, 4);
  EXPECT_DOUBLE_EQ(row.result.a, 100.0 / 40);
  EXPECT_DOUBLE_EQ(row.result.difference, 8.0 / 40);
  EXPECT_EQ(row.result.wins, 3);
  EXPECT_EQ(row.result.losses, 1);
  // Differences 1, 2, -1, 6: |sum| >= 8 of 16 patterns for +-(1 2 -1 6), (1 2 1 6), (-1 2 1 6) ..
  // by hand: 6 + 2 +- 1 +- 1 is 8, 8, 10, 6; 6 - 2 +- 1 +- 1 at most 6: 3 of 8, twice.
  EXPECT_NEAR(row.result.p, 6.0 / 16, 1e-12);
  // Windows that do not add up to the text are not of this score.
  write_samples(b(), "t", {line({11, 22, 29, 40}, -108)});
  EXPECT_EQ(compare().rows.at(0).result.n, 1);
}

TEST_F(ComparisonTest, GroupsPoolTheItemsOfTheirTasks) {
  const OrderedJson results = {
      {"group_subtasks",
       {{"g", {"g_one", "g_rest"}},
        {"g_rest", {"g_two", "g_three"}},
        {"other", OrderedJson::array()}}},
      {"higher_is_better",
       {{"g_one", {{"acc", true}}}, {"g_two", {{"acc", true}}}, {"g_three", {{"acc", true}}}}}};
  for (const auto& folder : {a(), b()}) {
    const bool second = folder == b();
    write_results(folder, results);
    write_samples(folder, "g_one", choice_samples(second ? "rrrrrrrr" : "wwwwwwrr"));
    write_samples(folder, "g_two", choice_samples(second ? "rw" : "wr"));
    write_samples(folder, "g_three", choice_samples("r"));
    write_samples(folder, "other", choice_samples("rw"));
  }
  const auto comparison = compare();
  std::vector<std::string> names;
  for (const auto& row : comparison.rows) names.push_back(row.task + "<" + row.member_of);
  EXPECT_EQ(names, (std::vector<std::string>{"g<", "g_rest<g", "g_three<g_rest", "g_two<g_rest",
                                             "g_one<g", "other<"}));
  const auto& group = comparison.rows[0];
  EXPECT_EQ(group.result.n, 11);  // every item counts the same
  EXPECT_EQ(group.result.wins, 7);
  EXPECT_EQ(group.result.losses, 1);
  EXPECT_EQ(group.group_tasks, (std::vector<std::string>{"g_one", "g_three", "g_two"}));
  EXPECT_EQ(group.higher_is_better, true);
  EXPECT_NEAR(group.result.p, 18.0 / 256, 1e-12);  // 2 (1 + 8) / 2^8
  // g and other are one family of two tests; the four rows within g another.
  EXPECT_EQ(group.family, 2);
  EXPECT_NEAR(group.holm_p, 36.0 / 256, 1e-12);
  const auto& one = comparison.rows[4];
  EXPECT_EQ(one.family, 4);
  EXPECT_NEAR(one.result.p, 2.0 / 64, 1e-12);
  EXPECT_NEAR(one.holm_p, 8.0 / 64, 1e-12);

  const auto chosen = compare({.tasks = {"g_rest"}});
  ASSERT_EQ(chosen.rows.size(), 3U);
  EXPECT_EQ(chosen.rows[0].task, "g_rest");
  EXPECT_EQ(chosen.rows[0].member_of, "");
  EXPECT_EQ(compare({.tasks = {"g_one", "g_two"}}).rows.size(), 2U) << "no group was asked for";
  EXPECT_NE(fault({.tasks = {"g_on"}}).find("did you mean \"g_one\""), std::string::npos);
}

TEST_F(ComparisonTest, TheLatestRunOfAFolderIsTaken) {
  const std::string later = "2026-02-01T00-00-00.000000";
  write_samples(a(), "t", choice_samples("ww"));
  write_samples(a(), "with_2026_in_it", choice_samples("rr"), later);
  write_results(a(), {{"model_name", "x"}}, later);
  write_samples(b() / "model", "with_2026_in_it", choice_samples("rw"));
  const auto comparison = compare();
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_EQ(comparison.rows[0].task, "with_2026_in_it");
  ASSERT_EQ(run_a_.files.notes.size(), 1U);
  EXPECT_NE(run_a_.files.notes[0].find("2 runs; the latest, " + later), std::string::npos);
  // A file names its run.
  const auto earlier = find_run(a() / ("samples_t_" + testing::result_time + ".jsonl"));
  ASSERT_EQ(earlier.samples.size(), 1U);
  EXPECT_EQ(earlier.samples[0].task, "t");
  EXPECT_TRUE(earlier.results.empty());
  EXPECT_EQ(find_run(a() / ("results_" + later + ".json")).samples[0].task, "with_2026_in_it");
}

TEST_F(ComparisonTest, WhatIsNoRunIsRefusedWithWhatWasLookedFor) {
  EXPECT_NE(fault().find("no such file or folder"), std::string::npos);
  std::filesystem::create_directories(a());
  EXPECT_NE(fault().find("no results_TIME.json and samples_TASK_TIME.jsonl"), std::string::npos);
  write_results(a(), {{"results", OrderedJson::object()}});
  EXPECT_NE(fault().find("--log-samples"), std::string::npos);
  write_samples(a(), "t", choice_samples("r"));
  write_samples(b() / "one", "u", choice_samples("r"));
  EXPECT_NE(fault().find("no task is in both runs"), std::string::npos);
  write_samples(b() / "two", "u", choice_samples("r"));
  EXPECT_NE(fault().find("several folders in it hold runs"), std::string::npos);
  const auto other = folder_.write("notes.txt", "x");
  EXPECT_NE(
      testing::error_of([&] { static_cast<void>(find_run(other)); }).find("is neither a folder"),
      std::string::npos);
}

TEST(Settings, DifferencesAreNamedAndTimesLeftOut) {
  const Json a = Json::parse(
      R"({"model_name": "x", "date": 1, "wemask": null, "config": {"model_args": "p", "batch_size": 8},)"
      R"( "n-shot": {"t": 0, "u": 5}, "versions": {"t": 1.0}, "start_time": 3})");
  const Json b = Json::parse(
      R"({"model_name": "x", "date": 2, "wemask": {"k": 4}, "config": {"model_args": "q", "batch_size": 4},)"
      R"( "n-shot": {"t": 5}, "versions": {"t": 1.0}, "start_time": 4})");
  std::vector<std::string> names;
  for (const auto& difference : setting_differences(a, b)) names.push_back(difference.name);
  EXPECT_EQ(names, (std::vector<std::string>{"wemask", "config.model_args", "n-shot.t"}));
  EXPECT_TRUE(setting_differences(a, a).empty());
  EXPECT_TRUE(setting_differences(Json(), Json()).empty());
}

TEST(Settings, GroupsWithinThemselvesEnd) {
  const auto groups =
      groups_of(Json::parse(R"({"group_subtasks": {"a": ["b", "x"], "b": ["a", "y"]}})"));
  EXPECT_EQ(groups.at("a"), (std::vector<std::string>{"x", "y"}));
}

}  // namespace
}  // namespace onset
