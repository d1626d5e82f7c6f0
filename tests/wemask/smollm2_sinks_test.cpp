// Sinks under every mask of the reference (tests/data/smollm2/README.md).
#include <gtest/gtest.h>

#include <cmath>

#include "onset/massive/sinks.h"
#include "support/smollm2_masks.h"

namespace onset::testing {
namespace {

class MaskedSinks : public Smollm2Masks, public ::testing::WithParamInterface<const char*> {};

// A rate may differ by the heads within 1e-3 of the threshold, alpha by 1e-4.
void expect_equal(const SinksResult& found, const OrderedJson& expected, const std::string& name) {
  std::int64_t close = 0;
  std::int64_t heads = 0;
  for (const SequenceSinks& sample : found.samples) {
    for (const LayerSinks& layer : sample.layers) {
      for (const double alpha : layer.alpha) {
        close += std::fabs(alpha - 0.3) < 1e-3 ? 1 : 0;
        ++heads;
      }
    }
  }
  const double slack = (static_cast<double>(close) + 1e-6) / static_cast<double>(heads);
  EXPECT_NEAR(found.summary.sink_rate, expected.at("sink_rate").get<double>(), slack) << name;
  EXPECT_NEAR(found.summary.sink_rate_incl_self, expected.at("sink_rate_incl_query0").get<double>(),
              slack)
      << name;
  for (std::size_t l = 0; l < found.summary.layer_alpha.size(); ++l) {
    EXPECT_NEAR(found.summary.layer_alpha[l], expected.at("mean_alpha0_per_layer")[l].get<double>(),
                1e-4)
        << name << " layer " << l;
    EXPECT_EQ(found.most_attended[l]->key,
              expected.at("most_attended_key_per_layer")[l].get<std::int64_t>())
        << name << " layer " << l;
    for (std::size_t h = 0; h < found.samples[0].layers[l].alpha.size(); ++h) {
      EXPECT_NEAR(found.samples[0].layers[l].alpha[h],
                  expected.at("alpha0_sequence0")[l][h].get<double>(), 1e-4)
          << name << " layer " << l << " head " << h;
    }
  }
}

TEST_P(MaskedSinks, EqualTheReference) {
  const auto reference = OrderedJson::parse(read_file(onset::testing::data("smollm2/sinks.json")));
  const auto samples = reference.at("ids").get<std::vector<std::vector<std::int64_t>>>();
  const auto names = names_of(reference.at("configs"), GetParam());
  ASSERT_GE(names.size(), 10U);
  for (const auto& name : names) {
    const OrderedJson& expected = reference.at("configs").at(name);
    const auto masked = masking(mask(expected.at("mask")), *model_);
    expect_equal(measure_sinks(*model_, samples, {}, {}, masked.get()), expected, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Criteria, MaskedSinks,
                         ::testing::Values("weight", "activation", "lowest_weight", "random"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace onset::testing
