// The analyses of a model on another device than the CPU find the same numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "onset/massive/explain.h"
#include "onset/massive/explain_json.h"
#include "onset/massive/rigidity.h"
#include "onset/massive/rigidity_json.h"
#include "onset/massive/sinks.h"
#include "onset/massive/sinks_json.h"
#include "onset/model/model.h"
#include "support/support.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

const std::vector<ScanPrompt> prompts{{"first", {1, 9, 42, 77, 5, 113, 9, 100, 3, 14}},
                                      {"second", {1, 15, 92, 65, 35, 89, 79, 32}}};

// Everything that scan, explain, rigidity and sinks say of the model.
OrderedJson findings(const std::string& name, const Device& device) {
  const Model model = Model::open(onset::testing::data("models/" + name),
                                  {.residency = Residency::resident, .device = device});
  // The small models have no massive activation in the sense of the rule.
  const ScanOptions rule{.min_abs = 1.0, .min_ratio = 5.0};
  const ScanResult scanned = scan(model, prompts, rule);
  ExplainOptions options;
  options.layer = 1;
  options.token = 0;
  const ExplainTarget target = choose_target(model, scanned, options);
  std::vector<std::int64_t> text;
  for (std::int64_t i = 0; i < 60; ++i) text.push_back(3 + i * i * 7 % 120);
  const ExplainResult found =
      explain(model, scanned, target, experiment_text(text, {.window = 32}, 16, 3), options);
  OrderedJson json{{"target", target_json(found.target, scanned)},
                   {"norm", norm_json(found.norm)},
                   {"ffn", ffn_json(found.ffn)},
                   {"factorial", factorial_json(found.factorial)},
                   {"fall", fall_json(found.fall)},
                   {"vocabulary", vocabulary_json(found.vocabulary)},
                   {"dose", dose_json(found.dose)}};
  for (const PromptScan& prompt : scanned.prompts) {
    for (const LayerStatistics& layer : prompt.layers) {
      json["scan"].push_back({layer.largest.token, layer.largest.dim, layer.largest.value,
                              layer.median_abs, layer.massive});
    }
  }
  json["rigidity"] = rigidity_sites_json(measure_rigidity(
      model, {{.ids = prompts[0].ids, .baseline = 5}, {.ids = prompts[1].ids, .baseline = 4}}));
  const std::vector<std::vector<std::int64_t>> samples{prompts[0].ids, prompts[0].ids};
  const std::vector<std::int64_t> windows(model.config().layers.size(), 0);
  json["sinks"] = sink_layers_json(measure_sinks(model, samples, {}), windows);
  return json;
}

// Numbers are near, everything else is equal. What a sum lacks of the value that it explains is the
// rounding of the pass: another one on each device.
void expect_near(const OrderedJson& found, const OrderedJson& expected, const std::string& where) {
  if (expected.is_number_float() && found.is_number_float()) {
    const auto value = expected.get<double>();
    if (where.ends_with("_difference")) {
      EXPECT_NEAR(found.get<double>(), 0.0, 1e-3) << where;
      return;
    }
    EXPECT_NEAR(found.get<double>(), value, 1e-4 + 1e-3 * std::abs(value)) << where;
    return;
  }
  ASSERT_EQ(found.type(), expected.type()) << where;
  if (!expected.is_structured()) {
    EXPECT_EQ(found, expected) << where;
    return;
  }
  ASSERT_EQ(found.size(), expected.size()) << where;
  for (const auto& [key, value] : expected.items()) {
    const std::string inside = where + "/" + key;
    if (expected.is_array()) {
      expect_near(found[std::stoul(key)], value, inside);
    } else {
      expect_near(found.at(key), value, inside);
    }
  }
}

class DeviceAnalyses : public ::testing::TestWithParam<OnDevice<const char*>> {};

TEST_P(DeviceAnalyses, FindWhatTheyFindOnTheCpu) {
  const std::string name = GetParam().value;
  expect_near(findings(name, GetParam().device), findings(name, {}), "");
}

std::vector<OnDevice<const char*>> elsewhere() {
  std::vector<OnDevice<const char*>> cases;
  for (const auto& one :
       on_all_devices<const char*>({"llama_me", "gemma2", "qwen2_moe", "deepseek_v2"})) {
    if (one.device.kind != DeviceKind::cpu) cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceAnalyses, ::testing::ValuesIn(elsewhere()),
                         [](const auto& parameter) {
                           return std::string(parameter.param.value) +
                                  suffix_of(parameter.param.device);
                         });

}  // namespace
}  // namespace onset::testing
