// PEFT's files: against PEFT's own adapters and logits, and by writing and reading.
#include "onset/train/peft.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "onset/train/adapt.h"
#include "onset/train/peft_config.h"
#include "onset/train/peft_names.h"
#include "support/fixture_copy.h"
#include "support/tensors.h"
#include "train/lora_support.h"
#include "train/training_fixtures.h"

namespace onset::testing {
namespace {

class PeftFixtures : public TrainingFixtures {};

TEST_F(PeftFixtures, FinalAdaptersGivePeftsLogits) {
  for (const std::string kind : {"llama", "qwen3"}) {
    const auto folder = onset::testing::data("training/sft_lora_" + kind);
    const ReferenceTensors expected(folder / "logits.safetensors");
    const Json rows = read("data_sft.json");
    auto ids = rows.at(0).at("input_ids").get<std::vector<std::int64_t>>();
    ids.resize(8);
    Model model = open_model(onset::testing::data("training/" + kind + "_tiny"));
    EXPECT_TRUE(close(logits_of(model, ids), expected.get("base"), {.atol = 2e-5, .rtol = 1e-5}));
    adapt(model, folder / "final");
    EXPECT_TRUE(
        close(logits_of(model, ids), expected.get("adapter"), {.atol = 2e-5, .rtol = 1e-5}));
  }
}

// The loss of step 0 over the tokens with labels, and the norm of its gradient by A and B.
TEST_F(PeftFixtures, InitialAdaptersGiveTheFirstLossAndGradient) {
  for (const std::string kind : {"llama", "qwen3"}) {
    const Json curve = read("sft_lora_" + kind + ".json");
    Model model = open_model(onset::testing::data("training/" + kind + "_tiny"));
    Decoder& decoder = model.decoder_to_change();
    PeftAdapter read_adapter =
        read_peft(decoder, onset::testing::data("training/sft_lora_" + kind + "/initial"));
    LoraAdapter adapter(decoder, read_adapter.config, read_adapter.tensors, /*trains=*/true);
    const Json rows = read("data_sft.json");
    const auto used =
        curve.at("hyper").at("micro").get<int>() * curve.at("hyper").at("micro_batch").get<int>();
    at::Tensor sum = at::zeros({});
    std::int64_t count = 0;
    for (int row = 0; row < used; ++row) {
      const auto ids = rows.at(row).at("input_ids").get<std::vector<std::int64_t>>();
      const at::Tensor labels =
          at::tensor(rows.at(row).at("labels").get<std::vector<std::int64_t>>()).slice(0, 1);
      const at::Tensor scored = labels.ge(0).nonzero().squeeze(1);
      const at::Tensor chosen = at::log_softmax(logits_of(model, ids), -1).index_select(0, scored);
      sum = sum - chosen.gather(1, labels.index_select(0, scored).unsqueeze(1)).sum();
      count += scored.size(0);
    }
    const Json& step = curve.at("steps").at(0);
    EXPECT_EQ(count, step.at("label_tokens").get<std::int64_t>());
    const at::Tensor loss = sum / static_cast<double>(count);
    const double expected = step.at("loss").get<double>();
    EXPECT_NEAR(loss.item<double>(), expected, 1e-6 * expected + 4e-6) << kind;
    loss.backward();
    double squares = 0;
    for (const Parameter& parameter : adapter.parameters()) {
      const double norm = parameter.value.grad().norm().item<double>();
      squares += norm * norm;
      // In the curve under the name of the module in memory: "..lora_A.default.weight".
      std::string name = parameter.name;
      name.insert(name.size() - 7, ".default");
      const Json& sums = curve.at("grad_step0").at(name);
      EXPECT_NEAR(parameter.value.grad().sum().item<double>(), sums.at(0).get<double>(), 2e-5)
          << name;
      EXPECT_NEAR(norm * norm, sums.at(1).get<double>(), 1e-5 + 1e-4 * norm * norm) << name;
    }
    EXPECT_NEAR(std::sqrt(squares), step.at("grad_norm").get<double>(), 1e-5);
  }
}

LoraConfig mixed_config() {
  LoraConfig config;
  config.rank = 3;
  config.alpha = 7;
  config.dropout = 0.25;
  config.rslora = true;
  config.targets.names = {"q_proj", "v_proj", "down_proj"};
  config.rank_pattern = {{R"(layers\.1\.self_attn\.q_proj)", 2}};
  config.alpha_pattern = {{"down_proj", 4.5}};
  config.modules_to_save = {"norm", "embed_tokens"};
  config.base_model = "some/base";
  return config;
}

TEST(Peft, ReadsWhatItWrites) {
  const c10::AutoGradMode off(false);
  for (const char* name : {"llama", "gemma3", "phi3", "qwen3_moe", "deepseek_v2"}) {
    LoraConfig config = mixed_config();
    if (std::string(name) == "phi3") config.targets.names = {"qkv_proj", "down_proj"};
    if (std::string(name) == "phi3") config.rank_pattern = {{"layers.1.self_attn.qkv_proj", 2}};
    if (std::string(name) == "deepseek_v2") {
      config.targets.names = {"kv_b_proj", "down_proj"};
      config.rank_pattern.clear();
    }
    Model model = open_model(onset::testing::data(std::string("models/") + name));
    Decoder& decoder = model.decoder_to_change();
    const LoraAdapter adapter(decoder, config, drawn_lora(decoder, config), true);
    const TemporaryFolder folder;
    write_peft(folder.path() / "adapter", adapter);
    Model other = open_model(onset::testing::data(std::string("models/") + name));
    adapt(other, folder.path() / "adapter",
          {.warn = [](const auto& warning) { ADD_FAILURE() << warning; }, .progress = {}});
    EXPECT_EQ(other.adaptation(), adapter_facts(adapter)) << name;
    EXPECT_TRUE(same_products(logits_of(other, some_ids), logits_of(model, some_ids))) << name;
    const LoraConfig read = read_peft_config(folder.path() / "adapter");
    EXPECT_EQ(read.rank, 3);
    EXPECT_DOUBLE_EQ(read.dropout, 0.25);
    EXPECT_EQ(read.base_model, "some/base");
  }
}

// An adapter that is continued: what the configuration chose by a regex is names in the file.
TEST(Peft, WritesNamesForWhateverChoseTheModules) {
  Model model = open_model(data("models/llama"));
  Decoder& decoder = model.decoder_to_change();
  LoraConfig config;
  config.targets.regex = R"(.*\.layers\.0\..*_proj|.*k_proj)";
  config.modules_to_save = {"model.norm"};
  const LoraAdapter adapter(decoder, config, new_lora(decoder, config, 1), false);
  const TemporaryFolder folder;
  write_peft(folder.path(), adapter);
  const LoraConfig written = read_peft_config(folder.path());
  const std::vector<std::string> names{
      "k_proj",
      "model.layers.0.mlp.down_proj",
      "model.layers.0.mlp.gate_proj",
      "model.layers.0.mlp.up_proj",
      "model.layers.0.self_attn.o_proj",
      "model.layers.0.self_attn.q_proj",
      "model.layers.0.self_attn.v_proj",
  };
  EXPECT_EQ(written.targets.names, names);
  // "norm" alone would save every norm in PEFT, which looks at the end of names without dots.
  EXPECT_EQ(written.modules_to_save, std::vector<std::string>{"model.norm"});
}

// Written by hand in the layout of PEFT's ParamWrapper: per expert e, B[:, :, e] A[e] of the
// reshaped matrices, gate above up.
TEST(Peft, ReadsStacksOfExpertsAsOneParameter) {
  Toy toy = copy_of_fixture("qwen3_moe");
  Model model = open_model(data("models/qwen3_moe"));
  const MixtureConfig& mixture = model.config().mixture;
  const std::int64_t hidden = model.config().hidden;
  const std::int64_t experts = mixture.experts;
  constexpr std::int64_t rank = 2;
  const at::Tensor down_a = wave({rank * experts, mixture.ffn}, 1).mul(0.1);
  const at::Tensor down_b = wave({hidden, rank * experts}, 2).mul(0.1);
  const at::Tensor up_a = wave({rank * experts, hidden}, 3).mul(0.1);
  const at::Tensor up_b = wave({2 * mixture.ffn, rank * experts}, 4).mul(0.1);
  const std::string block = "model.layers.1.mlp.experts";
  const auto change = [&](const at::Tensor& a, const at::Tensor& b, std::int64_t e) {
    const at::Tensor of_expert = b.view({-1, rank, experts}).select(2, e);
    return at::mm(of_expert, a.view({experts, rank, -1}).select(0, e)).mul(4.0 / rank);
  };
  const auto add = [&](const std::string& name, const at::Tensor& values) {
    std::vector<float>& weight = toy.values.at(name);
    const at::Tensor flat = values.contiguous();
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] += flat.const_data_ptr<float>()[i];
  };
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::string expert = str_cat(block, ".", e, ".");
    add(expert + "down_proj.weight", change(down_a, down_b, e));
    const at::Tensor both = change(up_a, up_b, e);
    add(expert + "gate_proj.weight", both.narrow(0, 0, mixture.ffn));
    add(expert + "up_proj.weight", both.narrow(0, mixture.ffn, mixture.ffn));
  }
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  const auto put = [&](const std::string& name, const at::Tensor& tensor) {
    const auto bytes = std::as_bytes(
        std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())));
    tensors.push_back({"base_model.model." + name,
                       DType::f32,
                       tensor.sizes().vec(),
                       {bytes.begin(), bytes.end()}});
  };
  put(block + ".base_layer.lora_A.weight", up_a);
  put(block + ".base_layer.lora_B.weight", up_b);
  put(block + ".lora_A.weight", down_a);
  put(block + ".lora_B.weight", down_b);
  write_safetensors(folder.path() / "adapter_model.safetensors", tensors);
  static_cast<void>(
      folder.write("adapter_config.json",
                   R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": [],
          "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]})"));
  adapt(model, folder.path());
  EXPECT_TRUE(model.adaptation().at("modules").get<std::string>().starts_with(
      str_cat(3 * experts, " modules: ")))
      << model.adaptation();
  toy.write(folder.path() / "merged");
  EXPECT_TRUE(close(logits_of(model, some_ids),
                    logits_of(open_model(folder.path() / "merged"), some_ids),
                    {.atol = 1e-4, .rtol = 1e-4}));
}

