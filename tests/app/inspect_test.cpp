// onset inspect: what it says of the fixtures, of unknown architectures, and of broken values.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "app/program.h"
#include "checkpoint/files.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"
#include "support/fixture_copy.h"

namespace onset::testing {
namespace {

constexpr const char* strange_config = R"({"model_type": "strange_net", "hidden_size": 4})";

NamedTensor float_tensor(const std::string& name, const std::vector<float>& values) {
  NamedTensor tensor{name, DType::f32, {static_cast<std::int64_t>(values.size())}, {}};
  tensor.data.resize(values.size() * sizeof(float));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

// A folder of an architecture that nobody knows, with one tensor.
void write_strange_model(const TemporaryFolder& folder, const std::vector<float>& values) {
  static_cast<void>(folder.write("config.json", strange_config));
  write_safetensors(folder.path() / "model.safetensors",
                    {float_tensor("layers.0.weight", values), float_tensor("sound", {1, -2})});
}

TEST(Inspect, SaysWhatAModelIsMadeOf) {
  const auto outcome = run_onset({"inspect", model_path("llama"), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  const auto& model = found["model"];
  const auto reference =
      OrderedJson::parse(read_file(testing::data("models/llama/reference.json")));
  EXPECT_EQ(model["architecture"], "llama");
  EXPECT_EQ(model["format"], "safetensors");
  EXPECT_EQ(model["supported"], true);
  EXPECT_EQ(model["parameters"], reference["parameters"]);
  EXPECT_EQ(model["layers"], reference["config"]["num_hidden_layers"]);
  EXPECT_EQ(model["hidden"], reference["config"]["hidden_size"]);
  EXPECT_EQ(model["kv_heads"], reference["config"]["num_key_value_heads"]);
  EXPECT_TRUE(found["tokenizer"].is_null());
  // All weights are float32: as stored and as float32 is the same.
  EXPECT_EQ(found["memory"]["stored"], reference["parameters"].get<std::int64_t>() * 4);
  EXPECT_EQ(found["memory"]["float32"], found["memory"]["stored"]);
  // 1,000 tokens x 2 (K and V) x 3 layers x 2 KV heads x 16 dims x 4 bytes.
  EXPECT_EQ(found["memory"]["kv_cache_per_1k_tokens"], 1000 * 2 * 3 * 2 * 16 * 4);
  EXPECT_FALSE(found.contains("tensors"));
}

TEST(Inspect, MemoryIsSaidOfTheLayersAsStored) {
  const auto found = run_onset({"inspect", model_path("llama"), "--json", "--tensors"}).json();
  std::int64_t layer = 0;
  std::int64_t matrix = 0;
  for (const auto& tensor : found["tensors"]) {
    const auto name = tensor["name"].get<std::string>();
    const auto bytes = tensor["bytes"].get<std::int64_t>();
    if (name.starts_with("model.layers.1.")) layer += bytes;
    if (name.starts_with("model.layers.")) matrix = std::max(matrix, bytes);
  }
  EXPECT_EQ(found["memory"]["largest_layer_stored"], layer);
  EXPECT_EQ(found["memory"]["largest_matrix_float32"], matrix);
  EXPECT_EQ(found["model"]["layers_in_files"], 3);
}

// The fixture's tensors under a configuration with other sizes.
void write_llama(const TemporaryFolder& folder, const OrderedJson& changes) {
  auto config = OrderedJson::parse(read_file(model_path("llama/config.json")));
  config.update(changes);
  static_cast<void>(folder.write("config.json", config.dump()));
  std::filesystem::copy_file(model_path("llama/model.safetensors"),
                             folder.path() / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
}

TEST(Inspect, WarnsWhereTheTensorsHaveAnotherNumberOfLayers) {
  const TemporaryFolder folder;
  for (const int layers : {2, 5}) {
    write_llama(folder, {{"num_hidden_layers", layers}});
    const auto outcome = run_onset({"inspect", folder.path().string(), "--json"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.error.find(str_cat("warning: the configuration says ", layers,
                                         " layers, the tensors are those of 3")),
              std::string::npos)
        << outcome.error;
    EXPECT_EQ(outcome.json()["model"]["layers_in_files"], 3);
  }
  EXPECT_EQ(run_onset({"inspect", model_path("llama")}).error, "");
}

TEST(Inspect, AbsurdSizesDoNotOverflow) {
  const TemporaryFolder folder;
  const std::int64_t huge = std::int64_t{1} << 26;
  write_llama(folder, {{"num_hidden_layers", 10000},
                       {"num_attention_heads", huge},
                       {"num_key_value_heads", huge},
                       {"head_dim", huge},
                       {"hidden_size", huge},
                       {"intermediate_size", huge}});
  const auto outcome = run_onset({"inspect", folder.path().string(), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  if (found["model"]["supported"] == false) GTEST_SKIP() << "the configuration is refused";
  EXPECT_GT(found["memory"]["kv_cache_per_1k_tokens"].get<double>(), 1e23);
  EXPECT_GT(found["memory"]["activations_per_1k_tokens"].get<double>(), 1e19);
}

TEST(Inspect, SaysHowPositionsWindowsAndCapsAre) {
  const auto model = [](const std::string& name) {
    return run_onset({"inspect", model_path(name), "--json"}).json()["model"];
  };
  const auto row = [](const char* kind, double theta, int dims, const OrderedJson& factor,
                      const OrderedJson& original, int layers) {
    return OrderedJson{{"kind", kind},
                       {"theta", theta},
                       {"rotary_dim", dims},
                       {"factor", factor},
                       {"original_context", original},
                       {"frequency_divisors", false},
                       {"layers", layers}};
  };
  const auto llama = model("llama");
  EXPECT_EQ(llama["rope"], OrderedJson::array({row("plain", 10000, 16, nullptr, nullptr, 3)}));
  EXPECT_EQ(llama["tied_embeddings"], true);
  EXPECT_TRUE(llama["sliding_window"].is_null());
  EXPECT_TRUE(llama["attention_softcap"].is_null());
  const auto llama3 = model("llama3");
  EXPECT_EQ(llama3["rope"], OrderedJson::array({row("llama3", 10000, 32, 8.0, 32, 3)}));
  EXPECT_EQ(llama3["tied_embeddings"], false);
  // 256 positions over 6.
  EXPECT_EQ(model("phi3_long")["rope"],
            OrderedJson::array({row("longrope", 10000, 12, 256.0 / 6, 6, 3)}));
  const auto gemma2 = model("gemma2");
  EXPECT_EQ(gemma2["attention_softcap"], 8.0);
  EXPECT_EQ(gemma2["logit_softcap"], 6.0);
  EXPECT_EQ(gemma2["sliding_window"], OrderedJson({{"keys", 8}, {"layers", {0, 2}}}));
  const auto gemma3 = model("gemma3");
  ASSERT_EQ(gemma3["rope"].size(), 2U);
  const bool local_first = gemma3["rope"][0]["kind"] == "plain";
  EXPECT_EQ(gemma3["rope"][local_first ? 0 : 1], row("plain", 10000, 16, nullptr, nullptr, 3));
  EXPECT_EQ(gemma3["rope"][local_first ? 1 : 0], row("linear", 1e6, 16, 8.0, nullptr, 1));
  EXPECT_EQ(gemma3["sliding_window"]["layers"], OrderedJson::array({0, 1, 3}));
}

TEST(Inspect, TheTableSaysTheSame) {
  const auto gemma2 = run_onset({"inspect", model_path("gemma2")}).out;
  EXPECT_NE(gemma2.find("window        8 keys in 2 of 4 layers, all but every 2nd\n"),
            std::string::npos)
      << gemma2;
  EXPECT_NE(gemma2.find("soft caps     scores 8, logits 6\n"), std::string::npos);
  EXPECT_NE(gemma2.find("head          tied: the token embeddings\n"), std::string::npos);
  const auto llama3 = run_onset({"inspect", model_path("llama3")}).out;
  EXPECT_NE(llama3.find("RoPE          llama3, theta 10,000, factor 8 over 32 positions\n"),
            std::string::npos)
      << llama3;
  EXPECT_EQ(llama3.find("window  "), std::string::npos);
  const auto mistral = run_onset({"inspect", model_path("mistral")}).out;
  EXPECT_NE(mistral.find("window        8 keys in every layer\n"), std::string::npos) << mistral;
  const TemporaryFolder folder;
  write_llama(folder, {{"rope_parameters",
                        {{"rope_type", "yarn"},
                         {"rope_theta", 10000.0},
                         {"factor", 4.0},
                         {"original_max_position_embeddings", 32}}}});
  const auto yarn = run_onset({"inspect", folder.path().string()}).out;
  EXPECT_NE(yarn.find("RoPE          yarn, theta 10,000, factor 4 over 32 positions\n"),
            std::string::npos)
      << yarn;
}

TEST(Inspect, ListsTensors) {
  const auto reference =
      OrderedJson::parse(read_file(testing::data("models/llama/reference.json")));
  const auto found = run_onset({"inspect", model_path("llama"), "--json", "--tensors"}).json();
  ASSERT_EQ(found["tensors"].size(), reference["tensor_names"].size());
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < found["tensors"].size(); ++i) {
    EXPECT_EQ(found["tensors"][i]["name"], reference["tensor_names"][i]);
    EXPECT_EQ(found["tensors"][i]["dtype"], "F32");
    bytes += found["tensors"][i]["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, found["memory"]["stored"].get<std::int64_t>());
  const auto table = run_onset({"inspect", model_path("llama"), "--tensors"});
  EXPECT_NE(table.out.find("model.layers.1.mlp.down_proj.weight"), std::string::npos);
  EXPECT_LE(widest_line(table.out), 80U) << table.out;
}

TEST(Inspect, SoundModelsVerify) {
  for (const std::string name : {"llama", "llama_gguf/q4_0.gguf", "llama_gguf/bf16.gguf"}) {
    const auto path = any_fixture("models/" + name);
    if (path.empty()) continue;  // the one in bfloat16 is not in the repository
    const auto outcome = run_onset({"inspect", path.string(), "--verify", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    const auto verify = outcome.json()["verify"];
    EXPECT_EQ(verify["sound"], true);
    EXPECT_EQ(verify["problems"], OrderedJson::array());
    EXPECT_EQ(verify["bytes"], outcome.json()["memory"]["stored"]);
    EXPECT_EQ(verify["tensors_judged"], verify["tensors"]);
  }
}

TEST(Inspect, UnknownArchitecturesAreListedAllTheSame) {
  const TemporaryFolder folder;
  write_strange_model(folder, {1, 2, 3});
  const auto outcome = run_onset({"inspect", folder.path().string(), "--json", "--tensors"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["model"]["architecture"], "strange_net");
  EXPECT_EQ(found["model"]["supported"], false);
  EXPECT_NE(found["model"]["problem"].get<std::string>().find("strange_net"), std::string::npos);
  EXPECT_EQ(found["tensors"].size(), 2U);
  EXPECT_TRUE(found["memory"]["kv_cache_per_1k_tokens"].is_null());
  const auto table = run_onset({"inspect", folder.path().string()});
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("strange_net"), std::string::npos);
}

TEST(Inspect, ATokenizerAloneIsShown) {
  const TemporaryFolder folder;
  const auto tokenizer = unpacked("tokenizers/qwen3");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(tokenizer / name, folder.path() / name);
  }
  const auto path = folder.path().string();
  const auto outcome = run_onset({"inspect", path, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_NE(found["weights_problem"].get<std::string>().find("config.json is missing"),
            std::string::npos);
  EXPECT_EQ(found["model"]["supported"], false);
  EXPECT_TRUE(found["model"]["architecture"].is_null());
  EXPECT_EQ(found["tokenizer"]["vocabulary"], 151669);
  EXPECT_EQ(found["tokenizer"]["special_tokens"], 14);
  EXPECT_EQ(found["tokenizer"]["chat_format"], "qwen3");
  const auto table = run_onset({"inspect", path, "--tensors"});
  EXPECT_EQ(table.code, 0) << table.error;
  EXPECT_NE(table.out.find("(a tokenizer alone)"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("151643 \"<|endoftext|>\""), std::string::npos) << table.out;
  EXPECT_EQ(run_onset({"inspect", path + "/tokenizer.json"}).code, 0);
  expect_refusal(run_onset({"inspect", path, "--verify"}), 1, "no weights to read");
  expect_refusal(run_onset({"scan", path}), 1, "onset tokenize and onset inspect work with it");
  // With the configuration, the weights alone are missing; weights that are there are looked at.
  static_cast<void>(folder.write("config.json", read_file(model_path("qwen3/config.json"))));
  EXPECT_NE(run_onset({"inspect", path}).out.find("has neither model.safetensors"),
            std::string::npos);
  static_cast<void>(folder.write("model.safetensors", "damaged"));
  expect_refusal(run_onset({"inspect", path}), 1, "model.safetensors");
}

TEST(Inspect, AVocabularyWithoutWeightsIsShown) {
  GgufBuilder file;
  std::string pieces;
  std::string types;
  for (const char* piece : {"<s>", "a", "b"}) {
    GgufBuilder::append_string(pieces, piece);
    append<std::int32_t>(types, *piece == '<' ? 3 : 1);
  }
  std::string merges;
  file.text("general.architecture", "llama")
      .text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "smollm")
      .array("tokenizer.ggml.tokens", 8, 3, pieces)
      .array("tokenizer.ggml.token_type", 5, 3, types)
      .array("tokenizer.ggml.merges", 8, 0, merges);
  const TemporaryFolder folder;
  const auto path = folder.write("vocabulary.gguf", file.build(0)).string();
  const auto outcome = run_onset({"inspect", path, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["weights_problem"], "the file holds a vocabulary and no tensors");
  EXPECT_EQ(found["model"]["architecture"], "llama");
  EXPECT_EQ(found["tokenizer"]["vocabulary"], 3);
  EXPECT_EQ(found["tokenizer"]["special_tokens"], 1);
  const auto table = run_onset({"inspect", path});
  EXPECT_NE(table.out.find("none: the file holds a vocabulary and no tensors"), std::string::npos)
      << table.out;
  expect_refusal(run_onset({"scan", path}), 1, "a vocabulary without weights");
  expect_refusal(run_onset({"inspect", path, "--verify"}), 1, "no weights to read");
  EXPECT_EQ(run_onset({"tokenize", path, "--text", "ab"}).json_lines()[0]["ids"],
            OrderedJson::array({1, 2}));
}

TEST(Inspect, VerifyFindsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TemporaryFolder folder;
  write_strange_model(folder, {1.5F, -nan, 0.25F, -infinity, infinity, nan, -7});
  const auto outcome = run_onset({"inspect", folder.path().string(), "--verify", "--json"});
  EXPECT_EQ(outcome.code, 1);
  const auto verify = outcome.json()["verify"];
  EXPECT_EQ(verify["sound"], false);
  ASSERT_EQ(verify["problems"].size(), 1U);
  const auto& problem = verify["problems"][0];
  EXPECT_EQ(problem["name"], "layers.0.weight");
  EXPECT_EQ(problem["nan"], 2);
  EXPECT_EQ(problem["infinite"], 2);
  EXPECT_EQ(problem["first_bad"], 1);
  EXPECT_EQ(problem["min"], -7);
  EXPECT_EQ(problem["max"], 1.5);
  const auto table = run_onset({"inspect", folder.path().string(), "--verify"});
  EXPECT_EQ(table.code, 1);
  EXPECT_NE(table.out.find("layers.0.weight: 2 NaN, 2 infinite"), std::string::npos) << table.out;
}

TEST(Inspect, VerifyFindsRangesAcrossPieces) {
  // More elements than one piece of work holds (2^20), the extremes in different pieces.
  std::vector<float> values((std::size_t{1} << 20) * 2 + 5, 0.5F);
  values[3] = -3;
  values.back() = 9;
  const TemporaryFolder folder;
  write_strange_model(folder, values);
  const std::vector<std::string> call{
      "inspect", folder.path().string(), "--verify", "--json", "--tensors", "--threads", "3"};
  const auto sound = run_onset(call);
  EXPECT_EQ(sound.code, 0) << sound.error;
  EXPECT_EQ(sound.json()["tensors"][0]["min"], -3);
  EXPECT_EQ(sound.json()["tensors"][0]["max"], 9);
  values[(std::size_t{1} << 20) + 7] = std::numeric_limits<float>::quiet_NaN();
  values[(std::size_t{1} << 20) * 2 + 1] = std::numeric_limits<float>::infinity();
  write_strange_model(folder, values);
  const auto problem = run_onset(call).json()["verify"]["problems"][0];
  EXPECT_EQ(problem["nan"], 1);
  EXPECT_EQ(problem["infinite"], 1);
  EXPECT_EQ(problem["first_bad"], (1 << 20) + 7);
}

TEST(Inspect, TheDemonstrationModelHasATokenizer) {
  if (demo_model().empty()) GTEST_SKIP() << "scripts/setup did not fetch it";
  const auto found = run_onset({"inspect", demo_model().string(), "--json"}).json();
  EXPECT_EQ(found["model"]["layers"], 30);
  EXPECT_EQ(found["model"]["parameters"], 134515008);
  EXPECT_EQ(found["tokenizer"]["chat_format"], "smollm2");
  EXPECT_EQ(found["tokenizer"]["add_bos"], false);
  EXPECT_EQ(found["tokenizer"]["eos"][0]["piece"], "<|im_end|>");
}

// DeepSeek-V3's own files hold one more layer, which predicts a further token.
TEST(Inspect, ALayerForFurtherTokensIsNoFault) {
  Toy toy = copy_of_fixture("deepseek_v3");
  for (auto [name, values] : std::map(toy.values)) {
    const std::size_t at = name.find("layers.2.");
    if (at == std::string::npos) continue;
    const std::string further = name.substr(0, at) + "layers.3." + name.substr(at + 9);
    toy.shapes[further] = toy.shapes.at(name);
    toy.values[further] = std::move(values);
  }
  const TemporaryFolder folder;
  toy.write(folder.path());
  const auto unsaid = run_onset({"inspect", folder.path().string()});
  EXPECT_NE(unsaid.error.find("onset will not run this model"), std::string::npos);
  toy.config["num_nextn_predict_layers"] = 1;
  toy.write(folder.path());
  const auto said = run_onset({"inspect", folder.path().string()});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.error.find("will not run"), std::string::npos) << said.error;
}

}  // namespace
}  // namespace onset::testing
