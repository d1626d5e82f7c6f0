// The backward pass against gradients computed with transformers (tests/data/models/README.md), and
// against finite differences.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "onset/model/decoder.h"
#include "onset/model/parameters.h"
#include "onset/model/placement.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

// The mean cross entropy of tokens 1..T-1 given their prefixes.
at::Tensor loss_of(const Decoder& decoder, const std::vector<std::int64_t>& ids,
                   const Hooks* hooks = nullptr) {
  const std::vector<SequenceInput> batch{{.ids = ids}};
  const ForwardResult result = decoder.forward(batch, LogitRows::all, hooks);
  const auto count = static_cast<std::int64_t>(ids.size());
  const at::Tensor targets = indices(ids, result.logits).narrow(0, 1, count - 1).unsqueeze(1);
  return at::log_softmax(result.logits.narrow(0, 0, count - 1), -1).gather(1, targets).mean().neg();
}

struct Case {
  const char* model;
  bool recompute;
};

class Gradients : public ::testing::TestWithParam<OnDevice<Case>> {};

TEST_P(Gradients, EqualTheReference) {
  const std::filesystem::path folder =
      onset::testing::data(std::string("models/") + GetParam().value.model);
  const OrderedJson facts = OrderedJson::parse(read_file(folder / "reference.json"));
  const ReferenceTensors reference(folder / "reference.safetensors");
  Model model = Model::open(
      folder,
      {.compute = Compute::f32, .residency = Residency::resident, .device = GetParam().device});
  Decoder& decoder = model.decoder_to_change();
  Parameters parameters(decoder);
  decoder.recompute_blocks(GetParam().value.recompute);
  const at::Tensor loss = loss_of(decoder, reference.ids("input_ids.b"));
  EXPECT_NEAR(loss.item<double>(), facts.at("gradients").at("loss").get<double>(), 1e-5);
  loss.backward();
  const double atol = facts.at("tolerances").at("gradients").at("atol").get<double>();
  const double rtol = facts.at("tolerances").at("gradients").at("rtol").get<double>();
  // Of the file's tensors: some hold several layers.
  std::map<std::string, double> squares;
  for (const Parameter& parameter : parameters.all()) {
    at::Tensor gradient = parameter.value.grad();
    if (gradient.defined()) gradient = gradient.cpu();
    if (reference.has("grad." + parameter.name)) {
      ASSERT_TRUE(gradient.defined()) << parameter.name;
      const at::Tensor expected = reference.get("grad." + parameter.name);
      EXPECT_TRUE(at::allclose(gradient, expected.view_as(gradient), rtol, atol))
          << parameter.name << ": largest difference "
          << (gradient - expected.view_as(gradient)).abs().max().item<float>();
    }
    const double norm = gradient.defined() ? gradient.norm().item<double>() : 0.0;
    squares[parameter.name.substr(0, parameter.name.find('['))] += norm * norm;
  }
  int compared = 0;
  for (const auto& [name, sum] : squares) {
    if (!reference.has("gradnorm." + name)) continue;
    const double expected = reference.get("gradnorm." + name).item<double>();
    EXPECT_NEAR(std::sqrt(sum), expected, atol + rtol * expected) << name;
    ++compared;
  }
  EXPECT_EQ(compared, facts.at("gradients").at("parameters").get<int>());
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : {"llama", "mistral", "qwen2", "qwen3", "qwen3_moe"}) {
    all.push_back({model, false});
    all.push_back({model, true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Gradients, ::testing::ValuesIn(on_all_devices<Case>(cases())),
                         [](const auto& instance) {
                           const Case& value = instance.param.value;
                           return std::string(value.model) +
                                  (value.recompute ? "_recomputed" : "") +
                                  suffix_of(instance.param.device);
                         });

// Gradients in bf16 of all parameters, by name.
std::map<std::string, at::Tensor> rounded_gradients(const char* name, bool converted,
                                                    bool recompute) {
  const std::filesystem::path folder = onset::testing::data(std::string("models/") + name);
  const ReferenceTensors reference(folder / "reference.safetensors");
  Model model = Model::open(folder, {.compute = Compute::bf16, .residency = Residency::resident});
  Decoder& decoder = model.decoder_to_change();
  const Parameters parameters(decoder, converted);
  decoder.recompute_blocks(recompute);
  loss_of(decoder, reference.ids("input_ids.b")).backward();
  std::map<std::string, at::Tensor> found;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.value.grad().defined()) found[parameter.name] = parameter.value.grad();
  }
  return found;
}

class RoundedGradients : public ::testing::TestWithParam<const char*> {};

