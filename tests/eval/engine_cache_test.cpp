// What was answered is on disk by content: a run that was killed goes on, and equals one that was
// not, to the bit; other masks, models and items never meet.
#include <fstream>

#include "eval/eval_support.h"
#include "onset/base/file.h"
#include "onset/eval/model_identity.h"
#include "onset/eval/result_cache.h"

namespace onset::testing {
namespace {

void expect_same(const std::vector<ItemAnswer>& found, const std::vector<ItemAnswer>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].loglik, expected[i].loglik) << i;
    EXPECT_EQ(found[i].greedy, expected[i].greedy) << i;
    EXPECT_EQ(found[i].text, expected[i].text) << i;
    EXPECT_EQ(found[i].new_tokens, expected[i].new_tokens) << i;
    EXPECT_EQ(found[i].truncated, expected[i].truncated) << i;
    EXPECT_EQ(found[i].nll_per_window, expected[i].nll_per_window) << i;
  }
}

std::filesystem::path only_file(const std::filesystem::path& folder) {
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_TRUE(file.empty());
    file = entry.path();
  }
  return file;
}

class EngineCache : public ::testing::Test {
 protected:
  [[nodiscard]] EvalResult run(const EvalOptions& options) const {
    return answer_items(small_.model(), small_.tokenizer(), items_, options);
  }

  SmallModel small_;
  TemporaryFolder folder_;
  std::vector<EvalItem> items_ = [] {
    std::vector<EvalItem> items = choice_items();
    for (EvalItem& item : generation_items(3)) items.push_back(std::move(item));
    items.push_back({.kind = ItemKind::text, .context = "the quick brown fox and the dog"});
    return items;
  }();
};

TEST_F(EngineCache, ASecondRunFindsAllAndAnotherMaskNothing) {
  const EvalOptions options{.batch_tokens = 60,
                            .windows = {.window = 8},
                            .generation_rows = 1,
                            .cache = folder_.path() / "deep" / "cache"};
  const EvalResult fresh = run(options);
  EXPECT_EQ(fresh.counts.answered, static_cast<std::int64_t>(items_.size()));
  const EvalResult again = run(options);
  EXPECT_EQ(again.counts.reused, static_cast<std::int64_t>(items_.size()));
  EXPECT_EQ(again.counts.answered, 0);
  EXPECT_EQ(again.counts.computed_tokens, 0);
  expect_same(again.answers, fresh.answers);

  EvalOptions masked = options;
  masked.mask = small_mask(small_);
  EXPECT_EQ(run(masked).counts.reused, 0);
  EXPECT_EQ(run(options).counts.answered, 0);
  EvalOptions windows = options;
  windows.windows.window = 9;
  EXPECT_EQ(run(windows).counts.answered, 1);
  EvalOptions warm = options;
  warm.sampling.temperature = 0.5;
  EXPECT_EQ(run(warm).counts.answered, 3);
  warm.sampling.seed = 1;
  EXPECT_EQ(run(warm).counts.answered, 3);
}

TEST_F(EngineCache, MoreItemsComputeWhatIsNew) {
  const EvalOptions options{.windows = {.window = 8}, .cache = folder_.path() / "cache"};
  const auto all = items_;
  items_.resize(5);
  static_cast<void>(run(options));
  items_ = all;
  const EvalResult more = run(options);
  EXPECT_EQ(more.counts.reused, 5);
  const EvalResult plain = run({.windows = {.window = 8}});
  for (std::size_t i = 0; i < items_.size(); ++i) {
    for (std::size_t c = 0; c < plain.answers[i].loglik.size(); ++c) {
      EXPECT_NEAR(more.answers[i].loglik[c], plain.answers[i].loglik[c], 1e-4);
    }
    EXPECT_EQ(more.answers[i].text, plain.answers[i].text);
  }
}