TEST(PeftNames, AreParsed) {
  const auto name = parse_peft_name("base_model.model.model.layers.0.mlp.up_proj.lora_A.weight");
  EXPECT_EQ(name.module, "model.layers.0.mlp.up_proj");
  EXPECT_EQ(name.kind, PeftTensorKind::lora_a);
  EXPECT_EQ(parse_peft_name("x.lora_B.default.weight").module, "x");
  EXPECT_EQ(parse_peft_name("base_model.model.lm_head.modules_to_save.weight").module, "lm_head");
  EXPECT_EQ(parse_peft_name("base_model.model.lm_head.base_layer.weight").module, "lm_head");
  EXPECT_EQ(parse_peft_name("x.q_proj.bias").kind, PeftTensorKind::bias);
  for (const char* other : {"x.lora_magnitude_vector.weight", "x.lora_embedding_A", "x.lora_B.bias",
                            "x.prompt_embeddings"}) {
    EXPECT_EQ(parse_peft_name(other).kind, PeftTensorKind::unsupported) << other;
  }
}

TEST(PeftNames, OfOneModuleAreTheSameInEverySpelling) {
  EXPECT_EQ(canonical_module("model.language_model.layers.3.mlp.up_proj"),
            canonical_module("language_model.model.layers.3.mlp.up_proj"));
  EXPECT_EQ(canonical_module("model.layers.3.block_sparse_moe.experts.2.w3"),
            canonical_module("model.layers.3.mlp.experts.2.up_proj"));
  EXPECT_EQ(canonical_module("model.layers.3.block_sparse_moe.gate"),
            canonical_module("model.layers.3.mlp.gate"));
  EXPECT_NE(canonical_module("model.norm"), canonical_module("model.layers.0.norm"));
}

