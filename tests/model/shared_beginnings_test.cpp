// Sequences of a call that share a beginning are what each of them is alone and whole: behind an
// earlier sequence of the call, behind a cache that is only read, and behind a sequence that stands
// behind such a cache.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

const Ids beginning{1, 17, 45, 100, 3, 99, 120, 7, 64, 80, 33, 125};
const Ids left{12, 13, 14, 15, 16};
const Ids right{21, 22};
const Ids far_right{30, 31, 32};
constexpr Tolerance tolerance{.atol = 1e-10, .rtol = 1e-10};

Ids joined(const Ids& a, const Ids& b) {
  Ids ids = a;
  ids.insert(ids.end(), b.begin(), b.end());
  return ids;
}

class SharedBeginnings : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] at::Tensor logits(const std::vector<SequenceInput>& batch,
                                  const Hooks* hooks = nullptr) const {
    return model_.decoder().forward(batch, LogitRows::all, hooks).logits;
  }
  // The rows of `own` behind `before`, in a call of its own.
  [[nodiscard]] at::Tensor alone(const Ids& before, const Ids& own,
                                 const Hooks* hooks = nullptr) const {
    const auto count = static_cast<std::int64_t>(own.size());
    return logits({{.ids = joined(before, own)}}, hooks)
        .narrow(0, static_cast<std::int64_t>(before.size()), count);
  }
  void expect_shared_equals_alone(const Hooks* hooks) const {
    const at::Tensor behind_sequence = logits({{.ids = {5, 6}},
                                               {.ids = beginning},
                                               {.ids = left, .behind = 1},
                                               {.ids = right, .behind = 1},
                                               {.ids = far_right, .behind = 3}},
                                              hooks);
    EXPECT_TRUE(close(behind_sequence.narrow(0, 0, 2), alone({}, {5, 6}, hooks), tolerance));
    EXPECT_TRUE(close(behind_sequence.narrow(0, 2, 12), alone({}, beginning, hooks), tolerance));
    EXPECT_TRUE(close(behind_sequence.narrow(0, 14, 5), alone(beginning, left, hooks), tolerance));
    EXPECT_TRUE(close(behind_sequence.narrow(0, 19, 2), alone(beginning, right, hooks), tolerance));
    EXPECT_TRUE(close(behind_sequence.narrow(0, 21, 3),
                      alone(joined(beginning, right), far_right, hooks), tolerance));

    KvCache cache = model_.decoder().new_cache();
    static_cast<void>(logits({{.ids = beginning, .cache = &cache}}, hooks));
    const at::Tensor behind_cache = logits({{.ids = left, .prefix = &cache},
                                            {.ids = {9}},
                                            {.ids = right, .prefix = &cache},
                                            {.ids = far_right, .behind = 2}},
                                           hooks);
    EXPECT_TRUE(close(behind_cache.narrow(0, 0, 5), alone(beginning, left, hooks), tolerance));
    EXPECT_TRUE(close(behind_cache.narrow(0, 5, 1), alone({}, {9}, hooks), tolerance));
    EXPECT_TRUE(close(behind_cache.narrow(0, 6, 2), alone(beginning, right, hooks), tolerance));
    EXPECT_TRUE(close(behind_cache.narrow(0, 8, 3),
                      alone(joined(beginning, right), far_right, hooks), tolerance));
    EXPECT_EQ(cache.ids(), beginning);
  }

  c10::InferenceMode inference_;
  Model model_ = Model::open(onset::testing::data(std::string("models/") + GetParam()),
                             {.compute = Compute::f64, .residency = Residency::resident});
};

TEST_P(SharedBeginnings, AreWhatTheSequencesAreAlone) { expect_shared_equals_alone(nullptr); }

TEST_P(SharedBeginnings, UnderMasksTheFirstTokenOfTheWholeIsMasked) {
  if (std::string(GetParam()) == "olmo2") GTEST_SKIP() << "WeMask does not apply";
  for (const MaskTokens tokens : {MaskTokens::first, MaskTokens::positions}) {
    const MaskSpec spec =
        make_mask(model_, {.tokens = tokens,
                           .positions = tokens == MaskTokens::first ? Ids{} : Ids{3, 13},
                           .k = 8,
                           .from_layer = 1});
    const auto hooks = masking(spec, model_);
    expect_shared_equals_alone(hooks.get());
    // The mask is felt: else the comparison above says nothing of it.
    EXPECT_FALSE(close(alone(beginning, left, hooks.get()), alone(beginning, left), tolerance));
  }
}

TEST_P(SharedBeginnings, ScoresAndProbabilitiesAreThoseOfTheWhole) {
  const auto seen = [&](const std::vector<SequenceInput>& batch, std::int64_t sequence) {
    Hooks hooks(model_.config().layer_count());
    at::Tensor probs;
    hooks.observe(SiteSet::parse("layers.1.attn_probs", model_.config()),
                  [&](const SiteContext& context, const at::Tensor& tensor) {
                    if (context.sequence == sequence) probs = tensor;
                  });
    static_cast<void>(logits(batch, &hooks));
    return probs;
  };
  const at::Tensor whole = seen({{.ids = joined(beginning, left)}}, 0);
  const at::Tensor shared = seen({{.ids = beginning}, {.ids = left, .behind = 0}}, 1);
  EXPECT_TRUE(close(shared, whole.narrow(1, 12, 5), tolerance));
}

TEST_P(SharedBeginnings, OnlyEarlierSequencesWithoutACacheCanBeABeginning) {
  KvCache cache = model_.decoder().new_cache();
  EXPECT_THROW(static_cast<void>(logits({{.ids = left, .behind = 0}})), std::logic_error);
  EXPECT_THROW(static_cast<void>(logits({{.ids = left, .behind = 1}, {.ids = beginning}})),
               std::logic_error);
  EXPECT_THROW(
      static_cast<void>(logits({{.ids = beginning, .cache = &cache}, {.ids = left, .behind = 0}})),
      std::logic_error);
  EXPECT_THROW(static_cast<void>(logits({{.ids = left, .cache = &cache, .prefix = &cache}})),
               std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Families, SharedBeginnings,
                         ::testing::Values("llama", "llama_me", "mistral", "gemma2", "gemma3",
                                           "qwen3", "olmo2", "phi3", "phi3_long", "mixtral",
                                           "qwen2_moe", "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace onset::testing
