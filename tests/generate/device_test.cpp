// The generator on another device than the CPU gives the same tokens.
#include "generate/generator_support.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

class DeviceGenerating : public ::testing::TestWithParam<OnDevice<const char*>> {
 protected:
  [[nodiscard]] static Model open(const Device& device) {
    return Model::open(onset::testing::data("models/" + std::string(GetParam().value)),
                       {.residency = Residency::resident, .device = device});
  }
  // Prompts with a common beginning, a mask, draws, and scores of the prompt.
  [[nodiscard]] static std::vector<GenerationRequest> requests(const Model& model) {
    const GenerationRequest greedy{
        .ids = {1, 9, 42, 77, 5, 130, 9, 200, 3, 14, 15, 92, 65, 35, 89, 79, 32, 38},
        .max_new_tokens = 12,
        .sampling = {.temperature = 0},
        .ignore_eos = true};
    std::vector<GenerationRequest> all(4, greedy);
    all[1].ids.push_back(7);
    all[2].mask = mask_of(model);
    all[3].sampling = {.temperature = 0.8, .seed = 3};
    all[3].samples = 2;
    all.push_back(greedy);
    all.back().prompt_logprobs = true;
    all.back().logprobs = true;
    all.back().top_logprobs = 2;
    return all;
  }
  [[nodiscard]] static std::vector<std::vector<Completion>> run(const Device& device) {
    const Model model = open(device);
    Generator generator(model, nullptr, {.prefill_tokens = 7});
    return generate_all(generator, requests(model));
  }
};

TEST_P(DeviceGenerating, GivesTheTokensOfTheCpu) {
  const auto expected = run({});
  const auto found = run(GetParam().device);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t r = 0; r < found.size(); ++r) {
    ASSERT_EQ(found[r].size(), expected[r].size());
    for (std::size_t s = 0; s < found[r].size(); ++s) {
      EXPECT_EQ(found[r][s].error, "");
      EXPECT_EQ(ids_of(found[r][s]), ids_of(expected[r][s])) << "request " << r;
      ASSERT_EQ(found[r][s].prompt.size(), expected[r][s].prompt.size());
      for (std::size_t t = 1; t < found[r][s].prompt.size(); ++t) {
        EXPECT_NEAR(found[r][s].prompt[t].logprob, expected[r][s].prompt[t].logprob, 1e-4);
      }
    }
  }
}

// On the CPU the test would say nothing.
std::vector<OnDevice<const char*>> elsewhere() {
  std::vector<OnDevice<const char*>> cases;
  for (const auto& one : on_all_devices<const char*>({"llama_me", "qwen3_moe", "deepseek_v2"})) {
    if (one.device.kind != DeviceKind::cpu) cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceGenerating, ::testing::ValuesIn(elsewhere()),
                         [](const auto& parameter) {
                           return std::string(parameter.param.value) +
                                  suffix_of(parameter.param.device);
                         });

}  // namespace
}  // namespace onset::testing
