// onset sinks: its JSON against the references and against itself by another route, and calls that
// it refuses.

#include <cmath>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

std::string ids_text(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const auto id : ids) text += str_cat(text.empty() ? "" : ",", id);
  return text;
}

// `count` ids, all different.
std::string some_ids(std::int64_t count, std::int64_t first = 3) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(first + i);
  return ids_text(ids);
}

void expect_near(const OrderedJson& found, const OrderedJson& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i].is_array()) {
      expect_near(found[i], expected[i], tolerance);
    } else if (expected[i].is_null()) {
      EXPECT_TRUE(found[i].is_null());
    } else {
      EXPECT_NEAR(found[i].get<double>(), expected[i].get<double>(), tolerance) << i;
    }
  }
}

TEST(Sinks, TheFusedKernelAndTheExplicitSoftmaxGiveTheSameNumbers) {
  for (const char* model : {"llama", "gemma2", "mistral"}) {
    const std::vector<std::string> arguments{"sinks", model_path(model), "--ids",   some_ids(30),
                                             "--ids", some_ids(30, 60),  "--token", "1",
                                             "--json"};
    auto explicit_arguments = arguments;
    explicit_arguments.emplace_back("--explicit");
    const auto blocks = run_onset(arguments).json();
    const auto whole = run_onset(explicit_arguments).json();
    EXPECT_EQ(blocks["softmax"], "blocks");
    EXPECT_EQ(whole["softmax"], "explicit");
    ASSERT_EQ(blocks["layers"].size(), whole["layers"].size());
    for (std::size_t l = 0; l < blocks["layers"].size(); ++l) {
      const auto& a = blocks["layers"][l];
      const auto& b = whole["layers"][l];
      EXPECT_EQ(a["queries"], b["queries"]);
      EXPECT_EQ(a["most_attended_key"], b["most_attended_key"]);
      expect_near(a["head_alpha"], b["head_alpha"], 2e-6);
      expect_near(a["head_score"], b["head_score"], 2e-5);
    }
  }
}

TEST(Sinks, QueriesBeyondAWindowAreCountedAsLeftOut) {
  const auto outcome = run_onset({"sinks", model_path("mistral"), "--ids", some_ids(20), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const auto& layer : outcome.json()["layers"]) {
    EXPECT_EQ(layer["window"], 8);
    EXPECT_EQ(layer["queries"], 7);
    EXPECT_EQ(layer["unseen"], 12);
  }
  const auto table = run_onset({"sinks", model_path("mistral"), "--ids", some_ids(20)});
  EXPECT_NE(table.out.find("sliding window hides token 0"), std::string::npos) << table.out;
  const auto full = run_onset({"sinks", model_path("llama"), "--ids", some_ids(20), "--json"});
  EXPECT_TRUE(full.json()["layers"][0]["window"].is_null());
  EXPECT_EQ(full.json()["layers"][0]["unseen"], 0);
}

TEST(Sinks, RatesFollowFromTheAlphasOfTheSamples) {
  const auto found = run_onset({"sinks", model_path("llama_me"), "--ids", some_ids(12), "--ids",
                                some_ids(9, 40), "--threshold", "0.12", "--json"})
                         .json();
  EXPECT_TRUE(found["text"]["length"].is_null()) << "samples of two lengths";
  EXPECT_EQ(found["text"]["source"], "ids");
  EXPECT_EQ(found["model"]["bos"], "none");
  double sinks = 0;
  double all = 0;
  for (const auto& sample : found["samples"]) {
    for (const auto& layer : sample["alpha"]) {
      for (const auto& alpha : layer) {
        sinks += alpha.get<double>() > 0.12 ? 1 : 0;
        all += 1;
      }
    }
  }
  EXPECT_NEAR(found["sink_rate"].get<double>(), sinks / all, 1e-6);
  EXPECT_GE(found["sink_rate_incl_self"].get<double>(), found["sink_rate"].get<double>());
  double uniform = 0;
  for (int i = 1; i < 12; ++i) uniform += 1.0 / (i + 1) / 11 / 2;
  for (int i = 1; i < 9; ++i) uniform += 1.0 / (i + 1) / 8 / 2;
  EXPECT_NEAR(found["layers"][0]["uniform_alpha"].get<double>(), uniform, 1e-6);
}

TEST(Sinks, TwoRunsDifferUnderRunOnly) {
  const std::vector<std::string> arguments{
      "sinks", model_path("qwen3"), "--ids", some_ids(10), "--repeat-id", "5", "--json"};
  auto a = run_onset(arguments).json();
  auto b = run_onset(arguments).json();
  EXPECT_EQ(a["control"]["id"], 5);
  EXPECT_EQ(a["control"]["length"], 10);
  a.erase("run");
  b.erase("run");
  EXPECT_EQ(a, b);
}

TEST(Sinks, TheTableFitsTheTerminal) {
  for (const char* locale : {"C.UTF-8", "C"}) {
    for (const char* model : {"llama", "gemma2"}) {
      const auto outcome = run_onset(
          {"sinks", model_path(model), "--ids", some_ids(40), "--repeated"}, {.locale = locale});
      ASSERT_EQ(outcome.code, 0) << outcome.error;
      EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
      EXPECT_NE(outcome.out.find("Control: token"), std::string::npos) << outcome.out;
    }
  }
}

// One [H, T, T] of this model is 537 MB.
TEST(Sinks, ALongSampleNeedsNoMatrixOfAttention) {
  Toy toy;
  toy.config["max_position_embeddings"] = 8192;
  toy.draw();
  const TemporaryFolder folder;
  toy.write(folder.path());
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 8192; ++i) ids.push_back((i * i + 7 * i) % 31);
  const auto outcome =
      run_onset({"sinks", folder.path().string(), "--ids", ids_text(ids), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_LT(outcome.json()["run"]["peak_memory_bytes"].get<std::int64_t>(), 450'000'000);
  EXPECT_EQ(outcome.json()["layers"][1]["queries"], 8191);
}

class DemoSinks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "run scripts/setup";
    model_ = demo_model().string();
  }
  std::string model_;
};

