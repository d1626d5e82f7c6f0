// The engine beside lm-evaluation-harness 0.4.13 with transformers in float32 on the same documents
// of the demonstration model (shared/fixtures/smollm2/eval_*.jsonl): token ids and numbers, every
// log-likelihood, every choice. The texts are written here as the references' task files say.
#include <gtest/gtest.h>

#include <algorithm>

#include "onset/eval/encoding.h"
#include "onset/eval/engine.h"
#include "onset/model/model.h"
#include "onset/tokenizer/tokenizer.h"
#include "support/support.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

struct EvalTask {
  const char* name;     // of the reference
  const char* data;     // its documents
  const char* subject;  // of MMLU, as the prompt says it
  const char* shots;    // the file of its examples; none: 0-shot
  // Documents in which the reference's tokenizer splits digits behind several spaces otherwise.
  std::vector<std::int64_t> split_otherwise = {};
};

std::ostream& operator<<(std::ostream& out, const EvalTask& task) { return out << task.name; }

std::size_t best_of(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::string mmlu_text(const OrderedJson& row) {
  std::string text = row.at("question").get<std::string>();
  text.erase(0, text.find_first_not_of(" \n"));
  text.erase(text.find_last_not_of(" \n") + 1);
  for (std::size_t c = 0; c < 4; ++c) {
    text += std::string("\n") + "ABCD"[c] + ". " + row.at("choices")[c].get<std::string>();
  }
  return text + "\nAnswer:";
}

class EvalFixtures : public ::testing::TestWithParam<EvalTask> {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
    const auto file = shared_fixture(std::string("smollm2/eval_") + GetParam().name + ".jsonl");
    if (file.empty()) GTEST_SKIP() << "shared/fixtures is not beside the checkout";
    expected_ = read_jsonl(file);
    model_.emplace(Model::open(demo_model(), {.residency = Residency::resident}));
    tokenizer_.emplace(Tokenizer::open(demo_model()));
    std::string before;
    if (GetParam().shots != nullptr) {
      for (const auto& row : documents(GetParam().shots)) {
        const auto answer = row.at("answer").get<std::size_t>();
        before += mmlu_text(row) + " " + "ABCD"[answer] + "\n\n";
      }
    }
    for (const auto& row : documents(GetParam().data)) {
      if (items_.size() < expected_.size()) items_.push_back(item_of(row, before));
    }
  }

  [[nodiscard]] static std::vector<OrderedJson> documents(const std::string& name) {
    return read_jsonl(shared_fixture("smollm2/lm_eval_tasks/data/" + name));
  }

  [[nodiscard]] EvalItem item_of(const OrderedJson& row, const std::string& examples) const {
    EvalItem item{.doc = static_cast<std::int64_t>(items_.size())};
    std::vector<std::string> texts{"A", "B", "C", "D"};
    if (GetParam().subject != nullptr) {
      item.context =
          std::string("The following are multiple choice questions (with answers) about ") +
          GetParam().subject + ".\n\n" + examples + mmlu_text(row);
    } else if (row.contains("goal")) {
      item.context = "Question: " + row.at("goal").get<std::string>() + "\nAnswer:";
      texts = {row.at("sol1").get<std::string>(), row.at("sol2").get<std::string>()};
    } else {
      item.context = "Question: " + row.at("question").get<std::string>() + "\nAnswer:";
      texts = row.at("choices").at("text").get<std::vector<std::string>>();
    }
    for (const std::string& text : texts) {
      item.choices.push_back({.continuation = " " + text, .text = text});
    }
    return item;
  }

  [[nodiscard]] static bool split_otherwise(std::size_t doc) {
    const auto& docs = GetParam().split_otherwise;
    return std::count(docs.begin(), docs.end(), static_cast<std::int64_t>(doc)) > 0;
  }

  void expect_the_references(const std::vector<ItemAnswer>& answers) const {
    ASSERT_EQ(answers.size(), expected_.size());
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (split_otherwise(i)) continue;
      const ItemAnswer& found = answers[i];
      const auto loglik = expected_[i].at("loglik").get<std::vector<double>>();
      EXPECT_EQ(found.context_tokens, expected_[i].at("context_tokens").get<std::int64_t>()) << i;
      EXPECT_EQ(found.choice_tokens, expected_[i].at("choice_tokens").get<Ids>()) << i;
      EXPECT_EQ(found.greedy, expected_[i].at("is_greedy").get<std::vector<bool>>()) << i;
      ASSERT_EQ(found.loglik.size(), loglik.size());
      std::vector<double> normed;
      for (std::size_t c = 0; c < loglik.size(); ++c) {
        EXPECT_NEAR(found.loglik[c], loglik[c], 1e-3) << i << " choice " << c;
        normed.push_back(found.loglik[c] / expected_[i].at("choice_chars")[c].get<double>());
      }
      EXPECT_EQ(best_of(found.loglik), expected_[i].at("chosen").get<std::size_t>()) << i;
      EXPECT_EQ(best_of(normed), expected_[i].at("chosen_norm").get<std::size_t>()) << i;
    }
  }

  std::vector<OrderedJson> expected_;
  std::vector<EvalItem> items_;
  std::optional<Model> model_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(EvalFixtures, ContextsAndChoicesHaveTheIdsOfTheReference) {
  const ItemEncoder encoder(*tokenizer_, std::nullopt);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (!expected_[i].contains("context_ids") || split_otherwise(i)) continue;
    EXPECT_EQ(items_[i].context, expected_[i].at("context").get<std::string>());
    const auto pairs = encoder.pairs(items_[i]);
    ASSERT_EQ(pairs.size(), expected_[i].at("choice_ids").size());
    for (std::size_t c = 0; c < pairs.size(); ++c) {
      EXPECT_EQ(pairs[c].context, expected_[i].at("context_ids").get<Ids>()) << i;
      EXPECT_EQ(pairs[c].continuation, expected_[i].at("choice_ids")[c].get<Ids>()) << i;
      ++compared;
    }
  }
  EXPECT_GE(compared, 8U);
}

TEST_P(EvalFixtures, LogLikelihoodsAndChoicesAreThose) {
  expect_the_references(answer_items(*model_, *tokenizer_, items_).answers);
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, EvalFixtures,
    ::testing::Values(
        EvalTask{"arc_challenge", "arc_challenge_test.jsonl", nullptr, nullptr},
        EvalTask{"piqa", "piqa_valid_500.jsonl", nullptr, nullptr, {139, 142}},
        EvalTask{"mmlu_abstract_algebra_0shot", "mmlu_abstract_algebra_test_50.jsonl",
                 "abstract algebra", nullptr},
        EvalTask{"mmlu_anatomy_0shot", "mmlu_anatomy_test_50.jsonl", "anatomy", nullptr},
        EvalTask{"mmlu_anatomy_5shot", "mmlu_anatomy_test_50.jsonl", "anatomy",
                 "mmlu_anatomy_dev.jsonl"},
        EvalTask{"mmlu_high_school_us_history_0shot", "mmlu_high_school_us_history_test_50.jsonl",
                 "high school us history", nullptr},
        EvalTask{"mmlu_philosophy_0shot", "mmlu_philosophy_test_50.jsonl", "philosophy", nullptr}),
    [](const auto& task) { return std::string(task.param.name); });

}  // namespace
}  // namespace onset::testing
