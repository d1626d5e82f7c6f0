#include "onset/train/leaks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onset/eval/task_file.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::shared_fixture;
using testing::TemporaryFolder;

// A task of short and long questions, and one whose data are missing.
class Leaks : public ::testing::Test {
 protected:
  Leaks() {
    (void)folder_.write("asked.jsonl",
                        "{\"q\":\"Who?\"}\n"
                        "{\"q\":\"One two three, four\\n five six SEVEN eight nine?\"}\n"
                        "{\"q\":\"What is 2 + 2?\"}\n");
    for (const char* file : {"asked", "missing"}) {
      const std::string text = std::string("format = \"onset.task.1\"\nname = \"") + file +
                               "\"\nversion = \"1\"\nsummary = \"s\"\nkind = \"generation\"\n"
                               "[data]\nfile = \"" +
                               file +
                               ".jsonl\"\nsource = \"nowhere\"\n"
                               "[prompt]\nquestion = \"Q: {q}\\nA:\"\ntarget = \"{q}\"\n"
                               "[generation]\nstop = []\n[[metrics]]\nmeasure = \"exact_match\"\n";
      for (Task& task : parse_task_file(text, file).tasks) tasks_.push_back(std::move(task));
    }
  }

  // The items that a text leaks.
  [[nodiscard]] std::vector<std::int64_t> leaked(const OrderedJson& row) const {
    const LeakIndex index(tasks_, folder_.path());
    LeakReport report = index.report();
    index.check(row, report);
    EXPECT_EQ(report.leaking, report.items.empty() ? 0 : 1);
    std::vector<std::int64_t> items;
    for (const auto& item : report.items) items.push_back(item.item);
    return items;
  }

  TemporaryFolder folder_;
  std::vector<Task> tasks_;
};

using Items = std::vector<std::int64_t>;

TEST_F(Leaks, AQuestionIsFoundWhateverItsCaseAndWhiteSpace) {
  EXPECT_EQ(leaked({{"prompt", "  WHO?\n"}}), Items{0});
  EXPECT_EQ(leaked({{"prompt", "one two  three, four five\tsix seven eight nine?"}}), Items{1});
  EXPECT_EQ(leaked({{"prompt", "one two three four five six seven eight nine?"}}), Items{});
}

TEST_F(Leaks, ALongQuestionIsFoundInsideATextAShortOneIsNot) {
  EXPECT_EQ(leaked({{"text", "Answer: \"One two three, four five six seven eight nine?\" Think."}}),
            Items{1});
  EXPECT_EQ(leaked({{"text", "Who? I wonder who."}}), Items{});
  EXPECT_EQ(leaked({{"text", "One two three, four five six seven eight ten?"}}), Items{});
}

TEST_F(Leaks, ShortQuestionsThatDifferInASignDiffer) {
  EXPECT_EQ(leaked({{"prompt", "what is 2 + 2?"}}), Items{2});
  EXPECT_EQ(leaked({{"prompt", "what is 2 - 2?"}}), Items{});
}

TEST_F(Leaks, EveryTextOfARowIsLookedAt) {
  const OrderedJson row = OrderedJson::parse(
      R"({"n":3,"messages":[{"role":"user","content":"who?"},{"role":"assistant",
          "content":"What is 2 + 2?"}],"extra":{"again":["Who?"]}})");
  EXPECT_EQ(leaked(row), (Items{0, 2}));
}

TEST_F(Leaks, TheReportNamesWhatLeaksAndWhatWasNotCompared) {
  const LeakIndex index(tasks_, folder_.path());
  LeakReport report = index.report();
  index.check({{"prompt", "nothing"}}, report);
  EXPECT_EQ(report.text(),
            "None of 1 row holds an item of the 1 task that were compared. Not compared, since "
            "their data are not at hand: missing; task_data names the folder that has them.");
  index.check({{"prompt", "Who?"}}, report);
  index.check({{"prompt", "who?"}}, report);
  EXPECT_EQ(report.rows, 3);
  EXPECT_EQ(report.leaking, 2);
  ASSERT_EQ(report.items.size(), 1);
  EXPECT_EQ(report.items[0].task, "asked");
  EXPECT_EQ(report.items[0].row, 1);
  EXPECT_EQ(report.text(),
            "2 of 3 rows hold items of tasks that onset eval asks: 1 of 3 of asked. A model that "
            "is trained on them cannot be judged by them. Row 2 has \"Who?\". Not compared, since "
            "their data are not at hand: missing; task_data names the folder that has them.");
}

TEST(LeaksOfPublicData, ThePapersTrainingFileOfGsm8kIsItsTestSet) {
  const auto data = shared_fixture("../data");
  if (data.empty()) GTEST_SKIP() << "the data are not beside the repository";
  const LeakReport report = find_leaks(data / "gsm8k_cot_verl/test.jsonl", 0, data);
  EXPECT_EQ(report.rows, 1316);
  EXPECT_EQ(report.leaking, 1316);
  EXPECT_EQ(report.compared.at("gsm8k"), 1319);
  const LeakReport train = find_leaks(data / "gsm8k/train.jsonl", 0, data);
  EXPECT_EQ(train.rows, 7473);
  for (const LeakedItem& item : train.items) {
    ADD_FAILURE() << item.task << " " << item.item << " in row " << item.row << ": "
                  << item.question;
  }
}

}  // namespace
}  // namespace onset
