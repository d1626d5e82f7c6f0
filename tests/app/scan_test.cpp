// onset scan: what it finds, judged by the reference states and the definitions of DESIGN section
// 4 restated here.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {
namespace {

constexpr double min_abs = 100;
constexpr double min_ratio = 1000;

template <typename Number>
std::vector<Number> read_tensor(const SafetensorsFile& file, const std::string& name) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name != name) continue;
    std::vector<Number> values(tensor.bytes / sizeof(Number));
    std::memcpy(values.data(), file.file.bytes().data() + tensor.offset, tensor.bytes);
    return values;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// Prompt b of a fixture and its reference states.
struct Reference {
  std::string ids;            // "1,5,9"
  std::size_t token_count;    // T
  std::vector<float> states;  // [L + 1, T, D]
  std::size_t hidden;         // D

  [[nodiscard]] std::size_t layers() const { return states.size() / (token_count * hidden) - 1; }
  // After block l.
  [[nodiscard]] std::vector<float> after(std::size_t layer) const {
    const auto size = static_cast<std::ptrdiff_t>(token_count * hidden);
    const auto begin = states.begin() + static_cast<std::ptrdiff_t>(layer + 1) * size;
    return {begin, begin + size};
  }
};

Reference reference_of(const std::string& model) {
  const auto file = read_safetensors(testing::data("models/" + model + "/reference.safetensors"));
  const auto ids = read_tensor<std::int64_t>(file, "input_ids.b");
  Reference reference{"", ids.size(), read_tensor<float>(file, "hidden.b"), 0};
  for (const auto id : ids) reference.ids += str_cat(reference.ids.empty() ? "" : ",", id);
  for (const auto& tensor : file.tensors) {
    if (tensor.name == "hidden.b") reference.hidden = static_cast<std::size_t>(tensor.shape[2]);
  }
  return reference;
}

