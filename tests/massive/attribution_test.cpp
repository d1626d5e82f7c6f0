// Neurons and heads that write an entry: against transformers on SmolLM2, and against the captured
// states on models with other blocks.
#include "onset/massive/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onset/massive/scan.h"
#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

// The sums over neurons and heads are the captured values, but for the rounding of float32 sums: a
// sum of many terms of one size may be off by a little more than 1e-6 of the largest.
void expect_exact(const EntryAttribution& found, const std::string& where,
                  double tolerance = 3e-6) {
  EXPECT_LE(std::fabs(found.ffn_difference), tolerance * std::max(found.largest_neuron, 1.0))
      << where;
  double largest_head = 1;
  for (const HeadPart& head : found.heads) {
    largest_head = std::max(largest_head, std::fabs(head.contribution));
  }
  EXPECT_LE(std::fabs(found.attn_difference), 3e-6 * largest_head) << where;
  EXPECT_EQ((found.resid_pre + found.attn_out) + found.ffn_out, found.resid_post) << where;
}

class Smollm2Attribution : public ::testing::Test {
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

  std::optional<Model> model_;
  OrderedJson reference_;
  std::map<std::string, std::vector<std::int64_t>> ids_;
};

void expect_reference(const EntryAttribution& found, const OrderedJson& block,
                      const std::string& where) {
  const OrderedJson& neurons = block.at("top_neurons");
  // Tolerance of the reference: 1e-4 of the largest value in its list.
  const double scale = std::fabs(neurons[0].at("contribution").get<double>());
  for (std::size_t i = 0; i < neurons.size(); ++i) {
    const NeuronPart& neuron = found.neurons[i];
    const OrderedJson& expected = neurons[i];
    EXPECT_NEAR(neuron.contribution, expected.at("contribution").get<double>(), 1e-4 * scale)
        << where << " neuron " << i;
    // Two of nearly the same size may change places.
    if (neuron.neuron != expected.at("j").get<std::int64_t>()) continue;
    const double product = expected.at("product").get<double>();
    EXPECT_NEAR(neuron.weight, expected.at("down").get<double>(), 1e-5);
    EXPECT_NEAR(neuron.gate, expected.at("gate").get<double>(), 1e-3) << where;
    EXPECT_NEAR(neuron.up, expected.at("up").get<double>(), 1e-3) << where;
    EXPECT_NEAR(neuron.product, product, std::max(1e-4 * std::fabs(product), 1e-3)) << where;
    if (neuron.share) {
      EXPECT_NEAR(*neuron.share, expected.at("share").get<double>(), 2e-4) << where;
    }
  }
  EXPECT_EQ(found.neurons[0].neuron, neurons[0].at("j").get<std::int64_t>()) << where;
  EXPECT_NEAR(found.neuron_sum, block.at("sum_of_contributions_float64").get<double>(),
              1e-4 * scale)
      << where;
  EXPECT_NEAR(found.attn_out, block.at("attn_out").get<double>(), 1e-4 * scale) << where;
}

TEST_F(Smollm2Attribution, TheTopNeuronsOfEveryBlockEqualTheReference) {
  for (const auto& [name, blocks] : reference_.at("blocks").items()) {
    std::vector<EntryPlace> places;
    for (const OrderedJson& block : blocks) {
      places.push_back({.layer = block.at("block").get<std::int64_t>(), .token = 0, .dim = 507});
    }
    const auto found = attribute_entries(*model_, ids_.at(name), places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::string where = name + " block " + std::to_string(places[i].layer);
      expect_reference(found[i], blocks[i], where);
      expect_exact(found[i], where);
    }
  }
}

