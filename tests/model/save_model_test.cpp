// Models of every family saved as Hugging Face folders and opened again.
#include "onset/model/save_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>

#include "onset/base/file.h"
#include "onset/model/config_json.h"
#include "onset/model/decoder.h"
#include "onset/model/modules.h"
#include "onset/model/parameters.h"
#include "support/file_size_limit.h"
#include "support/fixture_copy.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::int64_t> some_ids{1, 17, 9, 4, 60, 33, 2, 101, 77, 5};

at::Tensor logits_of(const Model& model, const std::vector<std::int64_t>& ids = some_ids) {
  const c10::NoGradGuard no_gradients;
  const std::vector<SequenceInput> batch{{.ids = ids}};
  return model.decoder().forward(batch, LogitRows::all).logits;
}

OrderedJson json_of(const fs::path& path) { return OrderedJson::parse(read_file(path)); }

std::map<std::string, TensorInfo> tensors_of(const fs::path& folder) {
  std::map<std::string, TensorInfo> tensors;
  const Checkpoint checkpoint = Checkpoint::open(folder);
  for (const TensorInfo& info : checkpoint.tensors()) tensors[info.name] = info;
  return tensors;
}

class Saved : public ::testing::TestWithParam<std::string> {};

// The file holds the very weights: by our own kernels one number is computed like the other.
TEST_P(Saved, OpensToTheSameLogits) {
  const fs::path source = onset::testing::data("models/" + GetParam());
  const TemporaryFolder folder;
  const Model model = Model::open(source);
  save_model(model, folder.path());
  const Model again = Model::open(folder.path());
  EXPECT_TRUE(same_products(logits_of(again), logits_of(model)));
}

