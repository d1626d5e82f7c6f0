// A mask means the same tokens however a model is run: whole, in chunks, one token at a time with a
// cache, padded, or beside others in a batch. Random masks of every kind on families that differ in
// attention and FFN.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <random>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr Tolerance tolerance{.atol = 1e-4, .rtol = 1e-4};

class RandomMasks : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::int64_t below(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_);
  }

  [[nodiscard]] MaskOptions draw() {
    const ModelConfig& config = model_.config();
    MaskOptions options;
    options.criterion = static_cast<MaskCriterion>(below(5));  // all but `given`
    options.placement = below(2) == 0 ? MaskPlacement::post_norm : MaskPlacement::pre_norm;
    options.tokens = static_cast<MaskTokens>(below(3));
    options.positions = {below(3), 3 + below(4)};
    options.massive_dims = {below(config.hidden), below(config.hidden)};
    options.massive_threshold = 0.5;  // tiny random models: some tokens of them
    options.gamma = below(2) == 0 ? 1.0 : 0.5;
    options.k = 1 + below(config.hidden);
    options.from_layer = below(config.layer_count());
    options.to_layer = *options.from_layer + below(config.layer_count() - *options.from_layer);
    options.seed = static_cast<std::uint64_t>(below(1000));
    return options;
  }

  [[nodiscard]] std::vector<std::int64_t> ids(std::int64_t count) {
    std::vector<std::int64_t> result{1};
    while (static_cast<std::int64_t>(result.size()) < count) {
      result.push_back(3 + below(model_.config().vocabulary - 3));
    }
    return result;
  }

  [[nodiscard]] at::Tensor run(const std::vector<SequenceInput>& batch, const Hooks& hooks,
                               LogitRows rows = LogitRows::all) const {
    return model_.decoder().forward(batch, rows, &hooks).logits;
  }

  c10::InferenceMode inference_;
  std::mt19937_64 random_{7};
  Model model_ = Model::open(onset::testing::data(std::string("models/") + GetParam()),
                             {.compute = Compute::f32, .residency = Residency::resident});
};

TEST_P(RandomMasks, EveryWayOfRunningGivesTheSameLogits) {
  for (int round = 0; round < 24; ++round) {
    const MaskSpec spec = make_mask(model_, draw());
    Hooks hooks(model_.config().layer_count());
    add_mask(hooks, spec, model_);
    const auto text = ids(9);
    const auto other = ids(5);
    const at::Tensor whole = run({{.ids = text}}, hooks);
    const std::string what =
        str_cat(name_of(spec.criterion), ", ", name_of(spec.placement), ", ", name_of(spec.tokens),
                ", layers ", spec.from_layer, " to ", spec.to_layer, ", k ", spec.k);

    KvCache cache = model_.decoder().new_cache();
    std::vector<at::Tensor> parts;
    for (const std::size_t end : {4, 5, 6, 9}) {
      const auto begin = static_cast<std::size_t>(cache.length());
      parts.push_back(run({{.ids = {text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end)},
                            .cache = &cache,
                            .planned_length = 9}},
                          hooks));
    }
    EXPECT_TRUE(close(at::cat(parts, 0), whole, tolerance)) << "in chunks: " << what;

    const at::Tensor together = run({{.ids = other}, {.ids = text}}, hooks);
    EXPECT_TRUE(close(together.narrow(0, 5, 9), whole, tolerance)) << "packed: " << what;

    std::vector<std::int64_t> padded(4, 0);
    padded.insert(padded.end(), other.begin(), other.end());
    padded.insert(padded.end(), text.begin(), text.end());
    std::vector<std::int64_t> attended(18, 1);
    std::fill_n(attended.begin(), 4, 0);
    const auto rows = sequences_of_padded(padded, attended, 9);
    const at::Tensor last = run(rows, hooks, LogitRows::last);
    EXPECT_TRUE(close(last[1], whole[8], tolerance)) << "padded: " << what;
    EXPECT_TRUE(close(last[0], run({{.ids = other}}, hooks)[4], tolerance)) << "padded: " << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RandomMasks,
                         ::testing::Values("llama_me", "mistral", "qwen3", "phi3", "gemma2",
                                           "gemma3", "mixtral", "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace onset::testing