// The toy's adapter with one thing changed: what the message must say.
class BrokenAdapters : public ::testing::Test {
 protected:
  void SetUp() override {
    Toy toy;
    toy.draw();
    toy.write(folder_.path() / "model");
    Model model = open_model(folder_.path() / "model");
    LoraConfig config;
    config.rank = 2;
    config.targets.names = {"q_proj"};
    const LoraAdapter adapter(model.decoder_to_change(), config,
                              new_lora(model.decoder_to_change(), config, 0), false);
    write_peft(folder_.path() / "adapter", adapter);
  }

  [[nodiscard]] std::string message() const {
    Model model = open_model(folder_.path() / "model");
    return error_of([&] { adapt(model, folder_.path() / "adapter"); });
  }
  [[nodiscard]] std::string message_with(const std::string& key, const Json& value) const {
    Json config = read_json(folder_.path() / "adapter/adapter_config.json");
    const Json before = config;
    config[key] = value;
    static_cast<void>(folder_.write("adapter/adapter_config.json", config.dump()));
    const std::string text = message();
    static_cast<void>(folder_.write("adapter/adapter_config.json", before.dump()));
    return text;
  }
  void write_tensors(const std::map<std::string, std::vector<std::int64_t>>& shapes) const {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : shapes) {
      std::int64_t count = 4;
      for (const std::int64_t size : shape) count *= size;
      tensors.push_back({"base_model.model." + name, DType::f32, shape,
                         std::vector<std::byte>(static_cast<std::size_t>(count))});
    }
    write_safetensors(folder_.path() / "adapter/adapter_model.safetensors", tensors);
  }

  TemporaryFolder folder_;
};

