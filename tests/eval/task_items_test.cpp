// Prompts: those that lm-evaluation-harness 0.4.13 made of the same data, byte for byte, and the
// rules by which they are put together on small data.

#include "onset/eval/task_items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "onset/base/error.h"
#include "onset/eval/task_file.h"
#include "onset/eval/task_library.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;
using testing::shared_fixture;
using testing::TemporaryFolder;

struct Reference {
  std::string file;
  std::string task;
  std::optional<std::int64_t> fewshot;
};

// Code points: all bytes but those that continue one.
std::int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// How gtest shows a parameter.
void PrintTo(const Reference& reference, std::ostream* out) { *out << reference.file; }

class LmEvalContexts : public ::testing::TestWithParam<Reference> {};

TEST_P(LmEvalContexts, AreEqualByteForByte) {
  const auto path = shared_fixture("smollm2/" + GetParam().file);
  const auto data = shared_fixture("../data");
  if (path.empty() || data.empty()) GTEST_SKIP() << "the references are not beside the repository";
  const auto selection = TaskLibrary().select({GetParam().task});
  ItemOptions options;
  options.data = data;
  options.fewshot = GetParam().fewshot;
  const auto made = make_items(selection.tasks.at(0), options);
  // The first documents alone have their context in the reference; all have their choices.
  std::size_t contexts = 0;
  for (const auto& row : testing::read_jsonl(path)) {
    const auto& item = made.items.at(row.at("doc").get<std::size_t>());
    if (row.contains("context")) {
      EXPECT_EQ(item.context, row.at("context").get<std::string>()) << row.at("doc");
      ++contexts;
    }
    if (!row.contains("choice_chars")) continue;
    EXPECT_EQ(item.gold, row.at("target").get<std::int64_t>());
    std::vector<std::int64_t> lengths;
    for (const auto& choice : item.choices) lengths.push_back(characters(choice.text));
    EXPECT_EQ(lengths, row.at("choice_chars").get<std::vector<std::int64_t>>()) << row.at("doc");
  }
  EXPECT_GE(contexts, 3U);
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, LmEvalContexts,
    ::testing::Values(
        Reference{"eval_arc_challenge.jsonl", "arc_challenge", {}},
        Reference{"eval_piqa.jsonl", "piqa", {}},
        Reference{"eval_mmlu_abstract_algebra_0shot.jsonl", "mmlu_abstract_algebra", 0},
        Reference{"eval_mmlu_anatomy_0shot.jsonl", "mmlu_anatomy", 0},
        Reference{"eval_mmlu_anatomy_5shot.jsonl", "mmlu_anatomy", {}},
        Reference{"eval_mmlu_high_school_us_history_0shot.jsonl", "mmlu_high_school_us_history", 0},
        Reference{"eval_mmlu_philosophy_0shot.jsonl", "mmlu_philosophy", 0},
        Reference{"eval_gsm8k_5shot.jsonl", "gsm8k", {}}),
    [](const auto& test) { return test.param.file.substr(5, test.param.file.find('.') - 5); });

// The counts of the data sets' authors.
TEST(TaskItems, EveryDataSetHasItsOfficialNumberOfDocuments) {
  const auto data = shared_fixture("../data");
  if (data.empty()) GTEST_SKIP() << "the data sets are not beside the repository";
  const std::map<std::string, std::int64_t> official{
      {"piqa", 1838},   {"arc_challenge", 1172}, {"gsm8k", 1319},  {"strategyqa", 229},
      {"mmlu", 14042},  {"wikitext2", 1},        {"c4", 300},      {"aime", 90},
      {"math500", 500}, {"xstest", 450},         {"advbench", 520}};
  const TaskLibrary library;
  for (const auto& [name, count] : official) {
    std::int64_t documents = 0;
    for (const auto& task : library.select({name}).tasks) {
      ItemOptions options;
      options.data = data;
      const auto made = make_items(task, options);
      EXPECT_EQ(made.documents, static_cast<std::int64_t>(made.items.size()));
      documents += made.documents;
    }
    EXPECT_EQ(documents, count) << name;
  }
}

const std::string toy_task =
    "format = 'onset.task.1'\nname = 'toy'\nversion = '1'\nsummary = 's'\nkind = 'choice'\n"
    "[data]\nfile = 'toy.jsonl'\nsource = 'the toy set'\n"
    "[prompt]\ndescription = \"About toys.\\n\\n\"\nquestion = 'Q: {q}'\n"
    "[choice]\ntexts = '{c}'\ngold = '{g}'\nlabels = '{l}'\n[[metrics]]\nmeasure = 'acc'\n";
const std::string toy_rows =
    "{\"q\":\"one\",\"c\":[\"a\",\"b\"],\"l\":[\"A\",\"B\"],\"g\":\"B\"}\n"
    "\n{\"q\":\"two\",\"c\":[\"c\",\"d\"],\"l\":[\"A\",\"B\"],\"g\":\"A\"}\n"
    "{\"q\":\"three\",\"c\":[\"e\",\"f\"],\"l\":[\"A\",\"B\"],\"g\":\"B\"}\n";

class ToyItems : public ::testing::Test {
 protected:
  ToyItems() {
    static_cast<void>(folder_.write("toy.jsonl", toy_rows));
    options_.data = folder_.path();
  }
  [[nodiscard]] TaskItems make(const std::string& text = toy_task) const {
    return make_items(parse_task_file(text, "toy.toml").tasks.at(0), options_);
  }

  TemporaryFolder folder_;
  ItemOptions options_;
};

