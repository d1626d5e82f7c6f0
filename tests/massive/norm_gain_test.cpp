// What a norm's gain does: hand values, and the pre-FFN norms of SmolLM2 against transformers.
#include "onset/massive/norm_gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "onset/massive/norm_reading.h"
#include "onset/model/model.h"
#include "support/support.h"

namespace onset::testing {
namespace {

TEST(NormReading, HandValues) {
  const std::vector<double> x{3, 0, -4, 0};
  const std::vector<double> gain{2, 5, 0, -1};
  const NormReading reading = read_norm(x, gain, falling_order(gain), 0);
  EXPECT_DOUBLE_EQ(reading.input_norm, 5);
  EXPECT_DOUBLE_EQ(reading.rms, 2.5);
  EXPECT_DOUBLE_EQ(reading.output_norm, 6 / 2.5);
  EXPECT_DOUBLE_EQ(reading.amplification, 6.0 / 5);
  EXPECT_DOUBLE_EQ(reading.before.top1, 16.0 / 25);
  EXPECT_DOUBLE_EQ(reading.before.top4, 1);
  EXPECT_DOUBLE_EQ(reading.before.gain_top1, 0) << "dim 1 holds nothing";
  EXPECT_DOUBLE_EQ(reading.before.gain_top4, 1);
  EXPECT_DOUBLE_EQ(reading.before.participation, 1 / (0.64 * 0.64 + 0.36 * 0.36));
  EXPECT_DOUBLE_EQ(reading.after.top1, 1);
  EXPECT_DOUBLE_EQ(reading.after.participation, 1);
}

TEST(NormReading, RankCorrelationIsThatOfTheRanks) {
  EXPECT_DOUBLE_EQ(rank_correlation(std::vector<double>{1, 5, 30}, std::vector<double>{2, 3, 4}),
                   1);
  EXPECT_DOUBLE_EQ(rank_correlation(std::vector<double>{1, 5, 30}, std::vector<double>{9, 8, 0}),
                   -1);
  // Without ties 1 - 6 sum d^2 / (n (n^2 - 1)).
  EXPECT_NEAR(rank_correlation(std::vector<double>{1, 2, 3, 4}, std::vector<double>{2, 1, 4, 3}),
              1 - 6 * 4.0 / (4 * 15), 1e-12);
}

TEST(NormReading, DivergenceIsZeroFromItselfAndByHandElse) {
  const std::vector<double> p{0.5, 0.5, 0};
  const std::vector<double> q{0.25, 0.5, 0.25};
  EXPECT_DOUBLE_EQ(divergence(p, p), 0);
  EXPECT_DOUBLE_EQ(divergence(p, q), 0.5 * std::log(2));
}

TEST(NormReading, CumulativeSharesEndAtOne) {
  const auto shares = cumulative_shares(std::vector<double>{0.1, 0.4, 0.2, 0.25, 0.05});
  EXPECT_EQ(curve_dims(5), (std::vector<std::int64_t>{1, 2, 4, 5}));
  EXPECT_NEAR(shares[0], 0.4, 1e-12);
  EXPECT_NEAR(shares[1], 0.65, 1e-12);
  EXPECT_NEAR(shares[2], 0.95, 1e-12);
  EXPECT_NEAR(shares[3], 1, 1e-12);
}

class Smollm2Norm : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path));
    reference_ = OrderedJson::parse(read_file(onset::testing::data("smollm2/decompose.json")));
    const auto scans = OrderedJson::parse(read_file(onset::testing::data("smollm2/scan.json")));
    for (const OrderedJson& prompt : scans.at("prompts")) {
      ids_[prompt.at("name")] = prompt.at("ids").get<std::vector<std::int64_t>>();
    }
  }
  [[nodiscard]] NormResult analyse(const std::string& prompt, std::int64_t layer) const {
    return analyse_norms(
        *model_,
        {.layer = layer, .dims = {507}, .prompts = {{.ids = ids_.at(prompt)}}, .shown = 0});
  }
  [[nodiscard]] const OrderedJson& block(const std::string& prompt, std::int64_t layer) const {
    for (const OrderedJson& row : reference_.at("blocks").at(prompt)) {
      if (row.at("block") == layer) return row;
    }
    throw std::runtime_error("no such block");
  }

  std::optional<Model> model_;
  OrderedJson reference_;
  std::map<std::string, std::vector<std::int64_t>> ids_;
};

TEST_F(Smollm2Norm, ReadingsEqualTheReference) {
  for (const auto* prompt : {"plain", "code", "maths"}) {
    for (const std::int64_t layer : {2, 11, 28}) {
      const OrderedJson& expected = block(prompt, layer);
      const NormAnalysis found = analyse(prompt, layer).ffn_norm.value();
      const auto near = [](double a, const OrderedJson& b) {
        EXPECT_NEAR(a, b.get<double>(), 1e-4 * std::fabs(b.get<double>()));
      };
      near(found.token.rms, expected.at("rms_before_ffn_norm"));
      near(found.token.input_norm, expected.at("norms_token0").at("resid_mid"));
      near(found.token.output_norm, expected.at("norms_token0").at("ffn_in"));
      near(found.others->input_norm, expected.at("norms_other_tokens_median").at("resid_mid"));
      near(found.others->output_norm, expected.at("norms_other_tokens_median").at("ffn_in"));
      const OrderedJson& gains = expected.at("largest_ffn_norm_gains");
      for (const OrderedJson& row : gains) {
        const auto dim = row.at("dim").get<std::size_t>();
        EXPECT_FLOAT_EQ(found.gain[dim], row.at("gain").get<float>());
        EXPECT_NEAR(found.x[dim], row.at("value").get<double>(), 1e-4 * found.token.input_norm);
        EXPECT_NEAR(found.product[dim], row.at("after_norm").get<double>(), 5e-4);
      }
    }
  }
}

TEST_F(Smollm2Norm, TheGainHidesTheMassiveDimFromTheFfnOfTheMeLayer) {
  const NormResult result = analyse("plain", 11);
  const NormAnalysis& found = result.ffn_norm.value();
  ASSERT_EQ(found.massive_dims.size(), 1U);
  EXPECT_EQ(found.massive_dims[0].dim, 507);
  EXPECT_LT(std::fabs(found.massive_dims[0].gain), 1e-4);
  EXPECT_LT(found.massive_dims[0].energy_after, 1e-6);
  EXPECT_GT(found.massive_dims[0].energy_before, 0.05);
  EXPECT_GT(found.relative_amplification, 1);
  EXPECT_EQ(found.other_count, std::ssize(ids_.at("plain")) - 1);
  EXPECT_EQ(result.gains.ffn.size(), 30U);
  EXPECT_EQ(result.gains.attention.size(), 30U);
  EXPECT_NEAR(result.gains.ffn[11].amplification, found.token.amplification, 1e-9);
  EXPECT_NEAR(result.gains.ffn[11].others_amplification, found.others->amplification, 1e-9);
  EXPECT_NEAR(result.gains.ffn[11].at_dims[0], found.massive_dims[0].gain, 1e-12);
  EXPECT_NEAR(result.gains.ffn[11].quantiles.back(), 0.6171875, 1e-6);
  EXPECT_NEAR(found.curve.after.back(), 1, 1e-12);
}

}  // namespace
}  // namespace onset::testing