TEST_F(BrokenAdapters, SayWhichFeatureIsNotSupported) {
  const std::vector<std::pair<std::string, Json>> features{
      {"use_dora", true},
      {"lora_bias", true},
      {"fan_in_fan_out", true},
      {"trainable_token_indices", {1, 2}},
      {"layer_replication", Json::parse("[[0, 2]]")},
      {"use_qalora", true},
      {"a_feature_of_tomorrow", "on"}};
  for (const auto& [key, value] : features) {
    EXPECT_NE(message_with(key, value).find(str_cat("has \"", key, "\" set")), std::string::npos)
        << message_with(key, value);
  }
  EXPECT_NE(message_with("peft_type", "IA3").find("kind \"IA3\""), std::string::npos);
  EXPECT_NE(message_with("bias", "all").find("trains biases"), std::string::npos);
  EXPECT_NE(message_with("task_type", "SEQ_CLS").find("SEQ_CLS"), std::string::npos);
  EXPECT_NE(message_with("init_lora_weights", "pissa").find("pissa"), std::string::npos);
  EXPECT_NE(message_with("r", 0).find("the rank is 0"), std::string::npos);
  EXPECT_NE(message_with("r", "two").find("key \"r\" should be"), std::string::npos);
}

TEST_F(BrokenAdapters, SayWhichTensorDoesNotFit) {
  const std::string q = "model.layers.0.self_attn.q_proj";
  write_tensors({{q + ".lora_A.weight", {2, 9}}, {q + ".lora_B.weight", {8, 2}}});
  EXPECT_NE(message().find("has shape [2, 9], this model needs [2, 8]"), std::string::npos);
  write_tensors({{q + ".lora_A.weight", {3, 8}}, {q + ".lora_B.weight", {8, 3}}});
  EXPECT_NE(message().find("has shape [3, 8], this model needs [2, 8]"), std::string::npos);
  write_tensors({{q + ".lora_A.weight", {2, 8}}});
  EXPECT_NE(message().find(q + " has lora_A without lora_B"), std::string::npos);
  write_tensors({{"model.layers.2.self_attn.q_proj.lora_A.weight", {2, 8}},
                 {"model.layers.2.self_attn.q_proj.lora_B.weight", {8, 2}}});
  EXPECT_NE(message().find("which this model does not have"), std::string::npos);
  write_tensors({{"lm_head.weight", {33, 8}}});
  EXPECT_NE(message().find("has shape [33, 8], this model needs [32, 8]"), std::string::npos);
  write_tensors({{"model.embed_tokens.lora_embedding_A", {2, 32}}});
  EXPECT_NE(message().find("adapts the embedding"), std::string::npos);
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values(16, nan);
  const auto bytes = std::as_bytes(std::span(values));
  write_safetensors(folder_.path() / "adapter/adapter_model.safetensors",
                    {{"base_model.model." + q + ".lora_A.weight",
                      DType::f32,
                      {2, 8},
                      {bytes.begin(), bytes.end()}},
                     {"base_model.model." + q + ".lora_B.weight",
                      DType::f32,
                      {8, 2},
                      {bytes.begin(), bytes.end()}}});
  EXPECT_NE(message().find("holds NaN"), std::string::npos) << message();
  write_tensors({{"score.weight", {2, 8}}});
  EXPECT_NE(message().find("score.weight belongs to no module"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
