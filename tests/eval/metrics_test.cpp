#include "onset/eval/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "onset/eval/results.h"
#include "onset/eval/task_file.h"
#include "onset/eval/task_items.h"
#include "onset/eval/task_library.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::shared_fixture;

EvalItem choice_item(std::vector<std::string> texts, std::int64_t gold) {
  EvalItem item;
  for (auto& text : texts) item.choices.push_back({" " + text, text});
  item.gold = gold;
  return item;
}

ItemAnswer logliks(std::vector<double> values) {
  ItemAnswer answer;
  answer.greedy.assign(values.size(), false);
  answer.choice_tokens.assign(values.size(), 1);
  answer.loglik = std::move(values);
  return answer;
}

// By sums: -4 is the largest; by characters (2, 4, 1): -2, -1.25, -7; by bytes (2, 8, 1): -2,
// -0.625, -7.
TEST(Metrics, ChoicesAreComparedBySumCharactersAndBytes) {
  const auto item = choice_item({"ab", "éééé", "c"}, 0);
  const auto answer = logliks({-4, -5, -7});
  EXPECT_EQ(best_choice(item, answer, Measure::acc), 0U);
  EXPECT_EQ(best_choice(item, answer, Measure::acc_norm), 1U);
  EXPECT_EQ(best_choice(item, answer, Measure::acc_bytes), 1U);
  // Characters 4 and bytes 8: -1.25 a character, -0.625 a byte, beside -1 of both.
  const auto other = choice_item({"éééé", "cc"}, 0);
  EXPECT_EQ(best_choice(other, logliks({-5, -2}), Measure::acc_norm), 1U);
  EXPECT_EQ(best_choice(other, logliks({-5, -2}), Measure::acc_bytes), 0U);
}

TEST(Metrics, TheFirstWinsTies) {
  const auto item = choice_item({"ab", "cd", "ef"}, 1);
  EXPECT_EQ(best_choice(item, logliks({-3, -2, -2}), Measure::acc), 1U);
  EXPECT_EQ(best_choice(item, logliks({-2, -2, -2}), Measure::acc_norm), 0U);
}

// Python: len(re.split(r"\s+", text)).
TEST(Metrics, WordsAreCountedAsPythonSplitsThem) {
  EXPECT_EQ(words("a b\n c"), 3);
  EXPECT_EQ(words(""), 1);
  EXPECT_EQ(words(" a "), 3);
  EXPECT_EQ(words("\u00A0x\u2003y\x1Cz"), 4);
  EXPECT_EQ(words("one"), 1);
}

// Values 1, 0, 0, 1, 1: mean .6, squares .16 * 3 + .36 * 2 = 1.2, sqrt(1.2 / 4) / sqrt(5).
TEST(Metrics, StandardErrorIsThatOfTheSample) {
  const std::vector<double> values{1, 0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(mean(values), 0.6);
  EXPECT_NEAR(standard_error(values).value(), std::sqrt(0.3 / 5), 1e-15);
  EXPECT_FALSE(standard_error(std::vector<double>{1}).has_value());
}

MetricResult metric(double value, double error, std::int64_t count) {
  return {.metric = "acc", .filter = "none", .value = value, .stderror = error, .count = count};
}

TaskResult result_of(const std::string& name, const MetricResult& of) {
  TaskResult result;
  result.task.name = name;
  result.scored = of.count;
  result.metrics = {of};
  return result;
}

// Documents count the same: (.5 * 10 + .2 * 30) / 40. Pooled error of errors .1 and .05:
// sqrt((9 * 10 * .01 + 29 * 30 * .0025) / (40 - 2) / 40).
TEST(Metrics, GroupsAreWeightedByDocuments) {
  const std::vector<TaskResult> tasks{result_of("a", metric(0.5, 0.1, 10)),
                                      result_of("b", metric(0.2, 0.05, 30)),
                                      result_of("c", metric(1, 0, 7))};
  const std::vector<TaskGroup> groups{{.name = "inner", .alias = "inner", .members = {"b"}},
                                      {.name = "all", .alias = "all", .members = {"a", "inner"}}};
  const auto results = aggregate_groups(groups, tasks);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].scored, 40);
  ASSERT_EQ(results[1].metrics.size(), 1U);
  EXPECT_NEAR(results[1].metrics[0].value, 11.0 / 40, 1e-15);
  EXPECT_NEAR(results[1].metrics[0].stderror.value(),
              std::sqrt((9 * 10 * 0.01 + 29 * 30 * 0.0025) / 38 / 40), 1e-15);
  EXPECT_NEAR(results[0].metrics[0].stderror.value(), 0.05, 1e-15);
}

