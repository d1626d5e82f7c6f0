// The attention that one key gets, measured block by block, against the pass's own probabilities.
#include "onset/massive/sink_meter.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "onset/model/decoder.h"
#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

std::vector<SequenceInput> random_batch(const ModelConfig& config,
                                        const std::vector<std::int64_t>& lengths) {
  std::mt19937_64 random(7);
  std::vector<SequenceInput> batch;
  for (const std::int64_t length : lengths) {
    SequenceInput& input = batch.emplace_back();
    for (std::int64_t i = 0; i < length; ++i) {
      input.ids.push_back(static_cast<std::int64_t>(random() % 200) % config.vocabulary);
    }
  }
  return batch;
}

std::vector<SequenceSinks> measure(const Model& model, std::span<const SequenceInput> batch,
                                   const SinkOptions& options, Hooks hooks) {
  const c10::InferenceMode inference;
  SinkMeter meter(model.config(), options);
  meter.observe(hooks);
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  return meter.sequences();
}

std::vector<SequenceSinks> measure(const Model& model, std::span<const SequenceInput> batch,
                                   const SinkOptions& options) {
  return measure(model, batch, options, Hooks(model.config().layer_count()));
}

void expect_equal(const std::vector<double>& found, const std::vector<double>& expected,
                  double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << what << " " << i;
    } else {
      EXPECT_NEAR(found[i], expected[i], tolerance) << what << " " << i;
    }
  }
}

void expect_equal(const std::vector<SequenceSinks>& found,
                  const std::vector<SequenceSinks>& expected, double tolerance = 2e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t s = 0; s < found.size(); ++s) {
    ASSERT_EQ(found[s].layers.size(), expected[s].layers.size());
    for (std::size_t l = 0; l < found[s].layers.size(); ++l) {
      const LayerSinks& a = found[s].layers[l];
      const LayerSinks& b = expected[s].layers[l];
      const std::string where = "sequence " + std::to_string(s) + " layer " + std::to_string(l);
      EXPECT_EQ(a.queries, b.queries) << where;
      EXPECT_EQ(a.unseen, b.unseen) << where;
      expect_equal(a.alpha, b.alpha, tolerance, where + " alpha");
      expect_equal(a.alpha_incl_self, b.alpha_incl_self, tolerance, where + " incl self");
      expect_equal(a.score, b.score, 10 * tolerance, where + " score");
      expect_equal(a.key_mass, b.key_mass, tolerance, where + " key mass");
    }
  }
}

// From the captured probabilities of a pass, by the definition: loops over queries.
std::vector<SequenceSinks> by_definition(const Model& model, std::span<const SequenceInput> batch,
                                         std::int64_t key) {
  const c10::InferenceMode inference;
  const ModelConfig& config = model.config();
  std::vector<SequenceSinks> result(batch.size());
  for (auto& sequence : result) {
    sequence.layers.resize(static_cast<std::size_t>(config.layer_count()));
  }
  SiteSet sites(config.layer_count());
  sites.add_all_layers(SiteKind::attn_scores);
  sites.add_all_layers(SiteKind::attn_probs);
  Hooks hooks(config.layer_count());
  at::Tensor scores;
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    if (context.site.kind == SiteKind::attn_scores) {
      scores = tensor.to(at::kDouble);
      return;
    }
    const at::Tensor probs = tensor.to(at::kDouble);
    const auto layer = static_cast<std::size_t>(context.site.layer);
    const std::int64_t window = config.layers[layer].sliding_window;
    const std::int64_t length = probs.size(1);
    LayerSinks& sinks = result[static_cast<std::size_t>(context.sequence)].layers[layer];
    for (std::int64_t i = key + 1; i < length; ++i) {
      ++(window > 0 && key <= i - window ? sinks.unseen : sinks.queries);
    }
    const auto seen = static_cast<double>(sinks.queries);
    for (std::int64_t h = 0; h < probs.size(0); ++h) {
      double sum = 0;
      double score_sum = 0;
      for (std::int64_t i = key + 1; i < length; ++i) {
        if (window > 0 && key <= i - window) continue;
        sum += probs[h][i][key].item<double>();
        score_sum += scores[h][i][key].item<double>();
      }
      const bool has_self = key < length;
      const double self = has_self ? probs[h][key][key].item<double>() : 0;
      sinks.alpha.push_back(sum / seen);
      sinks.score.push_back(score_sum / seen);
      sinks.alpha_incl_self.push_back((sum + self) / (seen + (has_self ? 1 : 0)));
    }
    for (std::int64_t j = 0; j < length / 2; ++j) {
      sinks.key_mass.push_back(
          probs.narrow(1, length / 2, length - length / 2).select(2, j).mean().item<double>());
    }
  });
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  return result;
}