TEST_F(ToyItems, HoldContextChoicesAndTheRightOne) {
  const auto made = make();
  ASSERT_EQ(made.items.size(), 3U);
  const auto& item = made.items[1];
  EXPECT_EQ(item.context, "About toys.\n\nQ: two");
  ASSERT_EQ(item.choices.size(), 2U);
  EXPECT_EQ(item.choices[0].continuation, " c");
  EXPECT_EQ(item.choices[0].text, "c");
  EXPECT_EQ(item.gold, 0);
  EXPECT_EQ(item.target, "0");
  EXPECT_EQ(item.doc, 1);
  EXPECT_EQ(item.document.at("q"), "two");
}

TEST_F(ToyItems, ExamplesComeFromTheOtherDocuments) {
  options_.fewshot = 2;
  const auto made = make();
  EXPECT_EQ(made.fewshot, 2);
  const std::vector<std::string> shots{"Q: one b\n\n", "Q: two c\n\n", "Q: three f\n\n"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& context = made.items[i].context;
    const std::string question = std::vector<std::string>{"one", "two", "three"}[i];
    EXPECT_TRUE(context.ends_with("\n\nQ: " + question)) << context;
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(context.find(shots[j]) != std::string::npos, i != j) << i << " " << j;
    }
  }
}

TEST_F(ToyItems, LimitAndSampleKeepTheNumbersOfTheDocuments) {
  options_.limit = 2;
  EXPECT_EQ(make().items.size(), 2U);
  EXPECT_EQ(make().documents, 3);
  options_.limit.reset();
  options_.sample = 2;
  options_.seed = 0;  // Python: random.Random(0).sample(range(3), 2) is [1, 2]
  const auto made = make();
  ASSERT_EQ(made.items.size(), 2U);
  EXPECT_EQ(made.items[0].doc, 1);
  EXPECT_EQ(made.items[1].doc, 2);
}

TEST_F(ToyItems, AChatHasExamplesAsTurnsOrInOneMessage) {
  options_.chat = chat_format("chatml");
  options_.system = "Be brief.";
  options_.fewshot = 1;
  options_.limit = 1;
  const std::string rows =
      "\n[fewshot]\nrows = [{q = 'zero', c = ['x', 'y'], l = ['A', 'B'], g = 'B'}]\n";
  const auto turns = make(toy_task + rows).items.at(0);
  EXPECT_TRUE(turns.chat);
  EXPECT_EQ(turns.context,
            "<|im_start|>system\nBe brief.\n\nAbout toys.\n\n<|im_end|>\n"
            "<|im_start|>user\nQ: zero<|im_end|>\n<|im_start|>assistant\ny<|im_end|>\n"
            "<|im_start|>user\nQ: one<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(turns.choices.at(1).continuation, "b");
  // What messages say, and what the format writes around them.
  std::vector<std::string> said;
  for (const auto& span : turns.said) {
    said.push_back(turns.context.substr(span.start, span.end - span.start));
  }
  EXPECT_EQ(said,
            (std::vector<std::string>{"Be brief.\n\nAbout toys.\n\n", "Q: zero", "y", "Q: one"}));
  options_.fewshot_as_turns = false;
  EXPECT_EQ(make(toy_task + rows).items.at(0).context,
            "<|im_start|>system\nBe brief.\n\nAbout toys.\n\n<|im_end|>\n"
            "<|im_start|>user\nQ: zero y\n\nQ: one<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ToyItems, RowsThatDoNotMeetTheConditionAreNoDocuments) {
  const auto made = make(toy_task + "\n[where]\nfield = '{g}'\nequals = 'B'\n");
  EXPECT_EQ(made.documents, 2);
  EXPECT_EQ(made.items.at(1).doc, 1);
  EXPECT_EQ(made.items.at(1).document.at("q"), "three");
}

TEST_F(ToyItems, BrokenRowsAreNamedByFileAndLine) {
  const auto path = (folder_.path() / "toy.jsonl").string();
  const auto error = [&](const std::string& rows) {
    static_cast<void>(folder_.write("toy.jsonl", rows));
    return error_of([&] { return make(); });
  };
  EXPECT_EQ(error(toy_rows + "{\"q\":\"x\""), path + ":5: not valid JSON at byte 9");
  EXPECT_EQ(error("[1]\n"), path + ":1: should be an object, is array");
  EXPECT_EQ(error("{\"q\":\"x\",\"c\":[\"a\"],\"l\":[\"A\"],\"g\":\"C\"}"),
            path + ":1: the right answer \"C\" is none of A");
  EXPECT_EQ(error("{\"q\":\"x\",\"c\":[\"a\",\"b\",\"c\"],\"l\":[\"A\",\"B\"],\"g\":\"A\"}"),
            path + ":1: 2 labels for 3 choices");
  EXPECT_EQ(error("{\"q\":\"x\",\"c\":[\"a\"],\"l\":[\"A\"],\"g\":\"A\"}"),
            path + ":1: has one choice alone, which would always be right");
  EXPECT_EQ(error("{\"q\":\"\xff\"}"), path + ":1: not valid UTF-8 at byte 7");
  EXPECT_NE(error("{\"q\":\"\\ud800\"}").find("half of a surrogate pair"), std::string::npos);
  EXPECT_EQ(error("{\"q\":\"x\",\"l\":[\"A\"],\"g\":\"A\"}"),
            path + ":1: no field \"c\"\nit has q, l, g");
  EXPECT_EQ(error("\n\n"), path + ": holds no row");
}

TEST_F(ToyItems, AMissingDataSetSaysWhatGoesWhere) {
  options_.data = folder_.path() / "elsewhere";
  EXPECT_EQ(
      error_of([&] { return make(); }),
      "no data at " + (options_.data / "toy.jsonl").string() +
          "\nwanted is the toy set; put it at toy.jsonl in a folder, and name the folder with "
          "--data");
}

}  // namespace
}  // namespace onset
