// Greedy continuations of the demonstration model against references computed with transformers
// (tests/data/smollm2/README.md, generation.json): without a mask, with one that decoding does not
// apply again, and as the paper's released code does, which masks every decoded token.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <optional>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

// Below this distance of the two best logits the order of sums decides.
constexpr double comparable_margin = 1e-3;
constexpr std::size_t new_tokens = 48;
// Of eight prompts: none of the references' margins is as small as that.
constexpr std::size_t every_token = 8 * new_tokens;

class MaskedGeneration : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path, {.residency = Residency::resident}));
    reference_ = OrderedJson::parse(read_file(onset::testing::data("smollm2/generation.json")));
    const OrderedJson& mask = reference_.at("mask");
    ASSERT_EQ(mask.at("criterion"), "weight");
    mask_ = make_mask(*model_, {.k = mask.at("k").get<std::int64_t>(),
                                .from_layer = mask.at("m").get<std::int64_t>()});
  }

  // All prompts at once, greedy, each with a cache: `count` tokens of each.
  [[nodiscard]] std::vector<Ids> greedy(const Hooks& hooks, std::size_t count) const {
    std::vector<SequenceInput> batch;
    const auto& prompts = reference_.at("prompts");
    std::vector<KvCache> caches(prompts.size(), model_->decoder().new_cache());
    for (const OrderedJson& prompt : prompts) {
      batch.push_back({.ids = prompt.at("ids").get<Ids>(), .cache = &caches[batch.size()]});
    }
    std::vector<Ids> result(prompts.size());
    for (std::size_t step = 0; step < count; ++step) {
      const at::Tensor next =
          model_->decoder().forward(batch, LogitRows::last, &hooks).logits.argmax(1);
      for (std::size_t p = 0; p < batch.size(); ++p) {
        batch[p].ids = {next[static_cast<std::int64_t>(p)].item<std::int64_t>()};
        result[p].push_back(batch[p].ids.front());
      }
    }
    return result;
  }

  // Of every prompt the tokens up to the first that the reference's margins leave open; how many
  // these are in all.
  std::size_t compare(const std::string& mode, const Hooks& hooks) const {
    std::size_t compared = 0;
    const auto found = greedy(hooks, new_tokens);
    for (std::size_t p = 0; p < found.size(); ++p) {
      const OrderedJson& expected = reference_.at("prompts").at(p).at(mode);
      const auto ids = expected.at("ids").get<Ids>();
      const auto margins = expected.at("logit_margin_top1_top2").get<std::vector<double>>();
      std::size_t count = 0;
      while (count < ids.size() && margins[count] > comparable_margin) ++count;
      const auto end = static_cast<std::ptrdiff_t>(count);
      EXPECT_EQ(Ids(found[p].begin(), found[p].begin() + end), Ids(ids.begin(), ids.begin() + end))
          << mode << ", " << reference_.at("prompts").at(p).at("name");
      compared += count;
    }
    return compared;
  }
  [[nodiscard]] Hooks masked(const MaskSpec& spec) const {
    Hooks hooks(model_->config().layer_count());
    add_mask(hooks, spec, *model_);
    return hooks;
  }

  c10::InferenceMode inference_;
  std::optional<Model> model_;
  OrderedJson reference_;
  MaskSpec mask_;
};

TEST_F(MaskedGeneration, WithoutAMaskItIsTheReferences) {
  EXPECT_EQ(compare("none", Hooks(model_->config().layer_count())), every_token);
}

TEST_F(MaskedGeneration, TheMaskIsOnTheFirstTokenAloneWhileDecoding) {
  EXPECT_EQ(compare("wemask", masked(mask_)), every_token);
}

TEST_F(MaskedGeneration, OfficialCompatMasksEveryChunkAndDiffersWhereItShould) {
  MaskSpec every = mask_;
  every.official_compat = true;  // the reference's dims are those of the weight
  EXPECT_EQ(compare("wemask_every_chunk", masked(every)), every_token);
  // The two part within a few tokens; the first comes from the prefill, where they are the same.
  const auto right = greedy(masked(mask_), 8);
  const auto official = greedy(masked(every), 8);
  for (std::size_t p = 0; p < right.size(); ++p) {
    EXPECT_EQ(right[p].front(), official[p].front()) << "prompt " << p;
    EXPECT_NE(right[p], official[p]) << "prompt " << p;
  }
}

}  // namespace
}  // namespace onset::testing
