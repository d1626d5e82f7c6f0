// Tokens do not depend on what a request is batched with, in which order, in which chunks its
// prompt is computed, or what was kept of others. In float64, where the rounding of products cannot
// tip a draw.
#include <algorithm>

#include "generate/generator_support.h"

namespace onset::testing {
namespace {

class Batching : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::int64_t below(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_);
  }

  [[nodiscard]] std::shared_ptr<const MaskSpec> random_mask() {
    const ModelConfig& config = model_.config();
    MaskOptions options;
    options.criterion = static_cast<MaskCriterion>(below(5));
    options.placement = below(2) == 0 ? MaskPlacement::post_norm : MaskPlacement::pre_norm;
    options.tokens = static_cast<MaskTokens>(below(3));
    options.positions = {below(3), 3 + below(12)};
    options.massive_dims = {below(config.hidden), below(config.hidden)};
    options.massive_threshold = 0.5;
    options.k = 1 + below(config.hidden);
    options.from_layer = below(config.layer_count());
    options.official_compat = options.criterion == MaskCriterion::activation && below(2) == 0;
    return mask_of(model_, options);
  }

  // Prompts begin alike, so that there is something to share.
  [[nodiscard]] GenerationRequest random_request(const std::vector<Ids>& beginnings) {
    GenerationRequest request;
    request.ids = beginnings[static_cast<std::size_t>(below(3))];
    request.ids.resize(request.ids.size() - static_cast<std::size_t>(below(4)));
    for (std::int64_t i = below(6); i > 0; --i) {
      request.ids.push_back(3 + below(model_.config().vocabulary - 3));
    }
    request.max_new_tokens = 1 + below(14);
    request.samples = 1 + below(3);
    request.sampling.temperature = below(3) == 0 ? 0.0 : 1.5;
    if (below(3) == 0) request.sampling.top_k = 1 + below(40);
    if (below(3) == 0) request.sampling.top_p = 0.8;
    if (below(3) == 0) request.sampling.repetition_penalty = 1.3;
    if (below(3) == 0) request.sampling.presence_penalty = 0.7;
    request.sampling.seed = static_cast<std::uint64_t>(below(100));
    request.number = static_cast<std::uint64_t>(below(100));
    request.ignore_eos = below(2) == 0;
    request.prompt_logprobs = below(4) == 0;
    return request;
  }

  std::mt19937_64 random_{17};
  Model model_ = open_fixture(GetParam());
};

TEST_P(Batching, GivesTheTokensOfEachRequestAlone) {
  const bool maskable = !wemask_obstacle(model_.config()).has_value();
  for (int round = 0; round < 6; ++round) {
    std::vector<Ids> beginnings(3);
    for (auto& ids : beginnings) {
      for (int i = 0; i < 24; ++i) ids.push_back(3 + below(model_.config().vocabulary - 3));
    }
    beginnings[1] = beginnings[0];
    beginnings[1].back() = 5;
    std::vector<std::shared_ptr<const MaskSpec>> masks{nullptr, nullptr};
    if (maskable) masks = {nullptr, nullptr, random_mask(), random_mask()};
    std::vector<GenerationRequest> requests;
    for (int i = 0; i < 9; ++i) {
      requests.push_back(random_request(beginnings));
      requests.back().mask = masks[static_cast<std::size_t>(below(std::ssize(masks)))];
    }
    requests.push_back(requests.front());
    std::vector<std::vector<Completion>> expected;
    for (const auto& request : requests) expected.push_back(solo(model_, request));
    Generator generator(model_, nullptr,
                        {.max_rows = 2 + below(6),
                         .prefill_tokens = 5 + below(60),
                         .prefix_cache_bytes = below(3) == 0 ? 0 : 1 << (14 + below(8))});
    // Twice, the second time with what the first left in the prefix cache.
    for (int time = 0; time < 2; ++time) {
      const auto found = generate_all(generator, requests);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        ASSERT_EQ(found[i].size(), expected[i].size());
        for (std::size_t s = 0; s < found[i].size(); ++s) {
          const Completion& one = found[i][s];
          const Completion& alone = expected[i][s];
          EXPECT_EQ(ids_of(one), ids_of(alone))
              << "round " << round << ", request " << i << ", sample " << s;
          EXPECT_EQ(one.finish, alone.finish);
          EXPECT_EQ(one.error, "");
          ASSERT_EQ(one.prompt.size(), alone.prompt.size());
          for (std::size_t t = 1; t < one.prompt.size(); ++t) {
            EXPECT_NEAR(one.prompt[t].logprob, alone.prompt[t].logprob, 1e-6);
          }
          for (std::size_t t = 0; t < std::min(one.tokens.size(), alone.tokens.size()); ++t) {
            EXPECT_NEAR(one.tokens[t].logprob, alone.tokens[t].logprob, 1e-6);
            EXPECT_NEAR(one.tokens[t].sampled_logprob, alone.tokens[t].sampled_logprob, 1e-6);
          }
        }
      }
      std::reverse(requests.begin(), requests.end());
      std::reverse(expected.begin(), expected.end());
    }
    EXPECT_EQ(generator.counts().running, 0);
    EXPECT_EQ(generator.counts().waiting, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Batching,
                         ::testing::Values("llama_me", "mistral", "qwen3", "phi3", "phi3_long",
                                           "gemma2", "gemma3", "olmo2", "mixtral", "qwen2_moe",
                                           "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// In float32 the products of a larger batch round differently; tokens may differ where the two most
// likely ones are within 1e-4 alone.
TEST(BatchingInFloat32, DiffersOnlyWhereTheMarginIsSmall) {
  const Model model = open_fixture("llama_me", Compute::f32);
  std::mt19937_64 random(5);
  std::vector<GenerationRequest> requests(12);
  for (auto& request : requests) {
    for (std::size_t i = 3 + random() % 20; i > 0; --i) {
      request.ids.push_back(static_cast<std::int64_t>(3 + random() % 250));
    }
    request.max_new_tokens = 24;
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    request.logprobs = true;
    request.top_logprobs = 2;
  }
  Generator generator(model, nullptr, {.max_rows = 7, .prefill_tokens = 11});
  const auto found = generate_all(generator, requests);
  int compared = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto alone = solo(model, requests[i]).front();
    for (std::size_t t = 0; t < alone.tokens.size(); ++t) {
      const auto& top = alone.tokens[t].top;
      if (top[0].logprob - top[1].logprob < 1e-4) break;
      ASSERT_EQ(found[i][0].tokens[t].id, alone.tokens[t].id) << "request " << i << ", token " << t;
      EXPECT_NEAR(found[i][0].tokens[t].logprob, alone.tokens[t].logprob, 1e-4);
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace onset::testing