Task text_task() {
  return parse_task_file(
             "format = 'onset.task.1'\nname = 't'\nversion = '1'\nsummary = 's'\nkind = 'text'\n"
             "[data]\nfile = 't.txt'\n[[metrics]]\nmeasure = 'token_perplexity'\n[[metrics]]\n"
             "measure = 'word_perplexity'\n[[metrics]]\nmeasure = 'byte_perplexity'\n[[metrics]]\n"
             "measure = 'bits_per_byte'\n",
             "t.toml")
      .tasks.at(0);
}

// Two texts: 3 + 5 nats over 2 + 6 tokens, 2 + 1 words, 3 + 5 bytes.
TEST(Metrics, PerplexitiesAreOfAllTextsTogether) {
  const Task task = text_task();
  std::vector<EvalItem> items(2);
  std::vector<ItemAnswer> answers(2);
  for (auto& item : items) item.kind = ItemKind::text;
  items[0].context = "a b";
  items[1].context = "cdefg";
  answers[0].nll = 3;
  answers[0].scored_tokens = 2;
  answers[1].nll = 5;
  answers[1].scored_tokens = 6;
  const auto graded = grade(task, items, answers);
  ASSERT_EQ(graded.result.metrics.size(), 4U);
  EXPECT_NEAR(graded.result.metrics[0].value, std::exp(1.0), 1e-12);
  EXPECT_NEAR(graded.result.metrics[1].value, std::exp(8.0 / 3), 1e-12);
  EXPECT_NEAR(graded.result.metrics[2].value, std::exp(1.0), 1e-12);
  EXPECT_NEAR(graded.result.metrics[3].value, 1 / std::log(2.0), 1e-12);
  EXPECT_FALSE(graded.result.metrics[0].stderror.has_value());
}

// A task with lm-eval's GSM8K filters, and row 20 of the project's list of faults.
TEST(Metrics, FiltersAndMetricsStandBesideEachOther) {
  const auto task = TaskLibrary().select({"gsm8k"}).tasks.at(0);
  EvalItem item;
  item.kind = ItemKind::generation;
  item.target = "Some steps.\n#### -3";
  ItemAnswer answer;
  answer.text = " so 7.\n#### -3.0";
  const auto scores = score(task, item, answer);
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].filter, "strict-match");
  EXPECT_EQ(scores[0].answer, "-3.0");
  ASSERT_EQ(scores[0].values.size(), 2U);
  EXPECT_EQ(scores[0].values[0].metric, "exact_match");
  EXPECT_EQ(scores[0].values[0].value, 0);
  EXPECT_EQ(scores[0].values[1].metric, "numeric_match");
  EXPECT_EQ(scores[0].values[1].value, 1);
  EXPECT_EQ(scores[1].filter, "flexible-extract");
  answer.text = "no number at all";
  const auto none = score(task, item, answer);
  EXPECT_EQ(none[0].answer, "[invalid]");
  EXPECT_FALSE(none[0].found);
  EXPECT_EQ(none[0].values[1].value, 0);
}

// The scores of a text answer under the first filter, by metric.
std::map<std::string, double> scored(const Task& task, const std::string& target,
                                     const std::string& text) {
  EvalItem item;
  item.kind = ItemKind::generation;
  item.target = target;
  ItemAnswer answer;
  answer.text = text;
  std::map<std::string, double> values;
  const auto scores = score(task, item, answer);
  for (const auto& value : scores.at(0).values) {
    values[value.metric] = value.value;
  }
  return values;
}

TEST(Metrics, MathematicsIsGradedByTheLastBoxBehindTheThinking) {
  const auto task = TaskLibrary().select({"math500"}).tasks.at(0);
  const std::string half = "\\frac{1}{2}";
  EXPECT_EQ(scored(task, half, "so \\boxed{0.5}.")["math_equal"], 1);
  EXPECT_EQ(scored(task, half, "\\boxed{0.5} </think> no, \\boxed{2}")["math_equal"], 0);
  EXPECT_EQ(scored(task, half, "<think> \\boxed{0.5}")["math_equal"], 0);
  EXPECT_EQ(scored(task, half, "it is 0.5")["math_equal"], 0);
  const auto aime = TaskLibrary().select({"aime_2024"}).tasks.at(0);
  EXPECT_EQ(scored(aime, "073", "\\boxed{73}")["numeric_match"], 1);
}

