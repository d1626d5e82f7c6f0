// Sinks over samples: by formula, and on the demonstration model against tests/data/smollm2.
#include "onset/massive/sinks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onset/model/decoder.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

template <typename Action>
void expect_refused(Action&& action, const std::string& part) {
  const std::string message = error_of(action);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(CutSamples, AreWindowsThatDoNotOverlap) {
  const Ids ids{1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(cut_samples(ids, 3, 0, std::nullopt), (std::vector<Ids>{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(cut_samples(ids, 3, 1, std::nullopt), (std::vector<Ids>{{1, 2, 3}}));
  EXPECT_EQ(cut_samples(ids, 7, 0, std::nullopt), (std::vector<Ids>{ids}));
  EXPECT_TRUE(cut_samples(ids, 8, 0, std::nullopt).empty());
  EXPECT_TRUE(cut_samples({}, 2, 0, 9).empty());
  expect_refused([&] { static_cast<void>(cut_samples(ids, 1, 0, std::nullopt)); },
                 "at least 2 tokens");
}

TEST(CutSamples, ABosCountsAndIsNotDoubled) {
  EXPECT_EQ(cut_samples(Ids{1, 2, 3, 4, 5}, 3, 0, 9), (std::vector<Ids>{{9, 1, 2}, {9, 3, 4}}));
  EXPECT_EQ(cut_samples(Ids{9, 2, 3, 4, 5}, 3, 0, 9), (std::vector<Ids>{{9, 2, 3}, {9, 4, 5}}));
}

TEST(MostFrequentToken, IsTheLowestOfThem) {
  EXPECT_EQ(most_frequent_token(std::vector<Ids>{{5, 3, 3}, {5, 1}}), 3);
}

// The token's largest entry by layer, against the states of each sample's own pass.
TEST(Sinks, TellTheTokensLargestEntry) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const std::vector<Ids> samples{{3, 7, 1, 30, 12}, {5, 9, 2, 40, 11}};
  const SinksResult found = measure_sinks(model, samples, {.key = 1});
  const std::int64_t layers = model.config().layer_count();
  std::vector<double> expected(static_cast<std::size_t>(layers));
  for (const Ids& ids : samples) {
    Hooks hooks(layers);
    SiteSet ends(layers);
    ends.add_all_layers(SiteKind::resid_post);
    hooks.observe(ends, [&](const SiteContext& context, const at::Tensor& state) {
      expected[static_cast<std::size_t>(context.site.layer)] +=
          state[1].abs().max().item<double>() / 2;
    });
    const std::vector<SequenceInput> batch{{.ids = ids}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }
  ASSERT_EQ(found.key_max_abs.size(), expected.size());
  for (std::size_t l = 0; l < expected.size(); ++l) {
    EXPECT_NEAR(found.key_max_abs[l], expected[l], 1e-5 * expected[l]) << l;
  }
}

TEST(Sinks, UniformAttentionOfAnyLengthIsKnown) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  Hooks equal(model.config().layer_count());
  SiteSet queries(model.config().layer_count());
  queries.add_all_layers(SiteKind::q);
  equal.intervene(queries, [](const SiteContext&, const at::Tensor& q) { return q.mul(0); });
  const std::vector<Ids> samples{{5, 6, 7}, {8, 9, 10}};
  const SinksResult result = measure_sinks(model, samples, {}, {}, &equal);
  for (const double alpha : result.uniform_alpha) EXPECT_NEAR(alpha, 5.0 / 12, 1e-12);
  EXPECT_EQ(result.summary.samples, 2);
  EXPECT_EQ(result.summary.sink_rate, 1.0);
  for (const auto& layer : result.summary.head_alpha) {
    for (const double alpha : layer) EXPECT_NEAR(alpha, 5.0 / 12, 1e-6);
  }
  // Queries 1 and 2 give key 0 a half and a third.
  ASSERT_TRUE(result.most_attended[0].has_value());
  EXPECT_EQ(result.most_attended[0]->key, 0);
  EXPECT_NEAR(result.most_attended[0]->mass, 5.0 / 12, 1e-6);
  EXPECT_LT(measure_sinks(model, samples, {}).summary.sink_rate, 1.0) << "without the intervention";
}

// Uniform attention measured in windows is what is said of it, for any key.
TEST(Sinks, UniformAttentionInAWindowIsKnown) {
  const Model model = Model::open(onset::testing::data("models/mistral"));
  Hooks equal(model.config().layer_count());
  SiteSet queries(model.config().layer_count());
  queries.add_all_layers(SiteKind::q);
  equal.intervene(queries, [](const SiteContext&, const at::Tensor& q) { return q.mul(0); });
  std::vector<Ids> samples{Ids(20), Ids(5)};
  for (const std::int64_t key : {0, 2}) {
    const SinksResult result = measure_sinks(model, samples, {.key = key}, {}, &equal);
    for (std::size_t l = 0; l < 3; ++l) {
      EXPECT_NEAR(result.summary.layer_alpha[l], result.uniform_alpha[l], 1e-6) << key;
    }
  }
}

TEST(Sinks, WhatCannotBeMeasuredIsRefused) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const std::vector<Ids> samples{{5, 6, 7}};
  expect_refused([&] { static_cast<void>(measure_sinks(model, {}, {})); }, "at least one sample");
  expect_refused([&] { static_cast<void>(measure_sinks(model, std::vector<Ids>{{5}}, {})); },
                 "no query follows token 0");
  expect_refused([&] { static_cast<void>(measure_sinks(model, samples, {.key = 2})); },
                 "no query follows token 2");
  expect_refused([&] { static_cast<void>(measure_sinks(model, samples, {.key = -1})); },
                 "no query follows token -1");
  expect_refused([&] { static_cast<void>(measure_sinks(model, samples, {.threshold = 1.5})); },
                 "not in 0 to 1");
  expect_refused(
      [&] { static_cast<void>(measure_sinks(model, samples, {.threshold = std::nan("")})); },
      "not in 0 to 1");
}

TEST(Sinks, AttentionThatIsNotFiniteIsAnErrorAndNoNumber) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  Hooks broken(model.config().layer_count());
  SiteSet queries(model.config().layer_count());
  queries.add({SiteKind::q, 1});
  broken.intervene(queries, [](const SiteContext&, const at::Tensor& q) {
    return q.mul(std::numeric_limits<double>::quiet_NaN());
  });
  expect_refused(
      [&] {
        static_cast<void>(measure_sinks(model, std::vector<Ids>{{5, 6, 7}}, {}, {}, &broken));
      },
      "layer 1, head 0 is not finite");
}

class Smollm2Sinks : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path));
    reference_ = OrderedJson::parse(read_file(onset::testing::data("smollm2/sinks.json")));
  }

  // A rate may differ by the heads within 1e-3 of the threshold.
  static void expect_rate(double found, double expected, std::int64_t close_heads,
                          std::int64_t heads, const std::string& what) {
    EXPECT_NEAR(found, expected,
                (static_cast<double>(close_heads) + 1e-6) / static_cast<double>(heads))
        << what;
  }

  void expect_equal(const SinksResult& found, const OrderedJson& expected) {
    const std::size_t layers = 30;
    const std::size_t heads = 9;
    const std::size_t samples = found.samples.size();
    std::int64_t close = 0;
    for (std::size_t l = 0; l < layers; ++l) {
      std::int64_t close_in_layer = 0;
      for (const SequenceSinks& sample : found.samples) {
        for (const double alpha : sample.layers[l].alpha) {
          if (std::fabs(alpha - 0.3) < 1e-3) ++close_in_layer;
        }
      }
      close += close_in_layer;
      for (std::size_t h = 0; h < heads; ++h) {
        EXPECT_NEAR(found.samples[0].layers[l].alpha[h],
                    expected["alpha0_sequence0"][l][h].get<double>(), 1e-4)
            << "layer " << l << " head " << h;
      }
      EXPECT_NEAR(found.summary.layer_alpha[l], expected["mean_alpha0_per_layer"][l].get<double>(),
                  1e-4);
      expect_rate(found.summary.layer_rate[l], expected["sink_rate_per_layer"][l].get<double>(),
                  close_in_layer, static_cast<std::int64_t>(heads * samples),
                  "layer " + std::to_string(l));
      EXPECT_EQ(found.most_attended[l]->key,
                expected["most_attended_key_per_layer"][l].get<std::int64_t>())
          << "layer " << l;
    }
    const auto all = static_cast<std::int64_t>(layers * heads * samples);
    expect_rate(found.summary.sink_rate, expected["sink_rate"].get<double>(), close, all, "rate");
    expect_rate(found.summary.sink_rate_incl_self, expected["sink_rate_incl_query0"].get<double>(),
                close, all, "rate with the query itself");
  }

  std::optional<Model> model_;
  OrderedJson reference_;
};

