// Masked runs against references computed with transformers (tests/data/models/README.md): k = 4
// dims from layer 1 on, at the first token.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

constexpr Tolerance logit_tolerance{.atol = 1e-4, .rtol = 1e-4};

class MaskedModel : public ::testing::TestWithParam<OnDevice<const char*>> {
 protected:
  [[nodiscard]] MaskSpec mask(MaskPlacement placement) const {
    return make_mask(model_, {.placement = placement, .k = 4, .from_layer = 1});
  }
  [[nodiscard]] Hooks hooks(const MaskSpec& spec) const {
    Hooks result(model_.config().layer_count());
    add_mask(result, spec, model_);
    return result;
  }
  [[nodiscard]] at::Tensor logits(const std::vector<std::int64_t>& ids, const Hooks& hooks,
                                  KvCache* cache = nullptr, LogitRows rows = LogitRows::all) const {
    const std::vector<SequenceInput> batch{{.ids = ids, .cache = cache}};
    return model_.decoder().forward(batch, rows, &hooks).logits.cpu();
  }

  c10::InferenceMode inference_;
  std::filesystem::path folder_ = onset::testing::data(std::string("models/") + GetParam().value);
  ReferenceTensors reference_{folder_ / "reference.safetensors"};
  Model model_ = Model::open(folder_, {.device = GetParam().device});
};

TEST_P(MaskedModel, TheDimsAreThoseOfTheReferenceInItsOrder) {
  const at::Tensor expected = reference_.get("wemask.dims");
  const MaskSpec spec = mask(MaskPlacement::post_norm);
  ASSERT_EQ(static_cast<std::int64_t>(spec.dims.size()), expected.size(0));
  for (const auto& [layer, dims] : spec.dims) {
    EXPECT_TRUE(at::equal(at::tensor(dims, at::kLong), expected[layer - 1])) << "layer " << layer;
  }
}

TEST_P(MaskedModel, LogitsEqualTheReference) {
  const auto ids = reference_.ids("input_ids.b");
  EXPECT_TRUE(close(logits(ids, hooks(mask(MaskPlacement::post_norm))),
                    reference_.get("logits.wemask_post.b"), logit_tolerance));
  EXPECT_TRUE(close(logits(ids, hooks(mask(MaskPlacement::pre_norm))),
                    reference_.get("logits.wemask_pre.b"), logit_tolerance));
}

TEST_P(MaskedModel, GreedyDecodingWithACacheEqualsTheReference) {
  const Hooks masked = hooks(mask(MaskPlacement::post_norm));
  KvCache cache = model_.decoder().new_cache();
  std::vector<std::int64_t> next = reference_.ids("input_ids.b");
  const auto expected = reference_.ids("wemask.greedy.tokens.b");
  const at::Tensor steps = reference_.get("wemask.greedy.logits.b");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor step = logits(next, masked, &cache, LogitRows::last);
    EXPECT_TRUE(close(step[0], steps[static_cast<std::int64_t>(i)], logit_tolerance)) << i;
    next = {step[0].argmax().item<std::int64_t>()};
    EXPECT_EQ(next.front(), expected[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, MaskedModel,
                         ::testing::ValuesIn(on_all_devices<const char*>(
                             {"llama", "llama3", "mistral", "qwen2", "qwen3", "llama_me",
                              "qwen3_me", "mistral_me", "phi3", "phi3_long", "gemma2", "gemma3",
                              "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2",
                              "deepseek_v2_lite", "deepseek_v3"})),
                         [](const auto& parameter) {
                           return std::string(parameter.param.value) +
                                  suffix_of(parameter.param.device);
                         });

}  // namespace
}  // namespace onset::testing