// Rounding every input of a product to 8 bits leaves the size of a gradient, and its direction.
TEST_P(RoundedGradients, AreNearTheReference) {
  const ReferenceTensors reference(onset::testing::data(std::string("models/") + GetParam()) /
                                   "reference.safetensors");
  int compared = 0;
  for (const auto& [name, gradient] : rounded_gradients(GetParam(), false, false)) {
    if (!reference.has("gradnorm." + name)) continue;
    const double size = reference.get("gradnorm." + name).item<double>();
    EXPECT_NEAR(gradient.norm().item<double>(), size, 0.05 * size + 1e-6) << name;
    ++compared;
    if (!reference.has("grad." + name)) continue;
    const at::Tensor expected = reference.get("grad." + name).view_as(gradient);
    EXPECT_LT((gradient - expected).norm().item<double>(), 0.05 * size) << name;
  }
  EXPECT_GT(compared, 10);
}

// A weight that is rounded in each product, and a block that is computed again, change no bit.
TEST_P(RoundedGradients, DoNotDependOnWhatIsKept) {
  const auto kept = rounded_gradients(GetParam(), true, false);
  for (const bool recompute : {false, true}) {
    const auto found = rounded_gradients(GetParam(), false, recompute);
    ASSERT_EQ(found.size(), kept.size());
    for (const auto& [name, gradient] : found) {
      EXPECT_TRUE(same_products(gradient, kept.at(name))) << name << " " << recompute;
    }
  }
}

// Of dense models: an expert's few rows are multiplied otherwise where a converted weight is kept.
INSTANTIATE_TEST_SUITE_P(Models, RoundedGradients,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3"),
                         [](const auto& instance) { return std::string(instance.param); });

// A product that an intervention changed is not what gate and up give again.
TEST(EditedProduct, HasItsOwnGradients) {
  const auto gradient_of = [](Compute compute) {
    const std::filesystem::path folder = onset::testing::data("models/llama");
    Model model = Model::open(folder, {.compute = compute, .residency = Residency::resident});
    Decoder& decoder = model.decoder_to_change();
    const Parameters parameters(decoder);
    Hooks hooks(model.config().layer_count());
    hooks.intervene(
        SiteSet::parse("layers.*.ffn_product", model.config()),
        [](const SiteContext&, const at::Tensor& product) { return product.mul(0.5).add(0.1); });
    loss_of(decoder, {1, 17, 42, 99, 5, 63}, &hooks).backward();
    at::Tensor down;
    for (const Parameter& parameter : parameters.all()) {
      if (parameter.name == "model.layers.0.mlp.down_proj.weight") down = parameter.value.grad();
    }
    return down;
  };
  // float64 goes by libtorch's own operations.
  const at::Tensor expected = gradient_of(Compute::f64);
  const at::Tensor found = gradient_of(Compute::f32);
  EXPECT_LT((found - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
}

class DoubleGradients : public ::testing::TestWithParam<OnDevice<const char*>> {};

// In float64, along random directions of each tensor.
TEST_P(DoubleGradients, EqualFiniteDifferences) {
  const std::filesystem::path folder =
      onset::testing::data(std::string("models/") + GetParam().value);
  Model model = Model::open(
      folder,
      {.compute = Compute::f64, .residency = Residency::resident, .device = GetParam().device});
  Decoder& decoder = model.decoder_to_change();
  Parameters parameters(decoder);
  decoder.recompute_blocks(true);
  const std::vector<std::int64_t> ids{1, 17, 42, 99, 5, 63};
  loss_of(decoder, ids).backward();
  constexpr double step = 1e-5;
  std::int64_t seed = 1;
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.value.grad().defined()) continue;
    const c10::AutoGradMode off(false);
    const at::Tensor direction = at::sin(at::arange(parameter.value.numel(), at::kDouble)
                                             .mul(1.7)
                                             .add(static_cast<double>(seed++)))
                                     .view(parameter.value.sizes())
                                     .to(parameter.value.device());
    const double along = (parameter.value.grad() * direction).sum().item<double>();
    at::Tensor weight = parameter.value;
    const auto loss_at = [&](double distance) {
      weight.add_(direction, distance);
      parameters.refresh();
      const double loss = loss_of(decoder, ids).item<double>();
      weight.sub_(direction, distance);
      return loss;
    };
    const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(along, difference, 1e-6 * std::max(1.0, std::abs(along))) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DoubleGradients,
                         ::testing::ValuesIn(on_all_devices<const char*>(
                             {"llama", "llama3", "mistral", "qwen3", "gemma2", "gemma3", "olmo2",
                              "phi3", "phi3_long", "mixtral", "qwen2_moe", "qwen3_moe",
                              "deepseek_v2", "deepseek_v2_lite", "deepseek_v3"})),
                         [](const auto& instance) {
                           return std::string(instance.param.value) +
                                  suffix_of(instance.param.device);
                         });

}  // namespace
}  // namespace onset::testing