class RouteTest : public ::testing::TestWithParam<const char*> {};

// GQA in the dense ones, latent attention in deepseek; gemma2 has soft caps and, as mistral and
// gemma3, sliding windows of 8.
TEST_P(RouteTest, BlocksTheExplicitSoftmaxAndTheDefinitionAgree) {
  const Model model = Model::open(onset::testing::data(std::string("models/") + GetParam()));
  const auto batch = random_batch(model.config(), {24, 1, 5, 40});
  for (const std::int64_t key : {0, 3, 30}) {
    const auto expected = by_definition(model, batch, key);
    expect_equal(measure(model, batch, {.key = key}), expected);
    expect_equal(measure(model, batch, {.key = key, .route = SinkRoute::explicit_softmax}),
                 expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RouteTest,
                         ::testing::Values("llama", "mistral", "gemma2", "gemma3", "qwen3", "olmo2",
                                           "phi3", "llama_me", "mixtral", "qwen3_moe",
                                           "deepseek_v2", "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

Hooks with_equal_scores(const ModelConfig& config) {
  Hooks hooks(config.layer_count());
  SiteSet queries(config.layer_count());
  queries.add_all_layers(SiteKind::q);
  hooks.intervene(queries, [](const SiteContext&, const at::Tensor& q) { return q.mul(0); });
  return hooks;
}

// Uniform causal attention over 3 tokens: (1/2 + 1/3) / 2 over queries i > 0, and
// (1 + 1/2 + 1/3) / 3 with the query itself.
TEST(SinkMeter, UniformAttentionOfThreeTokensIsKnownByFormula) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const auto batch = random_batch(model.config(), {3});
  const auto sinks = measure(model, batch, {}, with_equal_scores(model.config()));
  for (const LayerSinks& layer : sinks.front().layers) {
    EXPECT_EQ(layer.queries, 2);
    EXPECT_EQ(layer.unseen, 0);
    for (const double alpha : layer.alpha) EXPECT_NEAR(alpha, 5.0 / 12, 1e-6);
    for (const double alpha : layer.alpha_incl_self) EXPECT_NEAR(alpha, 11.0 / 18, 1e-6);
    for (const double score : layer.score) EXPECT_EQ(score, 0.0);
  }
  // 5/12 is above .3 and .4, not above .42.
  EXPECT_EQ(summarise(sinks, 0.3).sink_rate, 1.0);
  EXPECT_EQ(summarise(sinks, 0.42).sink_rate, 0.0);
  EXPECT_EQ(summarise(sinks, 0.42).sink_rate_incl_self, 1.0);
}

// With uniform attention in a window of W, queries 1 .. W - 1 see token 0 with 1 / (i + 1) each.
TEST(SinkMeter, QueriesBeyondTheWindowAreLeftOut) {
  const Model model = Model::open(onset::testing::data("models/mistral"));
  const auto batch = random_batch(model.config(), {20});
  const auto sinks = measure(model, batch, {}, with_equal_scores(model.config()));
  double expected = 0;
  for (int i = 1; i < 8; ++i) expected += 1.0 / (i + 1) / 7;
  for (const LayerSinks& layer : sinks.front().layers) {
    EXPECT_EQ(layer.queries, 7);
    EXPECT_EQ(layer.unseen, 12);
    for (const double alpha : layer.alpha) EXPECT_NEAR(alpha, expected, 1e-6);
  }
}

TEST(SinkMeter, ManyBlocksAreAsGoodAsOne) {
  Toy toy;
  toy.config["max_position_embeddings"] = 4096;
  toy.config["sliding_window"] = 700;
  toy.config["model_type"] = "mistral";
  toy.draw();
  const TemporaryFolder folder;
  toy.write(folder.path());
  const Model model = Model::open(folder.path());
  // 2 heads of 3000 x 3000 scores are several blocks.
  const auto batch = random_batch(model.config(), {3000});
  for (const std::int64_t key : {0, 1500}) {
    expect_equal(measure(model, batch, {.key = key}),
                 measure(model, batch, {.key = key, .route = SinkRoute::explicit_softmax}));
  }
}

TEST(SinkMeter, AnInterventionIsSeenAndCallsAddUp) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const auto batch = random_batch(model.config(), {16, 9});
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  SiteSet first(layers);
  first.add({SiteKind::resid_post, 1});
  Hooks hooks(layers);
  hooks.intervene(first, [](const SiteContext& context, const at::Tensor& state) {
    at::Tensor edited = state.clone();
    for (const SequenceRows& rows : context.sequences) edited[rows.row].mul_(0.5);
    return edited;
  });
  SinkMeter meter(model.config());
  meter.observe(hooks);
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  ASSERT_EQ(meter.sequences().size(), 4U);
  expect_equal({meter.sequences()[2], meter.sequences()[3]},
               {meter.sequences()[0], meter.sequences()[1]}, 0);
  const auto plain = measure(model, batch, {});
  EXPECT_EQ(plain[0].layers[1].alpha, meter.sequences()[0].layers[1].alpha);
  EXPECT_NE(plain[0].layers[2].score, meter.sequences()[0].layers[2].score);
  meter.clear();
  EXPECT_TRUE(meter.sequences().empty());
}

TEST(SinkMeter, ASequenceThatContinuesACacheTakesTheExplicitRoute) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const c10::InferenceMode inference;
  auto batch = random_batch(model.config(), {12});
  const std::vector<SequenceInput> whole{batch.front()};
  KvCache cache = model.decoder().new_cache();
  SequenceInput head{.ids = {whole[0].ids.begin(), whole[0].ids.begin() + 11}, .cache = &cache};
  const std::vector<SequenceInput> first{head};
  static_cast<void>(model.decoder().forward(first, LogitRows::none));
  const std::vector<SequenceInput> last{{.ids = {whole[0].ids.back()}, .cache = &cache}};
  const auto sinks = measure(model, last, {.route = SinkRoute::explicit_softmax});
  EXPECT_EQ(sinks.front().layers.front().queries, 1);
  cache.truncate(11);
  EXPECT_THROW(static_cast<void>(measure(model, last, {})), std::logic_error);
}

TEST(SinkSummary, NothingCountsWhereNoQuerySeesTheKey) {
  const double none = std::nan("");
  const SequenceSinks sequence{
      .layers = {
          {.queries = 2, .alpha = {.2, .5}, .alpha_incl_self = {.3, .6}, .score = {1, 3}},
          {.unseen = 2, .alpha = {none, none}, .alpha_incl_self = {1, 1}, .score = {none, none}}}};
  const SinkSummary summary = summarise(std::vector{sequence, sequence}, 0.3);
  EXPECT_EQ(summary.samples, 2);
  EXPECT_EQ(summary.sink_rate, 0.5);
  EXPECT_EQ(summary.sink_rate_incl_self, 0.75);
  EXPECT_EQ(summary.layer_rate[0], 0.5);
  EXPECT_EQ(summary.layer_score[0], 2.0);
  EXPECT_DOUBLE_EQ(summary.layer_alpha[0], .35);
  EXPECT_TRUE(std::isnan(summary.layer_rate[1]));
  EXPECT_EQ(summary.head_rate[0][1], 1.0);
  EXPECT_TRUE(std::isnan(summarise({}, 0.3).sink_rate));
}

}  // namespace
}  // namespace onset::testing
