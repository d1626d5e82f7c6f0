// Rows against what TRL makes of them with SmolLM2's tokenizer (tests/data/train/README.md).
#include <algorithm>

#include "onset/train/dpo_data.h"
#include "onset/train/grpo_data.h"
#include "onset/train/sft_data.h"
#include "train/data_support.h"

namespace onset::testing {
namespace {

class TrlRows : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
    options_.tokenizer = &tokenizer();
    options_.chat = chat_format_of(tokenizer());
  }

  static const Tokenizer& tokenizer() {
    static const Tokenizer opened = Tokenizer::open(demo_model());
    return opened;
  }
  static std::vector<OrderedJson> rows_of(const std::string& kind) {
    std::vector<OrderedJson> rows;
    for (auto& row : read_jsonl(data("train/trl_rows.jsonl"))) {
      if (row["kind"] == kind) rows.push_back(std::move(row));
    }
    EXPECT_FALSE(rows.empty());
    return rows;
  }
  [[nodiscard]] std::filesystem::path file_of(const OrderedJson& row) const {
    return folder_.write("row.jsonl", row.dump() + "\n");
  }
  [[nodiscard]] SftData read_sft(const OrderedJson& row, bool assistant_only_loss) const {
    SftDataOptions options;
    options.data = options_;
    options.assistant_only_loss = assistant_only_loss;
    return read_sft_data(file_of(row), options);
  }

  TemporaryFolder folder_;
  DataOptions options_;
};

TEST_F(TrlRows, SftTrainsTheCompletion) {
  for (const auto& row : rows_of("sft")) {
    const auto read = read_sft(row["row"], /*assistant_only_loss=*/false);
    ASSERT_EQ(read.examples.size(), 1U);
    EXPECT_EQ(read.examples[0].ids, row["input_ids"].get<TokenIds>()) << row.dump();
    auto mask = row["completion_mask"].get<std::vector<std::uint8_t>>();
    mask.front() = 0;  // has nothing before it
    EXPECT_EQ(read.examples[0].trained, mask) << row.dump();
    EXPECT_EQ(read.report.joined, row["joined"].get<bool>() ? 1 : 0) << row.dump();
  }
}

TEST_F(TrlRows, DpoSplitsPromptAndCompletions) {
  for (const auto& row : rows_of("dpo")) {
    DpoDataOptions options;
    options.data = options_;
    const auto read = read_dpo_data(file_of(row["row"]), options);
    ASSERT_EQ(read.pairs.size(), 1U);
    EXPECT_EQ(read.pairs[0].prompt, row["prompt_ids"].get<TokenIds>()) << row.dump();
    EXPECT_EQ(read.pairs[0].chosen, row["chosen_ids"].get<TokenIds>()) << row.dump();
    EXPECT_EQ(read.pairs[0].rejected, row["rejected_ids"].get<TokenIds>()) << row.dump();
    EXPECT_EQ(read.report.joined, row["joined"].get<bool>() ? 1 : 0) << row.dump();
  }
}

TEST_F(TrlRows, GrpoPromptsEndWhereTheAssistantBegins) {
  for (const auto& row : rows_of("grpo")) {
    GrpoDataOptions options;
    options.data = options_;
    const auto read = read_grpo_data(file_of(row["row"]), options);
    ASSERT_EQ(read.prompts.size(), 1U);
    EXPECT_EQ(read.prompts[0].prompt, row["prompt_ids"].get<TokenIds>()) << row.dump();
    EXPECT_EQ(read.prompts[0].record, row["row"]);
  }
}

// Row 25 of the faults that users met, against spans found by prefix differences in Python.
TEST_F(TrlRows, ConversationsTrainTheAssistantsWordsAndTheirEnd) {
  int compared = 0;
  for (const auto& row : read_jsonl(data("tokenizers/smollm2.chat_training.jsonl"))) {
    const auto mask = row["mask"].get<std::vector<std::uint8_t>>();
    if (std::find(mask.begin(), mask.end(), 1) == mask.end()) continue;
    // Python took these strings in messages as tokens; here they are text.
    if (row["messages"].dump().find("<|im_") != std::string::npos) continue;
    const auto read =
        read_sft(OrderedJson{{"messages", row["messages"]}}, /*assistant_only_loss=*/true);
    ASSERT_EQ(read.examples.size(), 1U);
    EXPECT_EQ(read.examples[0].ids, row["ids"].get<TokenIds>()) << row.dump();
    EXPECT_EQ(read.examples[0].trained, mask) << row.dump();
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace onset::testing