float lower_median(std::vector<float> values) {
  for (auto& value : values) value = std::abs(value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

float largest(const std::vector<float>& values) {
  float result = 0;
  for (const auto value : values) result = std::max(result, std::abs(value));
  return result;
}

// Dims with an entry above both thresholds, by the formula.
std::set<std::size_t> massive_dims(const std::vector<float>& state, std::size_t hidden) {
  const double median = lower_median(state);
  std::set<std::size_t> dims;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const double size = std::abs(state[i]);
    if (size > min_abs && size > min_ratio * median) dims.insert(i % hidden);
  }
  return dims;
}

// Text with every line break as a space: where a sentence is wrapped does not matter.
std::string unwrapped(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class PlantedModels : public ::testing::TestWithParam<std::string> {};

TEST_P(PlantedModels, ReportThePlantedLayerAndDims) {
  const auto reference = reference_of(GetParam());
  const auto outcome =
      run_onset({"scan", model_path(GetParam()), "--ids", reference.ids, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["me_layer"], 1);
  EXPECT_EQ(found["agreement"], 1.0);
  EXPECT_EQ(found["massive_tokens"], OrderedJson::array({"first"}));
  EXPECT_TRUE(found["candidate"].is_null());
  EXPECT_TRUE(found["note"].is_null());
  EXPECT_EQ(found["model"]["bos"], "none");

  std::set<std::size_t> dims;
  const auto& layers = found["prompts"][0]["layers"];
  ASSERT_EQ(layers.size(), reference.layers());
  for (std::size_t l = 0; l < reference.layers(); ++l) {
    const auto state = reference.after(l);
    const double maximum = largest(state);
    EXPECT_NEAR(layers[l]["max_abs"].get<double>(), maximum, 1e-5 * maximum);
    EXPECT_NEAR(layers[l]["median_abs"].get<double>(), lower_median(state), 5e-4);
    const auto token = layers[l]["token"].get<std::size_t>();
    const auto dim = layers[l]["dim"].get<std::size_t>();
    EXPECT_NEAR(std::abs(state[token * reference.hidden + dim]), maximum, 1e-5 * maximum);
    const auto expected = massive_dims(state, reference.hidden);
    EXPECT_EQ(layers[l]["massive"], !expected.empty());
    dims.insert(expected.begin(), expected.end());
  }
  EXPECT_EQ(found["massive_dims"].get<std::set<std::size_t>>(), dims);
  EXPECT_EQ(found["last_massive_layer"], reference.layers() - 1);
}

TEST_P(PlantedModels, AttributeTheRiseToTheFfn) {
  const auto reference = reference_of(GetParam());
  const auto found =
      run_onset({"scan", model_path(GetParam()), "--ids", reference.ids, "--json"}).json();
  const auto& stages = found["stages"];
  const auto birth = std::find_if(stages.begin(), stages.end(), [](const OrderedJson& stage) {
    return stage["layer"] == 1 && stage["kind"] == "rise";
  });
  ASSERT_NE(birth, stages.end()) << stages;
  EXPECT_GT((*birth)["ffn_share"].get<double>(), 0.95);
  const auto sum = (*birth)["resid_pre"].get<float>() + (*birth)["attn_out"].get<float>() +
                   (*birth)["ffn_out"].get<float>();
  EXPECT_EQ(std::abs(sum), (*birth)["after"].get<float>());
  EXPECT_NEAR((*birth)["attn_share"].get<double>() + (*birth)["ffn_share"].get<double>(), 1, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Models, PlantedModels,
                         ::testing::Values("llama_me", "qwen3_me", "mistral_me"),
                         [](const auto& family) { return family.param; });

TEST(Scan, PlainModelsHaveNone) {
  for (const std::string model : {"llama", "llama3", "mistral", "qwen2", "qwen3"}) {
    const auto outcome = run_onset(
        {"scan", model_path(model), "--ids", reference_of(model).ids, "--json", "--quiet"});
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    const auto found = outcome.json();
    EXPECT_TRUE(found["me_layer"].is_null());
    EXPECT_TRUE(found["last_massive_layer"].is_null());
    EXPECT_EQ(found["massive_dims"], OrderedJson::array());
    EXPECT_EQ(found["note"], "below_rule");
    for (const auto* key : {"layer", "token", "dim", "value", "ratio"}) {
      EXPECT_TRUE(found["candidate"][key].is_number()) << key;
    }
  }
}

TEST(Scan, SaysWhyWemaskDoesNotApplyToOlmo2) {
  const auto table = run_onset({"scan", model_path("olmo2"), "--ids", "1,5,9,4"});
  EXPECT_EQ(table.code, 0) << table.error;
  EXPECT_NE(table.out.find("No ME layer"), std::string::npos);
  EXPECT_NE(table.out.find("WeMask does not apply"), std::string::npos);
  EXPECT_NE(table.out.find("no norm before"), std::string::npos);
  const auto json = run_onset({"scan", model_path("olmo2"), "--ids", "1,5,9,4", "--json"}).json();
  EXPECT_TRUE(json["me_layer"].is_null());
  EXPECT_TRUE(json["model"]["wemask_obstacle"].is_string());
}

TEST(Scan, GgufEqualsSafetensors) {
  const auto ids = reference_of("llama_me").ids;
  auto folder = run_onset({"scan", model_path("llama_me"), "--ids", ids, "--json"}).json();
  auto gguf = run_onset({"scan", model_path("llama_me/f32.gguf"), "--ids", ids, "--json"}).json();
  EXPECT_EQ(folder["model"]["format"], "safetensors");
  EXPECT_EQ(gguf["model"]["format"], "gguf");
  EXPECT_EQ(gguf["prompts"], folder["prompts"]);
}

TEST(Scan, VolatileThingsStandUnderRunOnly) {
  const std::vector<std::string> call{"scan", model_path("llama_me"), "--ids", "1,2,3", "--json"};
  auto first = run_onset(call).json();
  auto second = run_onset(call).json();
  for (const auto* key : {"version", "command", "started", "seconds", "peak_memory_bytes",
                          "threads", "device", "compute", "seed", "paths"}) {
    EXPECT_TRUE(first["run"].contains(key)) << key;
  }
  EXPECT_EQ(first["run"]["compute"], "f32");
  first.erase("run");
  second.erase("run");
  EXPECT_EQ(first.dump(), second.dump());
  for (const auto* key :
       {"model", "rule", "me_layer", "agreement", "last_massive_layer", "massive_dims",
        "massive_tokens", "candidate", "note", "stages", "prompts"}) {
    EXPECT_TRUE(first.contains(key)) << key;
  }
}

TEST(Scan, TablesFitEightyColumnsAndTheLocale) {
  const auto ids = reference_of("llama_me").ids;
  const auto table = run_onset({"scan", model_path("llama_me"), "--ids", ids, "--ids", "1,4"});
  ASSERT_EQ(table.code, 0) << table.error;
  EXPECT_NE(unwrapped(table.out).find("Massive activations are born in layer 1 (block 2 of 3)"),
            std::string::npos)
      << table.out;
  EXPECT_NE(table.out.find("\xE2\x96\x88"), std::string::npos);
  const auto ascii = run_onset({"scan", model_path("llama_me"), "--ids", ids}, {.locale = "C"});
  EXPECT_TRUE(std::all_of(ascii.out.begin(), ascii.out.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

// Rows of a table: the lines after the one that begins with `heading`, up to an empty one.
std::vector<std::vector<std::string>> rows_after(const std::string& text,
                                                 const std::string& heading) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text.substr(std::min(text.find("\n" + heading), text.size() - 1) + 1));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) {
    std::istringstream words(line);
    rows.emplace_back(std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
  }
  return rows;
}

TEST(Scan, StagesAddUpInTheTableAndInJson) {
  const std::vector<std::string> call{"scan", model_path("llama_me"), "--ids", "1,5,9"};
  auto json_call = call;
  json_call.emplace_back("--json");
  const auto stage = run_onset(json_call).json()["stages"][0];
  EXPECT_EQ(stage["resid_post"].get<float>(),
            (stage["resid_pre"].get<float>() + stage["attn_out"].get<float>()) +
                stage["ffn_out"].get<float>());
  // layer, kind, before, after, dim, and at that dim before, attention, FFN, after.
  const auto rows = rows_after(run_onset(call).out, "layer         before");
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].size(), 9U);
  const auto number = [&rows](std::size_t column) { return std::stod(rows[0][column]); };
  EXPECT_NEAR(number(5) + number(6) + number(7), number(8), 0.1);
  EXPECT_EQ(std::abs(number(8)), number(3));
}

TEST(Scan, TheVerdictSaysWhyTheyEnd) {
  const std::vector<std::string> call{"scan", model_path("llama_me"), "--ids", "1,5,9"};
  auto json_call = call;
  json_call.emplace_back("--json");
  // Layer 2 keeps the entry: the ratio alone falls below the rule.
  const auto layers = run_onset(json_call).json()["prompts"][0]["layers"];
  ASSERT_GT(layers[2]["max_abs"].get<double>(), layers[1]["max_abs"].get<double>());
  ASSERT_LT(layers[2]["ratio"].get<double>(), min_ratio);
  const auto text = unwrapped(run_onset(call).out);
  EXPECT_NE(text.find("They pass the rule up to layer 1 (block 2 of 3); after layer 2 the largest "
                      "entry is still 2770"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("takes"), std::string::npos);
}

TEST(Scan, PromptsThatCannotBeJudgedAreCountedApart) {
  const auto text = unwrapped(run_onset({"scan", model_path("llama_me"), "--ids", "1,5,9", "--ids",
                                         "1,7,3", "--ids", "4", "--ids", "4,4"})
                                  .out);
  EXPECT_NE(text.find("2 of 2 prompts that can be judged agree (1 too short, 1 of one repeated "
                      "token)"),
            std::string::npos)
      << text;
}

TEST(Scan, MassiveDimsSayWhereTheyAre) {
  const auto found = run_onset({"scan", model_path("llama_me"), "--ids", "1,5,9", "--ids",
                                reference_of("llama_me").ids, "--json"})
                         .json();
  std::set<std::int64_t> dims;
  for (const auto& row : found["massive_dim_rows"]) {
    const auto dim = row["dim"].get<std::int64_t>();
    dims.insert(dim);
    std::set<std::size_t> prompts;
    std::set<std::int64_t> layers;
    double largest_value = 0;
    for (std::size_t p = 0; p < found["prompts"].size(); ++p) {
      for (const auto& layer : found["prompts"][p]["layers"]) {
        for (const auto& entry : layer["massive_entries"]) {
          if (entry["dim"] != dim) continue;
          prompts.insert(p);
          layers.insert(layer["layer"].get<std::int64_t>());
          largest_value = std::max(largest_value, std::abs(entry["value"].get<double>()));
        }
      }
    }
    EXPECT_EQ(row["prompts"], prompts.size());
    EXPECT_EQ(row["layers"], layers.size());
    EXPECT_EQ(row["first_layer"], *layers.begin());
    EXPECT_EQ(row["last_layer"], *layers.rbegin());
    EXPECT_EQ(std::abs(row["value"].get<double>()), largest_value);
  }
  EXPECT_EQ(found["massive_dims"].get<std::set<std::int64_t>>(), dims);
}

TEST(Scan, SignsAndPlainNumbersStand) {
  const auto table = run_onset({"scan", model_path("llama_me"), "--ids", "1,5,9", "--min-abs",
                                "100000", "--rule", "absolute"});
  EXPECT_NE(table.out.find("and > 100000\n"), std::string::npos) << table.out;
  const auto layers = run_onset({"scan", model_path("qwen3_me"), "--ids", "1,5,9", "--json"})
                          .json()["prompts"][0]["layers"];
  const auto rows = rows_after(run_onset({"scan", model_path("qwen3_me"), "--ids", "1,5,9"}).out,
                               "layer largest");
  ASSERT_EQ(rows.size(), layers.size());
  for (std::size_t l = 0; l < rows.size(); ++l) {
    EXPECT_EQ(std::stod(rows[l][1]) < 0, layers[l]["value"].get<double>() < 0);
  }
}

TEST(Scan, CsvHasOneRowForEachPromptAndLayer) {
  const auto outcome =
      run_onset({"scan", model_path("llama_me"), "--ids", "1,2,3", "--ids", "1,4,5", "--csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 2 * 3);
  EXPECT_TRUE(outcome.out.starts_with("model,prompt,layer,max_abs,token,dim,value,median_abs,"));
}

TEST(Scan, OneFailingModelDoesNotHideTheOthers) {
  const std::vector<std::string> call{
      "scan", model_path("llama_me"), "/nowhere", model_path("llama"), "--ids", "1,2,3"};
  const auto table = run_onset(call);
  EXPECT_EQ(table.code, 1);
  EXPECT_NE(table.out.find("llama_me"), std::string::npos);
  EXPECT_NE(table.error.find("/nowhere"), std::string::npos);
  EXPECT_LE(widest_line(table.out), 80U);
  auto json_call = call;
  json_call.emplace_back("--json");
  const auto json = run_onset(json_call);
  EXPECT_EQ(json.code, 1);
  const auto found = json.json();
  ASSERT_EQ(found["models"].size(), 3U);
  EXPECT_EQ(found["models"][0]["me_layer"], 1);
  EXPECT_TRUE(found["models"][1]["error"]["message"].is_string());
  EXPECT_TRUE(found["models"][2]["me_layer"].is_null());
}

TEST(Scan, PromptsThatCannotBeScannedAreRefused) {
  const auto model = model_path("llama_me");
  expect_refusal(run_onset({"scan", model, "--prompt", ""}), 2, "--prompt 1 is empty");
  expect_refusal(run_onset({"scan", model, "--ids", ""}), 2, "--ids is empty");
  expect_refusal(run_onset({"scan", model, "--ids", "1,a"}), 2, "\"a\"");
  expect_refusal(run_onset({"scan", model, "--ids", "1,-5"}), 2, "\"-5\"");
  expect_refusal(run_onset({"scan", model, "--ids", "1,99999999999"}), 2, "99999999999");
  expect_refusal(run_onset({"scan", model, "--ids", "1,256"}), 1, "256");
  // The fixtures have no tokenizer: a text cannot be encoded, and the hint says what can be done.
  expect_refusal(run_onset({"scan", model, "--prompt", "hi"}), 1, "--ids");
  const TemporaryFolder folder;
  expect_refusal(run_onset({"scan", model, "--jsonl", folder.write("empty.jsonl", "\n").string()}),
                 1, "holds no prompt");
  expect_refusal(
      run_onset({"scan", model, "--jsonl", folder.write("a.jsonl", "{\"ids\":[]}").string()}), 1,
      "a.jsonl:1");
}

TEST(Scan, PromptsBeyondTheContextAreWarnedOf) {
  // The fixture's configuration says 128 positions.
  std::string ids = "1";
  for (int i = 1; i < 129; ++i) ids += ",2";
  const auto outcome = run_onset({"scan", model_path("llama_me"), "--ids",
                                  ids.substr(0, 127 * 2 + 1), "--ids", ids, "--json"});
  ASSERT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.error.find("onset: warning: --ids 2: 129 tokens, more than the model's context "
                               "of 128"),
            std::string::npos)
      << outcome.error;
  EXPECT_EQ(outcome.error.find("--ids 1:"), std::string::npos);
  const auto prompts = outcome.json()["prompts"];
  EXPECT_EQ(prompts[0]["ids"].size(), 128U);
  EXPECT_EQ(prompts[0]["beyond_context"], false);
  EXPECT_EQ(prompts[1]["beyond_context"], true);
  EXPECT_EQ(outcome.json()["run"]["weights"], "streamed");
}

TEST(Scan, IdsOutsideTheVocabularyNameTheirPrompt) {
  const auto model = model_path("llama_me");
  expect_refusal(run_onset({"scan", model, "--ids", "1,2", "--ids", "1,256"}), 1,
                 "--ids 2: token 1 has id 256");
  const TemporaryFolder folder;
  const auto rows = folder.write("rows.jsonl", "{\"ids\":[1]}\n{\"ids\":[999]}\n").string();
  expect_refusal(run_onset({"scan", model, "--jsonl", rows}), 1,
                 "rows.jsonl:2: token 0 has id 999");
}

TEST(Scan, AHugeTopListsWhatThereIs) {
  const auto outcome =
      run_onset({"scan", model_path("llama_me"), "--ids", "1,2", "--top", "1000000000", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json()["prompts"][0]["layers"][0]["top"].size(), 2U * 64U);
  const auto none =
      run_onset({"scan", model_path("llama_me"), "--ids", "1,2", "--top", "0", "--json"});
  EXPECT_EQ(none.json()["prompts"][0]["layers"][0]["top"].size(), 0U);
}

TEST(Scan, ThresholdsAreThoseGiven) {
  const auto found =
      run_onset({"scan", model_path("llama_me"), "--ids", reference_of("llama_me").ids, "--min-abs",
                 "5", "--min-ratio", "500", "--json"})
          .json();
  EXPECT_EQ(found["rule"]["min_abs"], 5);
  EXPECT_EQ(found["rule"]["min_ratio"], 500);
  // Both planted dims are above 500 times the median.
  EXPECT_EQ(found["massive_dims"], OrderedJson::array({22, 48}));
}

TEST(Scan, BosYesPutsItOnceBeforeIds) {
  const auto found = run_onset({"scan", model_path("llama_me"), "--ids", "5,6", "--ids", "1,6",
                                "--bos", "yes", "--json"})
                         .json();
  EXPECT_EQ(found["model"]["bos"], 1);
  EXPECT_EQ(found["prompts"][0]["ids"], OrderedJson::array({1, 5, 6}));
  EXPECT_EQ(found["prompts"][0]["bos_added"], true);
  EXPECT_EQ(found["prompts"][1]["ids"], OrderedJson::array({1, 6}));
  EXPECT_EQ(found["prompts"][1]["bos_added"], false);
}

class ScanDemo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "scripts/setup did not fetch the model";
  }
  static std::string model() { return demo_model().string(); }
};

TEST_F(ScanDemo, FindsLayer11InThePapersPrompt) {
  const auto outcome =
      run_onset({"scan", model(), "--prompt", "My favorite color is Dark Blue.", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["me_layer"], 11);
  EXPECT_EQ(found["last_massive_layer"], 27);
  EXPECT_EQ(found["massive_dims"], OrderedJson::array({507}));
  EXPECT_EQ(found["model"]["bos"], "none");
  EXPECT_EQ(found["prompts"][0]["ids"],
            OrderedJson::array({5965, 4932, 2380, 314, 15693, 10062, 30}));
  std::vector<int> rises;
  std::vector<int> falls;
  for (const auto& stage : found["stages"]) {
    (stage["kind"] == "rise" ? rises : falls).push_back(stage["layer"].get<int>());
    if (stage["layer"] != 11) continue;
    EXPECT_NEAR(stage["after"].get<double>(), 23738, 23.738);
    EXPECT_GT(stage["ffn_share"].get<double>(), 0.95);
  }
  EXPECT_EQ(rises, (std::vector<int>{1, 2, 11}));
  EXPECT_EQ(falls, (std::vector<int>{9, 10, 28, 29}));
}

TEST_F(ScanDemo, BuiltInTextsAgree) {
  const auto found = run_onset({"scan", model(), "--json"}).json();
  EXPECT_EQ(found["prompts"].size(), 8U);
  EXPECT_EQ(found["prompts"][0]["text"], "My favorite color is Dark Blue.");
  EXPECT_EQ(found["me_layer"], 11);
  EXPECT_EQ(found["agreement"], 1.0);
  for (const auto& prompt : found["prompts"]) {
    EXPECT_GE(prompt["ids"].size(), 7U);
    EXPECT_LE(prompt["ids"].size(), 40U);
  }
  const auto table = run_onset({"scan", model()});
  EXPECT_LE(widest_line(table.out), 80U) << table.out;
  EXPECT_NE(unwrapped(table.out).find("8 of 8 prompts agree"), std::string::npos) << table.out;
  // The table counts layers over all prompts: the verdict says what it leaves to the others.
  std::vector<int> lasts;
  for (const auto& prompt : found["prompts"]) lasts.push_back(prompt["last_massive_layer"]);
  EXPECT_EQ(std::count(lasts.begin(), lasts.end(), 27), 7);
  EXPECT_EQ(std::count(lasts.begin(), lasts.end(), 28), 1);
  EXPECT_NE(
      unwrapped(table.out).find("They last to layer 27 (block 28 of 30) in 7 of 8 prompts, to "
                                "layer 28 in 1; layer 28 takes"),
      std::string::npos)
      << table.out;
  EXPECT_NE(table.out.find("18 (11 to 28)"), std::string::npos) << table.out;
}

TEST_F(ScanDemo, PromptsWithoutAYardstickSaySo) {
  const auto short_prompt = run_onset({"scan", model(), "--prompt", "Hello"});
  EXPECT_NE(short_prompt.out.find("No ME layer."), std::string::npos) << short_prompt.out;
  EXPECT_NE(unwrapped(short_prompt.out).find("The largest rise is in layer 11"), std::string::npos)
      << short_prompt.out;
  const auto found = run_onset({"scan", model(), "--ids", "260,260,260,260", "--json"}).json();
  EXPECT_EQ(found["note"], "uniform");
  EXPECT_TRUE(found["me_layer"].is_null());
}

TEST_F(ScanDemo, ChatsAreRendered) {
  const auto found =
      run_onset({"scan", model(), "--chat", "--prompt", "What is the capital of France?", "--json"})
          .json();
  // The ids of tests/data/smollm2/scan.json, prompt "chat".
  const auto reference = OrderedJson::parse(read_file(testing::data("smollm2/scan.json")));
  for (const auto& prompt : reference["prompts"]) {
    if (prompt["name"] == "chat") {
      EXPECT_EQ(found["prompts"][0]["ids"], prompt["ids"]);
    }
  }
  EXPECT_EQ(found["me_layer"], 11);
}

TEST_F(ScanDemo, ASpecialTokenInAMessageIsTextUnlessAskedFor) {
  const std::string said = "What is <|im_end|>?";
  for (const bool special : {false, true}) {
    std::vector<std::string> scan{"scan", model(), "--chat", "--prompt", said, "--json"};
    std::vector<std::string> tokenize{"tokenize", model(), "--chat", "--text", said};
    (special ? scan : tokenize).emplace_back(special ? "--parse-special" : "--literal");
    const auto ids = run_onset(scan).json()["prompts"][0]["ids"];
    EXPECT_EQ(ids, run_onset(tokenize).json()["ids"]);
    // SmolLM2's <|im_end|> is 2: it ends the system's and the user's turn.
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), special ? 3 : 2);
  }
  expect_refusal(run_onset({"scan", model(), "--prompt", said, "--parse-special"}), 2,
                 "--parse-special is for chats");
}

// The largest entries and who wrote them, stage or not: by the layers' own statistics.
TEST(Scan, AttributesTheLargestEntries) {
  for (const std::string model : {"llama_me", "mixtral"}) {
    const std::vector<std::string> arguments{
        "scan", model_path(model), "--ids", "1,2,3,4,9", "--min-abs", "1", "--min-ratio", "3"};
    auto json = arguments;
    json.emplace_back("--json");
    const auto document = run_onset(json).json();
    const auto& prompt = document["prompts"][0];
    double most = 0;
    for (const auto& layer : prompt["layers"])
      most = std::max(most, layer["max_abs"].get<double>());
    const auto& all = prompt["largest"]["all_layers"];
    EXPECT_EQ(std::abs(all["value"].get<double>()), most) << model;
    const auto& born = prompt["largest"]["me_layer"];
    ASSERT_EQ(born["layer"], prompt["me_layer"]) << model;
    const auto& layer = prompt["layers"][born["layer"].get<std::size_t>()];
    for (const auto* field : {"token", "dim", "value"})
      EXPECT_EQ(born[field], layer[field]) << model;
    for (const auto& entry : {all, born}) {
      const auto& parts = entry["parts"];
      const auto sum = (parts["resid_pre"].get<float>() + parts["attn_out"].get<float>()) +
                       parts["ffn_out"].get<float>();
      EXPECT_EQ(sum, entry["value"].get<float>()) << model;
      EXPECT_EQ(entry.contains("experts"), model == "mixtral");
    }
    const auto text = run_onset(arguments).out;
    EXPECT_NE(text.find("\nME:      layer "), std::string::npos) << text;
    EXPECT_NE(text.find("\nlargest: layer "), std::string::npos) << text;
    EXPECT_LE(widest_line(text), 80U);
  }
}

// Where neither part of a block has 60 % of what it adds, both are told.
TEST(Scan, TellsBothPartsWhereNeitherPrevails) {
  const auto path = model_path("qwen2_moe");
  const std::vector<std::string> arguments{"scan",      path, "--ids",       "1,2,3,4",
                                           "--min-abs", "1",  "--min-ratio", "3"};
  auto json = arguments;
  json.emplace_back("--json");
  const auto document = run_onset(json).json();
  const auto& me = document["me_layer"];
  for (const auto& stage : document["stages"]) {
    if (stage["layer"] != me || stage["kind"] != "rise") continue;
    EXPECT_GT(stage["attn_share"].get<double>(), 0.4);
    EXPECT_LT(stage["attn_share"].get<double>(), 0.6);
  }
  auto text = run_onset(arguments).out;
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_NE(text.find("half by its attention ("), std::string::npos) << text;
  EXPECT_NE(text.find("half by its FFN ("), std::string::npos) << text;
}

}  // namespace
}  // namespace onset::testing