TEST_F(Smollm2Attribution, NeuronsSumToTheFfnAtEveryStage) {
  const ScanResult result = scan(*model_, {{"", ids_.at("plain")}, {"", ids_.at("code")}}, {});
  for (const PromptScan& prompt : result.prompts) {
    std::vector<EntryPlace> places;
    for (const Stage& stage : prompt.stages) {
      places.push_back({.layer = stage.layer, .token = stage.token, .dim = stage.dim});
    }
    ASSERT_EQ(places.size(), 7U);
    const auto found = attribute_entries(*model_, prompt.ids, places);
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect_exact(found[i], "stage " + std::to_string(i), 1e-6);
      // The scan ran both prompts in one pass, whose products round differently: 1e-5 of the
      // largest value, what the references allow float32.
      const Stage& stage = prompt.stages[i];
      const double rounding =
          1e-5 * static_cast<double>(std::max(std::fabs(stage.before), std::fabs(stage.after)));
      EXPECT_NEAR(found[i].ffn_out, stage.ffn_out, rounding);
      EXPECT_NEAR(found[i].attn_out, stage.attn_out, rounding);
      EXPECT_EQ(found[i].neuron_count, 1536);
    }
  }
}

TEST_F(Smollm2Attribution, TwoNeuronsWriteTheMassiveValueAndDoNotReadItsDim) {
  const std::vector<EntryPlace> places{{.layer = 11, .token = 0, .dim = 507},
                                       {.layer = 28, .token = 0, .dim = 507}};
  const auto found = attribute_entries(*model_, ids_.at("plain"), places);
  EXPECT_EQ(found[0].neurons[0].neuron, 1229);
  EXPECT_EQ(found[0].neurons[1].neuron, 1487);
  EXPECT_GT(*found[0].neurons[0].share + *found[0].neurons[1].share, 0.99);
  EXPECT_EQ(found[0].neurons_for_90_percent, 2);
  EXPECT_LT(std::fabs(*found[0].ffn_norm_gain), 1e-4);
  EXPECT_LT(std::fabs(found[0].neurons[0].gate_from_dim), 0.01);
  // The terms told are the largest of a sum that is the gate itself.
  EXPECT_GE(std::fabs(found[0].neurons[0].gate_terms[0].contribution),
            std::fabs(found[0].neurons[0].gate_terms[1].contribution));
  // Block 28 takes away: its neurons write the opposite sign.
  EXPECT_LT(found[1].neuron_sum, -14000);
  EXPECT_EQ(found[1].opposing[0].neuron, found[1].neurons[0].neuron);
  EXPECT_LT(found[1].opposing[0].contribution, 0);
}

TEST_F(Smollm2Attribution, APlaceThatIsNotThereIsRefused) {
  const std::vector<EntryPlace> places{{.layer = 30, .token = 0, .dim = 507}};
  EXPECT_NE(error_of([&] {
              static_cast<void>(attribute_entries(*model_, ids_.at("plain"), places));
            }).find("layers 0 to 29"),
            std::string::npos);
}

// Post-norms (Gemma), no norm before the FFN (OLMo 2), biases (Qwen2), fused projections (Phi-3),
// mixtures with and without shared experts, latent attention (DeepSeek).
class FamilyAttribution : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyAttribution, NeuronsAndHeadsSumToWhatIsAdded) {
  const auto folder = onset::testing::data(std::string("models/") + GetParam());
  const Model model = Model::open(folder);
  const auto ids = ReferenceTensors(folder / "reference.safetensors").ids("input_ids.b");
  std::vector<EntryPlace> places;
  for (std::int64_t layer = 0; layer < model.config().layer_count(); ++layer) {
    for (const std::int64_t dim : {0, 7}) {
      places.push_back({.layer = layer, .token = 0, .dim = dim});
      places.push_back({.layer = layer, .token = 2, .dim = dim});
    }
  }
  const ScanResult result = scan(model, {{"", ids}}, {.min_abs = 0});
  for (const Stage& stage : result.stages) {
    places.push_back({.layer = stage.layer, .token = stage.token, .dim = stage.dim});
  }
  for (const EntryAttribution& found : attribute_entries(model, ids, places)) {
    expect_exact(found, std::string(GetParam()) + " layer " + std::to_string(found.layer));
    EXPECT_EQ(found.ffn_norm_gain.has_value(), std::string(GetParam()) != "olmo2");
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FamilyAttribution,
                         ::testing::Values("llama", "llama_gguf", "qwen2", "qwen3", "phi3",
                                           "gemma2", "gemma3", "olmo2", "llama_me", "mixtral",
                                           "qwen3_moe", "deepseek_v2", "deepseek_v2_lite",
                                           "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace onset::testing
