#include "onset/eval/results.h"

#include <gtest/gtest.h>

#include <sstream>

#include "onset/eval/task_file.h"
#include "support/support.h"

namespace onset {
namespace {

// Python: sha256(json.dumps(doc, indent=2, ensure_ascii=False)).
TEST(Results, DocumentsAreHashedAsLmEvalHashesThem) {
  const auto document = parse_ordered_json(
      "{\"q\": \"Wie heißt “das”?\\n\\t\\\"x\\\" \\u0001\", \"n\": 3, \"f\": 0.5, \"l\": [\"a\", "
      "1], \"e\": [], \"o\": {}, \"b\": true, \"z\": null, \"d\": {\"k\": {\"m\": [[1]]}}}",
      "doc");
  EXPECT_EQ(document_hash(document),
            "379b3c3a3a39bccf62314d1b8a57fbb702c7e02d1323b6d758fb989687dae611");
}

TEST(Results, NamesCarryTheTimeInUtc) {
  const std::chrono::system_clock::time_point time(std::chrono::microseconds(1700000000000042));
  EXPECT_EQ(time_in_names(time), "2023-11-14T22-13-20.000042");
}

AnsweredTask answered() {
  const auto task =
      parse_task_file(
          "format = 'onset.task.1'\nname = 'toy'\nversion = '2'\nsummary = 's'\nkind = 'choice'\n"
          "[data]\nfile = 'toy.jsonl'\n[prompt]\nquestion = 'Q: {q}'\n"
          "[choice]\ntexts = ['{a}', '{b}']\ngold = '{g}'\n[[metrics]]\nmeasure = 'acc'\n",
          "toy.toml")
          .tasks.at(0);
  std::vector<EvalItem> items(3);
  std::vector<ItemAnswer> answers(3);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].doc = static_cast<std::int64_t>(i);
    items[i].context = "Q: one";
    items[i].choices = {{" x", "x"}, {" yy", "yy"}};
    items[i].gold = 1;
    items[i].target = "1";
    items[i].document = {{"q", "one"}, {"g", 1}};
    answers[i].loglik = {-2.5, -1};
    answers[i].greedy = {false, true};
    answers[i].choice_tokens = {1, 1};
    answers[i].context_tokens = 4;
  }
  answers[1].loglik = {-1, -2.5};
  answers[1].cut = true;
  answers[2] = {};
  answers[2].skipped = true;
  auto graded = grade(task, items, answers);
  graded.result.documents = 9;
  graded.result.fewshot = 2;
  return graded;
}

TEST(Results, AreInLmEvalsLayout) {
  const std::vector<AnsweredTask> tasks{answered()};
  const ResultFacts facts{
      .config = {{"model", "onset"}}, .wemask = nullptr, .extra = {{"date", 1.5}}};
  const auto json = results_json(tasks, {}, facts);
  const auto& toy = json.at("results").at("toy");
  EXPECT_EQ(toy.at("alias"), "toy");
  EXPECT_EQ(toy.at("sample_len"), 2);
  EXPECT_EQ(toy.at("acc,none"), 0.5);
  EXPECT_EQ(toy.at("acc_stderr,none"), 0.5);  // sqrt(.5 / 1) / sqrt(2)
  EXPECT_FALSE(json.contains("groups"));
  EXPECT_EQ(json.at("n-samples").at("toy"),
            (OrderedJson{
                {"original", 9}, {"effective", 2}, {"skipped", 1}, {"cut", 1}, {"truncated", 0}}));
  EXPECT_EQ(json.at("n-shot").at("toy"), 2);
  EXPECT_EQ(json.at("versions").at("toy"), "2");
  EXPECT_EQ(json.at("higher_is_better").at("toy").at("acc"), true);
  EXPECT_EQ(json.at("configs").at("toy").at("doc_to_text"), "Q: {q}");
  EXPECT_TRUE(json.at("wemask").is_null());
  EXPECT_EQ(json.at("date"), 1.5);
  EXPECT_EQ(json.at("task_hashes").at("toy").get<std::string>().size(), 64U);
}

TEST(Results, GroupsStandAmongTheResultsAndApart) {
  const std::vector<AnsweredTask> tasks{answered()};
  const std::vector<TaskResult> results{tasks[0].result};
  const auto groups =
      aggregate_groups({{.name = "all", .alias = "All", .members = {"toy"}}}, results);
  const auto json = results_json(tasks, groups, {});
  EXPECT_EQ(json.at("results").at("all").at("acc,none"), 0.5);
  EXPECT_EQ(json.at("groups").at("all").at("alias"), "All");
  EXPECT_EQ(json.at("group_subtasks"), (OrderedJson{{"all", {"toy"}}}));
}

TEST(Results, SamplesHaveALineForEachDocument) {
  std::istringstream lines(samples_jsonl(answered()));
  std::vector<OrderedJson> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(OrderedJson::parse(line));
  ASSERT_EQ(rows.size(), 3U);
  const auto& row = rows[0];
  EXPECT_EQ(row.at("doc_id"), 0);
  EXPECT_EQ(row.at("target"), "1");
  EXPECT_EQ(row.at("arguments").at("gen_args_1"),
            (OrderedJson{{"arg_0", "Q: one"}, {"arg_1", " yy"}}));
  EXPECT_EQ(row.at("resps").dump(), "[[[\"-2.5\",\"False\"]],[[\"-1.0\",\"True\"]]]");
  EXPECT_EQ(row.at("filtered_resps").dump(), "[[\"-2.5\",\"False\"],[\"-1.0\",\"True\"]]");
  EXPECT_EQ(row.at("filter"), "none");
  EXPECT_EQ(row.at("metrics").dump(), "[\"acc\"]");
  EXPECT_EQ(row.at("acc"), 1.0);
  // Python: hashlib.sha256(b"Q: one"), (b"1").
  EXPECT_EQ(row.at("prompt_hash"),
            "8ed71165a8de64a064a16b16716c72e7cffb5cb52061a13d73979cf42f245a8b");
  EXPECT_EQ(row.at("target_hash"),
            "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
  EXPECT_EQ(rows[1].at("acc"), 0.0);
  EXPECT_EQ(rows[1].at("cut"), true);
  EXPECT_EQ(rows[2].at("skipped"), true);
  EXPECT_TRUE(rows[2].at("metrics").empty());
  EXPECT_FALSE(rows[2].contains("acc"));
}

}  // namespace
}  // namespace onset