TEST_F(DemoSinks, EqualTheReference) {
  const auto reference = OrderedJson::parse(read_file(onset::testing::data("smollm2/sinks.json")));
  std::vector<std::string> arguments{"sinks", model_, "--json"};
  for (const auto& ids : reference["ids"]) {
    arguments.emplace_back("--ids");
    arguments.push_back(ids_text(ids.get<std::vector<std::int64_t>>()));
  }
  const auto found = run_onset(arguments).json();
  const auto& expected = reference["configs"]["none"];
  expect_near(found["samples"][0]["alpha"], expected["alpha0_sequence0"], 1e-4);
  for (std::size_t l = 0; l < 30; ++l) {
    EXPECT_NEAR(found["layers"][l]["mean_alpha"].get<double>(),
                expected["mean_alpha0_per_layer"][l].get<double>(), 1e-4);
    EXPECT_EQ(found["layers"][l]["most_attended_key"], expected["most_attended_key_per_layer"][l]);
  }
}

TEST_F(DemoSinks, ATextIsCutIntoSamples) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += str_cat("Line ", i, " of the file has words.\n");
  const auto file = folder.write("text.txt", text).string();
  const auto found = run_onset({"sinks", model_, "--text", file, "--length", "32", "--samples", "3",
                                "--bos", "yes", "--repeated", "--json"})
                         .json();
  EXPECT_EQ(found["text"]["source"], "file");
  EXPECT_EQ(found["text"]["length"], 32);
  EXPECT_EQ(found["text"]["samples"], 3);
  EXPECT_EQ(found["samples"].size(), 3U);
  // 31 tokens of the text in each sample.
  EXPECT_EQ(found["text"]["samples_in_text"], found["text"]["tokens"].get<int>() / 31);
  EXPECT_EQ(found["run"]["paths"]["text"], file);
  for (const auto& sample : found["samples"]) EXPECT_EQ(sample["ids"][0], found["model"]["bos"]);
  EXPECT_EQ(found["control"]["length"], 32);
  EXPECT_FALSE(found["control"]["piece"].is_null());
}

TEST_F(DemoSinks, ATextThatFillsNoSampleIsRefusedWithItsLength) {
  const TemporaryFolder folder;
  const auto file = folder.write("text.txt", "A few words.").string();
  const auto outcome = run_onset({"sinks", model_, "--text", file});
  expect_refusal(outcome, 1, "fill no sample of --length 64");
  EXPECT_NE(outcome.error.find("or --length 4"), std::string::npos) << outcome.error;
}

TEST_F(DemoSinks, TheBuiltInTextIsThere) {
  const auto outcome = run_onset({"sinks", model_, "--samples", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("2 samples of 64 tokens from the built-in text"), std::string::npos)
      << outcome.out;
  EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
}

TEST(Sinks, WrongOptionsAreRefusedWithARemedy) {
  const auto model = model_path("llama");
  const auto refuse = [&](std::vector<std::string> more, int code, const std::string& part,
                          const std::string& hint) {
    std::vector<std::string> arguments{"sinks", model};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run_onset(arguments);
    expect_refusal(outcome, code, part);
    EXPECT_NE(outcome.error.find(hint), std::string::npos) << outcome.error;
  };
  refuse({"--length", "1"}, 2, "--length 1", "at least --length 2");
  refuse({"--token", "63"}, 2, "--token 63: no query follows it", "--token 62 or less");
  refuse({"--token", "-1"}, 2, "--token", "");
  refuse({"--threshold", "3"}, 2, "--threshold 3", "from 0 to 1");
  refuse({"--threshold", "nan"}, 2, "--threshold", "");
  refuse({"--ids", "5"}, 2, "--ids: 1 token, so no query follows token 0", "more ids");
  refuse({"--ids", "5,6,7", "--token", "2"}, 2, "no query follows token 2", "smaller --token");
  refuse({"--ids", "5,99999"}, 1, "id 99999 is outside the model's vocabulary", "");
  refuse({"--ids", "5,6", "--repeat-id", "99999"}, 2, "--repeat-id", "");
  refuse({"--ids", "5,6", "--text", "x"}, 2, "exclude each other", "leave one");
  refuse({"--prompt", "x"}, 2, "unknown option", "--text");
  refuse({}, 1, "tokenizer", "--ids");
}

TEST(Sinks, FilesThatHoldNoTextAreRefused) {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& path, const std::string& part) {
    expect_refusal(run_onset({"sinks", model_path("llama"), "--text", path}), 1, part);
  };
  refuse(folder.write("empty.txt", "").string(), "is empty");
  refuse(folder.write("blank.txt", " \n\n").string(), "is empty");
  refuse(folder.write("latin.txt", "caf\xE9 au lait").string(), "byte 0xE9 at offset 3");
  refuse(folder.write("cut.txt", "caf\xC3").string(), "is not UTF-8");
  refuse(folder.path().string(), "is a folder");
  refuse((folder.path() / "absent.txt").string(), "absent.txt");
}

}  // namespace
}  // namespace onset::testing