TEST_F(Smollm2Sinks, EqualTheReferenceByBothRoutes) {
  const auto samples = reference_["ids"].get<std::vector<Ids>>();
  for (const SinkRoute route : {SinkRoute::blocks, SinkRoute::explicit_softmax}) {
    const SinksResult found = measure_sinks(*model_, samples, {.route = route});
    expect_equal(found, reference_["configs"]["none"]);
    for (std::size_t l = 2; l <= 9; ++l) {
      EXPECT_GE(found.summary.layer_rate[l], 0.13) << l;
      EXPECT_LE(found.summary.layer_rate[l], 0.34) << l;
    }
    for (std::size_t l = 10; l <= 11; ++l) EXPECT_EQ(found.summary.layer_rate[l], 0) << l;
    for (std::size_t l = 12; l < 30; ++l) EXPECT_GE(found.summary.layer_rate[l], 0.72) << l;
  }
}

TEST_F(Smollm2Sinks, TheChatAndTheRepeatedTokenEqualTheReference) {
  for (const auto& [name, expected] : reference_["extra_unmasked"].items()) {
    const std::vector<Ids> samples{expected["ids"].get<Ids>()};
    expect_equal(measure_sinks(*model_, samples, {}), expected);
  }
}

}  // namespace
}  // namespace onset::testing