// What kill -9 leaves is the file up to some byte.
TEST_F(EngineCache, AFileCutAtAnyByteIsGoneOnWith) {
  const EvalOptions options{.batch_tokens = 60,
                            .windows = {.window = 8},
                            .generation_rows = 1,
                            .cache = folder_.path() / "cache"};
  const EvalResult whole = run(options);
  const std::filesystem::path file = only_file(options.cache);
  const std::string content = read_file(file);
  ASSERT_GT(std::count(content.begin(), content.end(), '\n'), 6);
  std::int64_t last_reused = 0;
  // Every byte of the beginning and the end, and steps between.
  for (std::size_t size = 0; size <= content.size();
       size += size < 20 || size + 60 > content.size() ? 1 : 61) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(size));
    const EvalResult resumed = run(options);
    expect_same(resumed.answers, whole.answers);
    EXPECT_GE(resumed.counts.reused, last_reused) << size;
    last_reused = resumed.counts.reused;
    EXPECT_EQ(run(options).counts.answered, 0) << size;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(last_reused, static_cast<std::int64_t>(items_.size()));
}

TEST_F(EngineCache, LinesOfOthersArePassedOverAndSaid) {
  const EvalOptions options{.windows = {.window = 8}, .cache = folder_.path() / "cache"};
  const EvalResult whole = run(options);
  std::ofstream file(only_file(options.cache), std::ios::binary | std::ios::app);
  file << "{\"answers\":[[\"torn\n"
       << "garbage\n"
       << std::string(4, '\0') << "\xff\n";
  file.close();
  std::vector<std::string> warnings;
  const EvalResult again = answer_items(
      small_.model(), small_.tokenizer(), items_, options,
      {.warn = [&](const std::string& text) { warnings.push_back(text); }, .progress = {}});
  expect_same(again.answers, whole.answers);
  EXPECT_EQ(again.counts.answered, 0);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(": 2 lines of the kept answers are no line"), std::string::npos)
      << warnings[0];
}

TEST_F(EngineCache, IdentityIsThatOfTheContent) {
  const std::string identity = model_identity(small_.model());
  EXPECT_EQ(identity.size(), 32U);
  TemporaryFolder copy;
  std::filesystem::copy(small_.folder(), copy.path() / "model",
                        std::filesystem::copy_options::recursive);
  const auto identity_of_copy = [&] { return model_identity(Model::open(copy.path() / "model")); };
  EXPECT_EQ(identity_of_copy(), identity);
  const auto weights = copy.path() / "model" / "model.safetensors";
  std::string bytes = read_file(weights);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_file_atomically(weights, bytes);
  EXPECT_NE(identity_of_copy(), identity);
}

TEST(ResultCacheFile, LinesThatAreNotOursAreLeftAlone) {
  TemporaryFolder folder;
  const auto open = [&](int rank) {
    return std::make_unique<ResultCache>(folder.path(), "scope", OrderedJson{{"model", "m"}}, rank);
  };
  open(0)->put({{"a", 1.5}, {"b", Json::array({-0.1, true})}});
  open(1)->put({{"c", "text\nwith lines"}});
  std::ofstream(folder.path() / "answers-scope.0.jsonl", std::ios::app)
      << "[1]\n{\"answers\":3}\n{\"answers\":[[1,2],[\"d\"]]}\n\xff\xfe\n{\"answers\":[[\"e\",1]";
  const auto cache = open(0);
  ASSERT_NE(cache->find("a"), nullptr);
  EXPECT_EQ(*cache->find("a"), 1.5);
  EXPECT_EQ(cache->find("b")->at(0), -0.1);
  EXPECT_EQ(*cache->find("c"), "text\nwith lines");
  EXPECT_EQ(cache->find("d"), nullptr);
  EXPECT_EQ(cache->find("e"), nullptr);
  cache->put({{"f", 2}});
  EXPECT_EQ(cache->at("f"), 2);
  EXPECT_THROW(static_cast<void>(cache->at("e")), std::logic_error);
  EXPECT_NE(open(2)->find("f"), nullptr);
  EXPECT_EQ(ResultCache(folder.path(), "other", {}).find("a"), nullptr);
}

TEST(ResultCacheFile, AFolderThatCannotBeIsNamed) {
  TemporaryFolder folder;
  const auto file = folder.write("file", "x");
  const std::string message = error_of([&] { const ResultCache cache(file / "sub", "scope", {}); });
  EXPECT_NE(message.find((file / "sub").string()), std::string::npos) << message;
}

}  // namespace
}  // namespace onset::testing
