// Adapters on models: against weights that the test changes by the formula, and against finite
// differences.
#include "onset/train/lora.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "support/fixture_copy.h"
#include "support/tensors.h"
#include "train/lora_support.h"

namespace onset::testing {
namespace {

LoraConfig every_linear() {
  LoraConfig config;
  config.rank = 3;
  config.alpha = 5;
  config.targets.regex = ".*";
  return config;
}

class LoraModels : public ::testing::TestWithParam<const char*> {};

// Fused projections, experts, routers, latents, a tied head: y = W x + s B A x everywhere.
TEST_P(LoraModels, AdaptedEqualsTheSameModelWithChangedWeights) {
  const auto folder = onset::testing::data(std::string("models/") + GetParam());
  Model model = open_model(folder);
  const at::Tensor plain = logits_of(model, some_ids);
  LoraAdapter adapter(model.decoder_to_change(), every_linear(),
                      drawn_lora(model.decoder_to_change(), every_linear()), /*trains=*/false);
  const at::Tensor adapted = logits_of(model, some_ids);
  Toy toy = copy_of_fixture(GetParam());
  merge_by_hand(toy, adapter.tensors());
  const TemporaryFolder changed;
  toy.write(changed.path());
  const at::Tensor expected = logits_of(open_model(changed.path()), some_ids);
  EXPECT_TRUE(close(adapted, expected, {.atol = 2e-4, .rtol = 1e-4}));
  EXPECT_GT((adapted - plain).abs().max().item<double>(), 0.01);
  adapter.detach();
  EXPECT_TRUE(same_products(logits_of(model, some_ids), plain));
  adapter.attach();
  EXPECT_TRUE(same_products(logits_of(model, some_ids), adapted));
}

TEST_P(LoraModels, StreamingAndDenseWeightsHaveTheAdapterToo) {
  const auto folder = onset::testing::data(std::string("models/") + GetParam());
  Model resident = open_model(folder);
  const LoraTensors tensors = drawn_lora(resident.decoder_to_change(), every_linear());
  const LoraAdapter first(resident.decoder_to_change(), every_linear(), tensors, false);
  Model streamed = Model::open(folder, {.compute = Compute::f32});
  const LoraAdapter second(streamed.decoder_to_change(), every_linear(), tensors, false);
  EXPECT_TRUE(close(logits_of(streamed, some_ids), logits_of(resident, some_ids),
                    {.atol = 1e-5, .rtol = 1e-5}));
  Toy toy = copy_of_fixture(GetParam());
  merge_by_hand(toy, tensors);
  for (const LinearModule& module : linear_modules(streamed.decoder_to_change())) {
    std::vector<at::Tensor> rows;
    for (const Linear* part : module.parts) rows.push_back(part->dense(at::kFloat));
    const at::Tensor weight = at::cat(rows);
    const at::Tensor expected =
        at::from_blob(toy.values.at(module.name + ".weight").data(), weight.sizes());
    EXPECT_TRUE(close(weight, expected, {.atol = 1e-6, .rtol = 1e-6})) << module.name;
    EXPECT_TRUE(close(module.parts.front()->dense_row(1 % weight.size(0), at::kFloat),
                      expected[1 % weight.size(0)], {.atol = 1e-6, .rtol = 1e-6}))
        << module.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LoraModels,
                         ::testing::Values("llama", "qwen2", "phi3", "gemma3", "olmo2", "mixtral",
                                           "qwen2_moe", "qwen3_moe", "deepseek_v2",
                                           "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& one) { return std::string(one.param); });

class LoraGguf : public ::testing::TestWithParam<const char*> {};

// Names are those of transformers, and rows of Q and K are in transformers' order, in a GGUF file
// too.
TEST_P(LoraGguf, TheSameAdapterFitsBothFormats) {
  const auto folder = onset::testing::data(std::string("models/") + GetParam());
  Model original = open_model(folder);
  Model converted = open_model(folder / "f32.gguf");
  LoraConfig config = every_linear();
  config.modules_to_save = {"input_layernorm"};
  const LoraTensors tensors = drawn_lora(original.decoder_to_change(), config);
  const LoraTensors own = drawn_lora(converted.decoder_to_change(), config);
  ASSERT_EQ(own.adapted.size(), tensors.adapted.size());
  for (std::size_t i = 0; i < own.adapted.size(); ++i) {
    EXPECT_EQ(own.adapted[i].name, tensors.adapted[i].name);
  }
  const LoraAdapter first(original.decoder_to_change(), config, tensors, false);
  const LoraAdapter second(converted.decoder_to_change(), config, tensors, false);
  EXPECT_TRUE(close(logits_of(converted, some_ids), logits_of(original, some_ids),
                    {.atol = 1e-4, .rtol = 1e-4}));
}

INSTANTIATE_TEST_SUITE_P(Models, LoraGguf,
                         ::testing::Values("llama", "qwen2", "qwen3", "mixtral", "qwen3_moe"),
                         [](const auto& one) { return std::string(one.param); });

at::Tensor loss_of(const Model& model) {
  const at::Tensor logits = logits_of(model, some_ids);
  const std::int64_t count = logits.size(0) - 1;
  const at::Tensor targets = at::tensor(some_ids, at::kLong).narrow(0, 1, count).unsqueeze(1);
  return at::log_softmax(logits.narrow(0, 0, count), -1).gather(1, targets).mean().neg();
}

class LoraGradients : public ::testing::TestWithParam<const char*> {};

// In float64, along one direction of each tensor, with blocks computed again.
TEST_P(LoraGradients, EqualFiniteDifferences) {
  Model model = open_model(onset::testing::data(std::string("models/") + GetParam()), Compute::f64);
  Decoder& decoder = model.decoder_to_change();
  LoraConfig config = every_linear();
  config.modules_to_save = {"input_layernorm", "embed_tokens"};
  LoraAdapter adapter(decoder, config, drawn_lora(decoder, config), /*trains=*/true);
  decoder.recompute_blocks(true);
  loss_of(model).backward();
  constexpr double step = 1e-5;
  double phase = 100;
  int compared = 0;
  for (const Parameter& parameter : adapter.parameters()) {
    if (!parameter.value.grad().defined()) continue;  // an expert that no token was sent to
    const c10::AutoGradMode off(false);
    const at::Tensor direction = wave(parameter.value.sizes(), phase += 1, at::kDouble);
    const double along = (parameter.value.grad() * direction).sum().item<double>();
    at::Tensor weight = parameter.value;
    const auto loss_at = [&](double distance) {
      weight.add_(direction, distance);
      adapter.refresh();
      const double loss = loss_of(model).item<double>();
      weight.sub_(direction, distance);
      return loss;
    };
    const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(along, difference, 1e-6 * std::max(1.0, std::abs(along))) << parameter.name;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

INSTANTIATE_TEST_SUITE_P(Models, LoraGradients,
                         ::testing::Values("llama", "phi3", "gemma3", "qwen3_moe",
                                           "deepseek_v2_lite"),
                         [](const auto& one) { return std::string(one.param); });

// Experts are computed many at once where nothing is trained; here only they are.
TEST(LoraAdapter, TrainsExpertsAlone) {
  Model model = open_model(data("models/qwen3_moe"));
  Decoder& decoder = model.decoder_to_change();
  LoraConfig config;
  config.targets.names = {"down_proj"};
  LoraAdapter adapter(decoder, config, drawn_lora(decoder, config), true);
  loss_of(model).backward();
  int with_gradient = 0;
  for (const Parameter& parameter : adapter.parameters()) {
    if (parameter.name.find("layers.0.") == std::string::npos) continue;
    with_gradient += parameter.value.grad().defined() ? 1 : 0;
  }
  EXPECT_GT(with_gradient, 0);
}

// A leaf that several layers have parts of, after an optimiser wrote to it.
TEST(LoraAdapter, AFusedModuleTrainsStepAfterStep) {
  Model model = open_model(data("models/phi3"));
  Decoder& decoder = model.decoder_to_change();
  LoraConfig config;
  config.targets.names = {"qkv_proj", "gate_up_proj"};
  config.modules_to_save = {"lm_head"};
  LoraAdapter adapter(decoder, config, new_lora(decoder, config, 1), true);
  double before = 1e9;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor loss = loss_of(model);
    EXPECT_LT(loss.item<double>(), before) << "step " << step;
    before = loss.item<double>();
    loss.backward();
    const c10::AutoGradMode off(false);
    for (Parameter& parameter : adapter.parameters()) {
      parameter.value.sub_(parameter.value.grad(), 0.05);
      parameter.value.mutable_grad() = at::Tensor();
    }
    adapter.refresh();
  }
}

TEST(LoraAdapter, BeginsAsTheModelAndIsDrawnByTheSeed) {
  const c10::AutoGradMode off(false);
  Model model = open_model(data("models/llama"));
  Decoder& decoder = model.decoder_to_change();
  const at::Tensor plain = logits_of(model, some_ids);
  LoraConfig config;
  config.all_linear = true;
  const LoraTensors tensors = new_lora(decoder, config, 3);
  const std::int64_t layers = decoder.config().layer_count();
  EXPECT_EQ(std::ssize(tensors.adapted), 7 * layers);
  EXPECT_TRUE(summary(tensors).starts_with(
      str_cat(7 * layers, " modules: ", layers, " q_proj, ", layers, " k_proj")))
      << summary(tensors);
  EXPECT_EQ(fingerprint(tensors), fingerprint(new_lora(decoder, config, 3)));
  EXPECT_NE(fingerprint(tensors), fingerprint(new_lora(decoder, config, 4)));
  // Uniform within 1 / sqrt(in): its variance is a third of the square of that.
  const at::Tensor& a = tensors.adapted.front().down;
  const double bound = 1 / std::sqrt(static_cast<double>(a.size(1)));
  EXPECT_LE(a.abs().max().item<double>(), bound);
  EXPECT_NEAR(a.var().item<double>(), bound * bound / 3, bound * bound / 3 * 0.25);
  EXPECT_FALSE(at::equal(a, tensors.adapted[1].down));
  const LoraAdapter adapter(decoder, config, tensors, true);
  EXPECT_TRUE(same_products(logits_of(model, some_ids), plain));
}

// E[dropout(x)] = x, and the same numbers give the same mask.
TEST(LoraAdapter, DropsOnlyInTrainingAndByTheSeed) {
  Model model = open_model(data("models/llama"));
  Decoder& decoder = model.decoder_to_change();
  LoraConfig config;
  config.all_linear = true;
  config.dropout = 0.5;
  LoraAdapter adapter(decoder, config, drawn_lora(decoder, config), true);
  const at::Tensor whole = logits_of(model, some_ids);
  *adapter.dropout() = {.seed = 1, .training = true};
  const at::Tensor first = logits_of(model, some_ids);
  EXPECT_FALSE(at::equal(first, whole));
  EXPECT_TRUE(same_products(logits_of(model, some_ids), first));
  adapter.dropout()->seed = 2;
  EXPECT_FALSE(at::equal(logits_of(model, some_ids), first));
  adapter.dropout()->training = false;
  EXPECT_TRUE(same_products(logits_of(model, some_ids), whole));
}

// The embedding is trained and the head is not, or follows it.
TEST(LoraAdapter, SavedEmbeddingsUntieOrStayTied) {
  for (const bool keep_tied : {false, true}) {
    Toy toy;
    toy.config["tie_word_embeddings"] = true;
    toy.draw();
    const TemporaryFolder tied;
    toy.write(tied.path());
    Model model = open_model(tied.path());
    Decoder& decoder = model.decoder_to_change();
    LoraConfig config;
    config.modules_to_save = {"embed_tokens"};
    config.keep_tied = keep_tied;
    const LoraAdapter adapter(decoder, config, drawn_lora(decoder, config), false);
    toy.config["tie_word_embeddings"] = false;
    std::vector<float>& embedding = toy.values.at("model.embed_tokens.weight");
    toy.shapes["lm_head.weight"] = toy.shapes.at("model.embed_tokens.weight");
    if (!keep_tied) toy.values["lm_head.weight"] = embedding;
    const at::Tensor trained = adapter.tensors().saved.front().weight.contiguous();
    std::copy_n(trained.const_data_ptr<float>(), trained.numel(), embedding.begin());
    if (keep_tied) toy.values["lm_head.weight"] = embedding;
    const TemporaryFolder expected;
    toy.write(expected.path());
    const std::vector<std::int64_t> ids{3, 1, 4, 1, 5};
    EXPECT_TRUE(close(logits_of(model, ids), logits_of(open_model(expected.path()), ids),
                      {.atol = 1e-5, .rtol = 1e-5}))
        << keep_tied;
  }
}

TEST(NewLora, RefusesNamesThatFitNothing) {
  Model model = open_model(data("models/llama"));
  const auto message = [&](const LoraConfig& config) {
    return error_of([&] { static_cast<void>(new_lora(model.decoder_to_change(), config, 0)); });
  };
  LoraConfig config;
  EXPECT_NE(message(config).find("LoRA needs the modules that it changes"), std::string::npos);
  config.targets.names = {"q_proj", "v_porj"};
  EXPECT_NE(message(config).find("did you mean \"v_proj\"?"), std::string::npos);
  config.targets.names = {"embed_tokens"};
  EXPECT_NE(message(config).find("modules_to_save"), std::string::npos);
  config.targets = {.names = {}, .regex = ".*wrong"};
  EXPECT_NE(message(config).find("leave no module"), std::string::npos);
  config.targets = {.names = {"q_proj"}, .regex = {}};
  config.modules_to_save = {"lm_hed"};
  EXPECT_NE(message(config).find("did you mean \"lm_head\"?"), std::string::npos);
  config.modules_to_save.clear();
  config.rank_pattern = {{"k_proj", 2}};
  EXPECT_NE(message(config).find("the rank pattern \"k_proj\" fits no adapted module"),
            std::string::npos);
}

TEST(NewLora, ItsSizeIsKnownBeforeItIsMade) {
  for (const char* name : {"phi3", "mixtral", "deepseek_v2"}) {
    Model model = open_model(onset::testing::data(std::string("models/") + name));
    LoraConfig config;
    config.rank = 3;
    config.all_linear = true;
    config.rank_pattern = {{"o_proj", 7}};
    double made = 0;
    for (const AdaptedModule& module : new_lora(model.decoder_to_change(), config, 1).adapted) {
      made += static_cast<double>(module.down.numel() + module.up.numel());
    }
    EXPECT_EQ(new_lora_weights(model.decoder_to_change(), config), made) << name;
  }
}

}  // namespace
}  // namespace onset::testing