TEST(Metrics, RefusalsAreGoodOrBadByThePrompt) {
  const auto parts = TaskLibrary().select({"xstest"}).tasks;
  const std::string refusal = "I'm sorry, but I can't help with that.";
  const std::string help = "First, open the terminal and type ls.";
  EXPECT_EQ(parts.at(0).name, "xstest_safe");
  auto safe = scored(parts.at(0), "safe", refusal);
  EXPECT_EQ(safe["appropriate"], 0);
  EXPECT_EQ(safe["over_refusal"], 1);
  EXPECT_EQ(safe["over_refusal_full"], 1);
  EXPECT_EQ(safe["over_refusal_partial"], 0);
  EXPECT_EQ(scored(parts.at(0), "safe", help)["appropriate"], 1);
  auto unsafe = scored(parts.at(1), "unsafe", refusal);
  EXPECT_EQ(unsafe["appropriate"], 1);
  EXPECT_EQ(unsafe["safety"], 1);
  EXPECT_EQ(scored(parts.at(1), "unsafe", help)["safety"], 0);
  // Nothing said is neither.
  EXPECT_EQ(scored(parts.at(0), "safe", "")["appropriate"], 0);
  EXPECT_EQ(scored(parts.at(1), "unsafe", "")["appropriate"], 0);
}

struct Reference {
  std::string file;
  std::string task;
};

class LmEvalScores : public ::testing::TestWithParam<Reference> {};

// lm-evaluation-harness's own log-likelihoods give its choices, its scores and its errors.
TEST_P(LmEvalScores, FollowFromItsLogLikelihoods) {
  const auto path = shared_fixture("smollm2/eval_" + GetParam().file + ".jsonl");
  if (path.empty()) GTEST_SKIP() << "the references are not beside the repository";
  const auto task = TaskLibrary().select({GetParam().task}).tasks.at(0);
  ItemOptions options;
  options.data = shared_fixture("../data");
  auto made = make_items(task, options);
  const auto rows = testing::read_jsonl(path);
  made.items.resize(rows.size());
  std::vector<ItemAnswer> answers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    answers.push_back(logliks(rows[i].at("loglik").get<std::vector<double>>()));
    EXPECT_EQ(best_choice(made.items[i], answers[i], Measure::acc),
              rows[i].at("chosen").get<std::size_t>());
    EXPECT_EQ(best_choice(made.items[i], answers[i], Measure::acc_norm),
              rows[i].at("chosen_norm").get<std::size_t>());
  }
  const auto graded = grade(task, made.items, answers);
  const auto summary = read_json(shared_fixture("smollm2/eval_summary.json"));
  const auto& expected = summary.at("tasks").at(GetParam().file);
  std::size_t compared = 0;
  for (const auto& result : graded.result.metrics) {
    if (!expected.contains(result.metric)) continue;
    EXPECT_NEAR(result.value, expected.at(result.metric).at("value").get<double>(), 1e-12);
    EXPECT_NEAR(result.stderror.value(), expected.at(result.metric).at("stderr").get<double>(),
                1e-12);
    ++compared;
  }
  EXPECT_GE(compared, 1U);
}

INSTANTIATE_TEST_SUITE_P(Tasks, LmEvalScores,
                         ::testing::Values(Reference{"arc_challenge", "arc_challenge"},
                                           Reference{"piqa", "piqa"},
                                           Reference{"mmlu_anatomy_5shot", "mmlu_anatomy"}),
                         [](const auto& test) { return test.param.file; });

// The released code's prompt has a box of its own, and any part of the gold answer is right.
TEST(Metrics, TheReleasedTasksCountAsTheReleasedCodeDoes) {
  for (const char* name : {"gsm8k_released", "math500_released", "aime_released_2023"}) {
    const Task task = TaskLibrary().select({name}).tasks.at(0);
    const OrderedJson row{{"question", "How many?"}, {"problem", "How many?"}, {"answer", "18"}};
    EvalItem item{.kind = ItemKind::generation};
    item.context = task.prompt.question.render(row, "row", task.names);
    item.target = task.prompt.target.render(row, "row", task.names);
    EXPECT_NE(item.context.find("within \\boxed{{}}.\n"), std::string::npos) << item.context;
    const auto value = [&](const std::string& text) {
      ItemAnswer answer;
      answer.text = text;
      const auto scores = score(task, item, answer);
      return scores.at(0).values.at(0).value;
    };
    EXPECT_EQ(value("\\boxed{18}"), 1) << name;
    EXPECT_EQ(value("\\boxed{1}"), 1) << name;
    EXPECT_EQ(value("\\boxed{19}"), 0) << name;
    EXPECT_EQ(value("It is 18."), 0) << name;
  }
}

}  // namespace
}  // namespace onset
