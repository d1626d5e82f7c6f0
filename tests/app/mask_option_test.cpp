// A mask on models that are not quite the one it was made for, as `mask show` and --wemask read it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "app/program.h"
#include "support/fixture_copy.h"

namespace onset::testing {
namespace {

constexpr std::int64_t first_masked = 2;  // behind llama_me's ME layer

std::string gain_name(std::int64_t layer) {
  return "model.layers." + std::to_string(layer) + ".input_layernorm.weight";
}

// The first k dims by |gain|, by sorting all of them.
std::vector<std::int64_t> by_gain(const std::vector<float>& gains, std::int64_t k) {
  std::vector<std::int64_t> dims(gains.size());
  std::iota(dims.begin(), dims.end(), 0);
  std::stable_sort(dims.begin(), dims.end(), [&](std::int64_t a, std::int64_t b) {
    return std::fabs(gains[static_cast<std::size_t>(a)]) >
           std::fabs(gains[static_cast<std::size_t>(b)]);
  });
  dims.resize(static_cast<std::size_t>(k));
  return dims;
}

class MaskOption : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = run_onset({"mask", "make", model_path("llama_me"), "--ids", "1,17,9", "-o",
                                 mask_, "--k", "4", "--from-layer", std::to_string(first_masked)});
    ASSERT_EQ(made.code, 0) << made.error;
  }
  [[nodiscard]] Outcome show(const std::string& model,
                             const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments{"mask", "show", mask_, model, "--ids", "1,17", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_onset(arguments);
  }
  // Its first masked layer's smallest gain becomes the largest: one of four dims is another.
  [[nodiscard]] std::string fine_tune() {
    auto& gains = tuned_.values.at(gain_name(first_masked));
    const auto smallest = std::min_element(
        gains.begin(), gains.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    *smallest = 100.0F;
    tuned_.write(folder_.path() / "tuned");
    return (folder_.path() / "tuned").string();
  }

  TemporaryFolder folder_;
  std::string mask_ = (folder_.path() / "wemask.json").string();
  Toy tuned_ = copy_of_fixture("llama_me");
};

TEST_F(MaskOption, FitsAGgufCopyOfTheSameWeights) {
  const auto shown = show(model_path("llama_me") + "/f32.gguf", {"--strict"});
  EXPECT_EQ(shown.code, 0) << shown.error;
  EXPECT_EQ(shown.error, "");
}

TEST_F(MaskOption, FitsAnotherQuantisationThatKeepsTheGains) {
  const auto file = (folder_.path() / "other.json").string();
  const auto made = run_onset({"mask", "make", model_path("llama_gguf"), "--ids", "1,17,9", "-o",
                               file, "--k", "4", "--from-layer", "1"});
  ASSERT_EQ(made.code, 0) << made.error;
  for (const std::string name : {"q4_0", "q8_0", "f16"}) {
    const auto path = any_fixture("models/llama_gguf/" + name + ".gguf");
    if (path.empty()) continue;  // the one in float16 is not in the repository
    const auto shown =
        run_onset({"mask", "show", file, path.string(), "--ids", "1,17", "--strict"});
    EXPECT_EQ(shown.code, 0) << shown.error;
    EXPECT_EQ(shown.error, "") << name;
  }
}

TEST_F(MaskOption, OfAFineTuneItSaysTheOverlapAndKeepsItsDims) {
  const auto shown = show(fine_tune());
  ASSERT_EQ(shown.code, 0) << shown.error;
  // Three of five in one layer, all in the others.
  const auto layers = tuned_.config.at("num_hidden_layers").get<std::int64_t>() - first_masked;
  const double overlap = (0.6 + static_cast<double>(layers - 1)) / static_cast<double>(layers);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.3f", overlap);
  EXPECT_NE(shown.error.find("other norm gains"), std::string::npos) << shown.error;
  EXPECT_NE(shown.error.find(text.data()), std::string::npos) << shown.error;
  EXPECT_EQ(shown.json().at("mask"), OrderedJson::parse(read_file(mask_)));
}

TEST_F(MaskOption, StrictRefusesAFineTune) {
  expect_refusal(show(fine_tune(), {"--strict"}), 1, "other norm gains");
}

TEST_F(MaskOption, RefreshChoosesTheDimsByTheGainsOfTheModel) {
  const auto path = fine_tune();
  const auto shown = show(path, {"--refresh"});
  ASSERT_EQ(shown.code, 0) << shown.error;
  const OrderedJson mask = shown.json().at("mask");
  const auto layers = tuned_.config.at("num_hidden_layers").get<std::int64_t>();
  for (std::int64_t layer = first_masked; layer < layers; ++layer) {
    EXPECT_EQ(mask.at("dims").at(std::to_string(layer)).get<std::vector<std::int64_t>>(),
              by_gain(tuned_.values.at(gain_name(layer)), 4));
  }
}

TEST_F(MaskOption, AModelOfAnotherShapeIsRefusedWithBothShapes) {
  const auto shown = show(model_path("qwen3_me"));
  expect_refusal(shown, 1, "made for another model (llama");
  EXPECT_NE(shown.error.find("this one is qwen3"), std::string::npos) << shown.error;
  EXPECT_NE(shown.error.find("wemask.json"), std::string::npos) << shown.error;
}

TEST_F(MaskOption, StrictAndRefreshNeedAModelAndExcludeEachOther) {
  expect_refusal(show(model_path("llama_me"), {"--strict", "--refresh"}), 2, "one of them");
  expect_refusal(run_onset({"mask", "show", mask_, "--refresh"}), 2, "about a model");
}

}  // namespace
}  // namespace onset::testing