// Stacks of experts are taken apart; the other tensors have the base's names, types and bytes.
TEST_P(Saved, HoldsTheTensorsOfTheBase) {
  const fs::path source = onset::testing::data("models/" + GetParam());
  const TemporaryFolder folder;
  save_model(Model::open(source), folder.path());
  const Checkpoint base = Checkpoint::open(source);
  const Checkpoint saved = Checkpoint::open(folder.path());
  int compared = 0;
  for (const TensorInfo& info : base.tensors()) {
    if (info.name.find(".experts.") != std::string::npos && info.shape.size() == 3) continue;
    std::string name = info.name;
    if (GetParam() == "mixtral") {
      if (const auto at = name.find(".mlp."); at != std::string::npos) {
        name.replace(at, 5, ".block_sparse_moe.");
      }
    }
    const TensorInfo* found = saved.find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(describe(*found), describe(info));
    const auto a = base.data(info);
    const auto b = saved.data(*found);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

// Nothing of it has changed.
TEST_P(Saved, KeepsTheConfigurationOfTheBase) {
  const fs::path source = onset::testing::data("models/" + GetParam());
  const TemporaryFolder folder;
  save_model(Model::open(source), folder.path());
  EXPECT_EQ(json_of(folder.path() / "config.json"), json_of(source / "config.json"));
  EXPECT_EQ(read_file(folder.path() / "generation_config.json"),
            read_file(source / "generation_config.json"));
}

INSTANTIATE_TEST_SUITE_P(Families, Saved,
                         ::testing::Values("deepseek_v2", "deepseek_v2_lite", "deepseek_v3",
                                           "gemma2", "gemma3", "llama", "llama3", "mistral",
                                           "mixtral", "olmo2", "phi3", "phi3_long", "qwen2",
                                           "qwen2_moe", "qwen3", "qwen3_moe"),
                         [](const auto& parameter) { return parameter.param; });

struct Gguf {
  const char* folder;
  const char* file;
};

class SavedGguf : public ::testing::TestWithParam<Gguf> {
 protected:
  void SetUp() override {
    source_ = any_fixture(std::string("models/") + GetParam().folder + "/" + GetParam().file);
    if (source_.empty()) GTEST_SKIP() << "the file is not in the repository, nor beside it";
  }

  fs::path source_;
};

TEST_P(SavedGguf, OpensToTheSameLogits) {
  const TemporaryFolder folder;
  const Model model = Model::open(source_);
  save_model(model, folder.path());
  const Model again = Model::open(folder.path());
  // The weights are the same numbers, multiplied in another order of rows or by another kernel.
  EXPECT_TRUE(close(logits_of(again), logits_of(model), {.atol = 2e-5, .rtol = 2e-5}));
}

// What the base's own config.json says, as far as it is written.
TEST_P(SavedGguf, SaysWhatTheConfigurationOfTheBaseSays) {
  const TemporaryFolder folder;
  save_model(Model::open(source_), folder.path());
  const OrderedJson found = json_of(folder.path() / "config.json");
  const OrderedJson expected =
      json_of(onset::testing::data(std::string("models/") + GetParam().folder) / "config.json");
  for (const char* key : {"architectures",
                          "model_type",
                          "vocab_size",
                          "hidden_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "max_position_embeddings",
                          "rms_norm_eps",
                          "tie_word_embeddings",
                          "num_experts_per_tok",
                          "moe_intermediate_size",
                          "mlp_only_layers",
                          "norm_topk_prob",
                          "kv_lora_rank",
                          "q_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "v_head_dim",
                          "first_k_dense_replace",
                          "n_group",
                          "topk_group",
                          "n_routed_experts",
                          "n_shared_experts",
                          "routed_scaling_factor"}) {
    if (!expected.contains(key)) continue;
    ASSERT_TRUE(found.contains(key)) << key;
    EXPECT_EQ(found.at(key), expected.at(key)) << key;
  }
  const OrderedJson& rope = expected.at("rope_parameters");
  EXPECT_EQ(found.at("rope_theta"), rope.at("rope_theta"));
  EXPECT_EQ(found.at("rope_scaling").is_null(), rope.at("rope_type") == "default");
  EXPECT_EQ(found.at("torch_dtype"), "float32");
}

INSTANTIATE_TEST_SUITE_P(
    Files, SavedGguf,
    ::testing::Values(Gguf{"llama_gguf", "q4_1.gguf"}, Gguf{"llama_gguf", "kmix.gguf"},
                      Gguf{"llama_gguf", "bf16.gguf"}, Gguf{"llama", "f32.gguf"},
                      Gguf{"llama3", "f32.gguf"}, Gguf{"qwen2", "f32.gguf"},
                      Gguf{"qwen2_moe", "q8_0.gguf"}, Gguf{"qwen3", "f32.gguf"},
                      Gguf{"qwen3_moe", "f32.gguf"}, Gguf{"mixtral", "f32.gguf"},
                      Gguf{"deepseek_v2_lite", "f32.gguf"}, Gguf{"deepseek_v3", "f32.gguf"}),
    [](const auto& parameter) {
      const std::string file = parameter.param.file;
      return std::string(parameter.param.folder) + "_" + file.substr(0, file.find('.'));
    });

class SavedExactGguf : public ::testing::TestWithParam<const char*> {};

// Where the file holds the weights as they are, the logits are those of transformers.
TEST_P(SavedExactGguf, GivesTheReferenceLogits) {
  const fs::path source = onset::testing::data(std::string("models/") + GetParam());
  const TemporaryFolder folder;
  save_model(Model::open(source / "f32.gguf"), folder.path());
  const ReferenceTensors reference(source / "reference.safetensors");
  const Model again = Model::open(folder.path());
  for (const std::string prompt : {"a", "b"}) {
    EXPECT_TRUE(close(logits_of(again, reference.ids("input_ids." + prompt)),
                      reference.get("logits." + prompt), {.atol = 1e-4, .rtol = 1e-4}));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SavedExactGguf,
                         ::testing::Values("llama", "llama3", "qwen2", "qwen3", "qwen3_moe",
                                           "mixtral", "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(SaveModel, WritesWhatWasTrained) {
  const TemporaryFolder folder;
  Model model = Model::open(onset::testing::data("models/gemma2"));
  Parameters parameters(model.decoder_to_change());
  // Below the steps of float32 near 1: lost in 1 + w.
  constexpr float small = 1.25e-9F;
  for (const Parameter& parameter : parameters.all()) {
    const c10::NoGradGuard no_gradients;
    if (parameter.name == "model.layers.1.input_layernorm.weight") parameter.value.fill_(small);
    if (parameter.name == "model.layers.2.mlp.up_proj.weight") parameter.value.add_(0.25);
  }
  parameters.refresh();
  save_model(model, folder.path(), {.parameters = &parameters});
  const Checkpoint saved = Checkpoint::open(folder.path());
  const auto values_of = [&](const std::string& name, const Checkpoint& checkpoint) {
    const TensorInfo& info = checkpoint.require(name);
    std::vector<float> values(static_cast<std::size_t>(info.elements()));
    to_float32(info.dtype, checkpoint.data(info), values);
    return values;
  };
  for (const float value : values_of("model.layers.1.input_layernorm.weight", saved)) {
    EXPECT_EQ(value, small);
  }
  const Checkpoint base = Checkpoint::open(onset::testing::data("models/gemma2"));
  const auto before = values_of("model.layers.2.mlp.up_proj.weight", base);
  const auto after = values_of("model.layers.2.mlp.up_proj.weight", saved);
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_EQ(after[i], before[i] + 0.25F);
  EXPECT_TRUE(same_products(logits_of(model), logits_of(Model::open(folder.path()))));
}

TEST(SaveModel, RoundsToTheChosenType) {
  const TemporaryFolder folder;
  save_model(Model::open(onset::testing::data("models/qwen2")), folder.path(),
             {.dtype = DType::bf16});
  const Checkpoint base = Checkpoint::open(onset::testing::data("models/qwen2"));
  const Checkpoint saved = Checkpoint::open(folder.path());
  for (const TensorInfo& info : saved.tensors()) {
    EXPECT_EQ(dtype_info(info.dtype).name, "BF16") << info.name;
    const TensorInfo& original = base.require(info.name);
    std::vector<float> values(static_cast<std::size_t>(info.elements()));
    std::vector<float> expected(values.size());
    to_float32(info.dtype, saved.data(info), values);
    to_float32(original.dtype, base.data(original), expected);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // 8 bits of precision: half a step of 2^-8.
      ASSERT_LE(std::abs(values[i] - expected[i]), std::abs(expected[i]) / 256) << info.name;
    }
  }
  EXPECT_EQ(json_of(folder.path() / "config.json").at("dtype"), "bfloat16");
}

LinearModule module_named(Decoder& decoder, const std::string& name) {
  for (const LinearModule& module : linear_modules(decoder)) {
    if (module.name == name) return module;
  }
  throw std::runtime_error("no module " + name);
}

std::shared_ptr<LowRankAdapter> adapter_for(const LinearModule& module, std::int64_t rank) {
  auto adapter = std::make_shared<LowRankAdapter>();
  at::manual_seed(5);
  adapter->down = at::randn({rank, module.in_features()}).mul(0.1);
  adapter->up = at::randn({module.out_features(), rank}).mul(0.1);
  adapter->scale = 0.5;
  return adapter;
}

TEST(SaveModel, FoldsAdaptersIn) {
  const TemporaryFolder folder;
  Model model = Model::open(onset::testing::data("models/llama"));
  const LinearModule module =
      module_named(model.decoder_to_change(), "model.layers.1.mlp.down_proj");
  const auto adapter = adapter_for(module, 3);
  module.parts.front()->set_adapter(adapter);
  save_model(model, folder.path());
  const Model merged = Model::open(folder.path());
  EXPECT_FALSE(close(logits_of(merged),
                     logits_of(Model::open(onset::testing::data("models/llama"))),
                     {.atol = 1e-3, .rtol = 1e-3}));
  EXPECT_TRUE(close(logits_of(merged), logits_of(model), {.atol = 1e-5, .rtol = 1e-5}));
}

// Row 18 of the faults people met: a head that was adapted is no longer the embedding.
TEST(SaveModel, UntiesAHeadThatHasBecomeAnother) {
  const TemporaryFolder folder;
  Model model = Model::open(onset::testing::data("models/llama"));
  const LinearModule head = module_named(model.decoder_to_change(), "lm_head");
  head.parts.front()->set_adapter(adapter_for(head, 2));
  save_model(model, folder.path());
  EXPECT_EQ(json_of(folder.path() / "config.json").at("tie_word_embeddings"), false);
  EXPECT_TRUE(tensors_of(folder.path()).contains("lm_head.weight"));
  EXPECT_TRUE(
      close(logits_of(Model::open(folder.path())), logits_of(model), {.atol = 1e-5, .rtol = 1e-5}));
}

TEST(SaveModel, KeepsATiedHeadTied) {
  const TemporaryFolder folder;
  save_model(Model::open(onset::testing::data("models/llama")), folder.path());
  EXPECT_FALSE(tensors_of(folder.path()).contains("lm_head.weight"));
  // Also where the file holds it twice.
  Toy twice = copy_of_fixture("llama");
  twice.values["lm_head.weight"] = twice.values.at("model.embed_tokens.weight");
  twice.shapes["lm_head.weight"] = twice.shapes.at("model.embed_tokens.weight");
  const TemporaryFolder source;
  twice.write(source.path());
  const TemporaryFolder second;
  save_model(Model::open(source.path()), second.path());
  EXPECT_FALSE(tensors_of(second.path()).contains("lm_head.weight"));
  EXPECT_EQ(json_of(second.path() / "config.json").at("tie_word_embeddings"), true);
}

TEST(SaveModel, DividesLargeModelsIntoShards) {
  const TemporaryFolder folder;
  const Model model = Model::open(onset::testing::data("models/qwen3"));
  save_model(model, folder.path(), {.shard_bytes = 100'000});
  EXPECT_FALSE(fs::exists(folder.path() / "model.safetensors"));
  const OrderedJson index = json_of(folder.path() / "model.safetensors.index.json");
  std::uint64_t bytes = 0;
  for (const TensorInfo& info : model.checkpoint().tensors()) {
    EXPECT_TRUE(index.at("weight_map").contains(info.name)) << info.name;
    bytes += info.bytes;
  }
  EXPECT_EQ(index.at("metadata").at("total_size"), bytes);
  EXPECT_TRUE(same_products(logits_of(model), logits_of(Model::open(folder.path()))));
}

TEST(SaveModel, CopiesWhatTheModelDoesNotUse) {
  Toy toy = copy_of_fixture("llama");
  toy.values["vision_tower.patch.weight"] = {1, 2, 3, 4, 5, 6};
  toy.shapes["vision_tower.patch.weight"] = {2, 3};
  const TemporaryFolder source;
  toy.write(source.path());
  static_cast<void>(source.write("tokenizer_config.json", R"({"chat_template": "x"})"));
  static_cast<void>(source.write("training_args.bin", "not the model's"));
  const TemporaryFolder folder;
  OrderedJson note = {{"merged_from", "adapter"}};
  save_model(Model::open(source.path()), folder.path(), {.dtype = DType::bf16, .onset_key = note});
  EXPECT_EQ(describe(tensors_of(folder.path()).at("vision_tower.patch.weight")), "F32 [2, 3]");
  EXPECT_EQ(read_file(folder.path() / "tokenizer_config.json"), R"({"chat_template": "x"})");
  EXPECT_FALSE(fs::exists(folder.path() / "training_args.bin"));
  EXPECT_EQ(json_of(folder.path() / "config.json").at("onset"), note);
}

// 2 times the codes of 0.5 to 1.875 in e4m3.
NamedTensor fp8_of(const std::string& name, const std::vector<std::int64_t>& shape) {
  NamedTensor tensor{name, DType::f8_e4m3, shape, {}};
  for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    tensor.data.push_back(static_cast<std::byte>(0x30 + i % 16));
  }
  return tensor;
}

TEST(SaveModel, WritesFp8WeightsWithoutTheirScales) {
  Toy toy;
  toy.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  toy.config["torch_dtype"] = "bfloat16";
  toy.draw();
  std::vector<NamedTensor> tensors;
  // The second belongs to a layer that the model does not have.
  for (const std::string module : {"model.layers.0.mlp.up_proj", "model.mtp.up_proj"}) {
    tensors.push_back(fp8_of(module + ".weight", {16, 8}));
    const float scale = 2.0F;
    const auto bytes = std::as_bytes(std::span(&scale, 1));
    tensors.push_back(
        {module + ".weight_scale_inv", DType::f32, {1, 1}, {bytes.begin(), bytes.end()}});
  }
  toy.remove("model.layers.0.mlp.up_proj.weight");
  for (const auto& [name, values] : toy.values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors.push_back({name, DType::f32, toy.shapes.at(name), {bytes.begin(), bytes.end()}});
  }
  const TemporaryFolder source;
  static_cast<void>(source.write("config.json", toy.config.dump()));
  write_safetensors(source.path() / "model.safetensors", tensors);
  const TemporaryFolder folder;
  const Model model = Model::open(source.path());
  save_model(model, folder.path());
  const Checkpoint saved = Checkpoint::open(folder.path());
  EXPECT_EQ(saved.tensors().size(), toy.values.size() + 2);
  for (const char* name : {"model.layers.0.mlp.up_proj.weight", "model.mtp.up_proj.weight"}) {
    const TensorInfo& info = saved.require(name);
    EXPECT_EQ(describe(info), "BF16 [16, 8]");
    std::vector<float> values(128);
    to_float32(info.dtype, saved.data(info), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // 0x30 is 0.5, eight steps to 1 and eight to 2.
      const float step = static_cast<float>(i % 8) / 8.0F;
      const float code = i % 16 < 8 ? 0.5F + step / 2.0F : 1.0F + step;
      ASSERT_EQ(values[i], 2.0F * code) << name << i;
    }
  }
  EXPECT_FALSE(json_of(folder.path() / "config.json").contains("quantization_config"));
  EXPECT_TRUE(same_products(logits_of(Model::open(folder.path()), {1, 7, 30, 2}),
                            logits_of(model, {1, 7, 30, 2})));
}

TEST(SaveModel, LeavesNoPartOfAFileWhereTheDiskIsFull) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const TemporaryFolder folder;
  const std::string message = error_of([&] {
    const testing::FileSizeLimit full(100'000);
    save_model(model, folder.path());
  });
  EXPECT_EQ(message,
            (folder.path() / "model.safetensors").string() + ": cannot write: File too large");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Without it the folder is none that opens.
TEST(SaveModel, WritesTheConfigurationLast) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "generation_config.json");
  const std::string message = error_of([&] { save_model(model, folder.path()); });
  EXPECT_NE(message.find("generation_config.json"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(folder.path() / "config.json"));
}

TEST(SaveModel, RefusesWhatAConfigurationCannotSay) {
  ModelConfig config = read_config(Checkpoint::open(onset::testing::data("models/llama")));
  const auto refusal = [](const ModelConfig& odd) {
    return error_of([&] { static_cast<void>(config_json(odd, "odd.gguf")); });
  };
  ModelConfig window = config;
  window.layers[1].sliding_window = 8;
  EXPECT_EQ(refusal(window), "odd.gguf: a sliding window, which a config.json of llama cannot say");
  ModelConfig table = config;
  table.ropes.front().frequency_divisors.assign(8, 3.0);
  table.ropes.front().frequency_divisors[1] = 1.5;
  EXPECT_NE(refusal(table).find("rope_freqs.weight"), std::string::npos);
  ModelConfig scale = config;
  scale.attention_scale *= 2;
  EXPECT_NE(refusal(scale).find("scale of the attention scores"), std::string::npos);
}

class WrittenConfig : public ::testing::TestWithParam<std::string> {};

// What is written for a configuration says the same when it is read.
TEST_P(WrittenConfig, ReadsAsWhatItWasMadeFrom) {
  const fs::path source = onset::testing::data("models/" + GetParam());
  const ModelConfig config = read_config(Checkpoint::open(source));
  const TemporaryFolder folder;
  fs::copy_file(source / "model.safetensors", folder.path() / "model.safetensors");
  static_cast<void>(folder.write("config.json", config_json(config, "test").dump()));
  const ReferenceTensors reference(source / "reference.safetensors");
  const Model again = Model::open(folder.path());
  for (const std::string prompt : {"a", "b"}) {
    EXPECT_TRUE(close(logits_of(again, reference.ids("input_ids." + prompt)),
                      reference.get("logits." + prompt), {.atol = 1e-4, .rtol = 1e-4}));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, WrittenConfig,
                         ::testing::Values("deepseek_v2", "deepseek_v2_lite", "deepseek_v3",
                                           "gemma2", "gemma3", "llama", "llama3", "mistral",
                                           "mixtral", "olmo2", "phi3", "phi3_long", "qwen2",
                                           "qwen2_moe", "qwen3", "qwen3_moe"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace onset::testing
