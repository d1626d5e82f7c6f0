// onset ablate as a user runs it: a small task of the user's on the demonstration model.

#include <cmath>
#include <set>

#include "app/program.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

using Arguments = std::vector<std::string>;

class Ablate : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
    file_ = folder_
                .write("toy.toml",
                       "format = 'onset.task.1'\nname = 'toy'\nversion = '1.0'\nsummary = 'a toy'\n"
                       "kind = 'choice'\n[data]\nfile = 'toy.jsonl'\nsource = 'the toy set'\n"
                       "[prompt]\nquestion = 'The capital of {q}'\n[choice]\ntexts = '{c}'\n"
                       "gold = '{g}'\n[[metrics]]\nmeasure = 'acc'\n")
                .string();
    static_cast<void>(
        folder_.write("toy.jsonl",
                      "{\"q\":\"France is\",\"c\":[\"Paris\",\"Oslo\",\"a green hat\"],\"g\":0}\n"
                      "{\"q\":\"Norway is\",\"c\":[\"Paris\",\"Oslo\"],\"g\":1}\n"
                      "{\"q\":\"Italy is\",\"c\":[\"Rome\",\"Oslo\"],\"g\":0}\n"));
  }

  [[nodiscard]] Outcome run(const Arguments& more) const {
    Arguments arguments{"ablate", demo_model().string(),  "--task-file", file_,
                        "--data", folder_.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_onset(arguments);
  }

  TemporaryFolder folder_;
  std::string file_;
};

TEST_F(Ablate, EverySettingIsComparedWithTheBaselineAndItsControls) {
  const auto out = (folder_.path() / "out").string();
  const Arguments options{
      "--criterion", "weight,random,random_energy", "--rate", "0.25,1", "--seeds", "2", "-o", out};
  auto outcome = run(options);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
  EXPECT_NE(outcome.out.find("random_energy, rate 0.25"), std::string::npos) << outcome.out;
  const auto result = read_json(folder_.path() / "out" / "ablation.json");
  const auto& settings = result.at("settings");
  ASSERT_EQ(settings.size(), 6U);
  const auto& weight = settings[0];
  EXPECT_EQ(weight.at("from_layer"), 12) << "behind SmolLM2's ME layer, 11";
  const auto& random = settings[1];
  EXPECT_EQ(random.at("criterion"), "random");
  EXPECT_EQ(random.at("seeds"), Json::parse("[0, 1]"));
  const auto energy = [](const Json& row) { return row.at("energy_removed").get<double>(); };
  const auto& equal = settings[2];
  // The control takes away what the mask takes away, though each layer is measured under its own
  // mask; a random one does so by chance alone.
  const double apart = std::abs(energy(equal) - energy(weight));
  EXPECT_LT(apart, 0.005);
  EXPECT_LT(10 * apart, std::abs(energy(random) - energy(weight)));
  // All dims are all dims, however they are chosen.
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_NEAR(energy(settings[i]), 1, 1e-6) << i;
    EXPECT_EQ(settings[i].at("scores")[0].at("against_baseline").at("difference"),
              settings[3].at("scores")[0].at("against_baseline").at("difference"));
    EXPECT_NEAR(settings[i].at("sink_rate").get<double>(),
                settings[3].at("sink_rate").get<double>(), 1e-9);
  }
  EXPECT_EQ(weight.at("scores")[0].at("against_random").at("n"), 3);
  EXPECT_TRUE(random.at("scores")[0].at("against_random").is_null());
  // One mask for each run, which can be used again.
  std::set<std::string> masks;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "out" / "masks")) {
    masks.insert(entry.path().filename().string());
  }
  EXPECT_EQ(masks.size(), 10U);
  EXPECT_EQ(masks.count("random-rate-0.25-mask-1.json"), 1U);
  EXPECT_NE(read_file(folder_.path() / "out" / "ablation.html").find("ablation-scores"),
            std::string::npos);
  // A second time everything is there already, and gives the same.
  outcome = run(options);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(read_json(folder_.path() / "out" / "ablation.json").at("settings"), settings);
}

TEST_F(Ablate, EveryRunIsWrittenAsEvalWritesItsOwn) {
  const auto out = folder_.path() / "out";
  const auto outcome = run({"--criterion", "weight,random", "--rate", "0.5", "--seeds", "2",
                            "--log-samples", "-o", out.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto settings = read_json(out / "ablation.json").at("settings");
  const auto compared = run_onset({"compare", (out / "runs" / "no-mask").string(),
                                   (out / "runs" / "weight-rate-0.5").string(), "--json"});
  ASSERT_EQ(compared.code, 0) << compared.error;
  const auto comparison = compared.json();
  const auto& row = comparison.at("comparisons").at(0);
  const auto& against = settings.at(0).at("scores").at(0).at("against_baseline");
  EXPECT_EQ(row.at("n"), 3);
  EXPECT_EQ(row.at("difference").get<double>(), against.at("difference").get<double>());
  EXPECT_EQ(row.at("p").get<double>(), against.at("p").get<double>());
  for (const auto& setting : comparison.at("settings")) {
    EXPECT_EQ(setting.at("name"), "wemask") << "nothing else differs";
  }
  EXPECT_TRUE(std::filesystem::exists(out / "runs" / "random-rate-0.5-mask-1"));
  expect_refusal(run({"--log-samples"}), 2, "--log-samples writes files");
}

// Every dim of the first token from the first layer on: each window of the text is read worse.
TEST_F(Ablate, WhatIsClearlyWorseIsGivenUpAfterTheBudget) {
  std::string text;
  for (const char* sentence :
       {"The river rises in the hills and runs for ninety miles before it meets the sea. ",
        "In spring the snow melts, and the water stands high above the lower meadows. ",
        "Farmers have built walls of stone along the bank, and mend them every summer. ",
        "A bridge with five arches carries the old road from the market town to the coast. ",
        "It was begun in the reign of a king who never saw it, and finished by his grandson. ",
        "Boats no longer pass below it, since the harbour silted up a century ago. ",
        "Children swim there in July, and their parents sit in the shade of the alders. ",
        "When the mill was closed its wheel was given to a museum in the capital. "}) {
    text += sentence;
    text += sentence;
  }
  static_cast<void>(folder_.write("text.txt", text));
  const auto task = folder_.write(
      "text.toml",
      "format = 'onset.task.1'\nname = 'river'\nversion = '1.0'\nsummary = 'a text'\n"
      "kind = 'text'\n[data]\nfile = 'text.txt'\nsource = 'the text'\n[text]\nwindow = 24\n"
      "[[metrics]]\nmeasure = 'token_perplexity'\n");
  const auto outcome = run({"--task-file", task.string(), "--criterion", "weight", "--rate", "1",
                            "--from-layer", "0", "--budget", "1", "--windows", "10", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto result = outcome.json();
  const auto& setting = result.at("settings").at(0);
  EXPECT_EQ(setting.at("stopped"), true) << setting;
  for (const auto& score : setting.at("scores")) {
    const auto& found = score.at("against_baseline");
    if (score.at("task") == "toy") {
      EXPECT_EQ(found.at("n"), 1) << "the budget";
    } else {
      EXPECT_EQ(score.at("metric"), "nll");
      EXPECT_GT(found.at("difference").get<double>(), 0);
      EXPECT_LE(found.at("p").get<double>(), 0.025);
    }
  }
}

TEST_F(Ablate, WrongUseIsRefused) {
  expect_refusal(run({"--criterion", "wieght"}), 2, "unknown criterion \"wieght\"");
  expect_refusal(run({"--rate", "0.1", "--k", "5"}), 2, "give one of them");
  expect_refusal(run({"--rate", "0.1,0.1"}), 2, "is there twice");
  expect_refusal(run({"--rate", "0.1,"}), 2, "a part of the list is empty");
  expect_refusal(run({"--rate", "1.5", "--from-layer", "12"}), 2, "rate is 1.5");
  expect_refusal(run({"--k", "577"}), 2, "k is 577, expected 1 to 576");
  expect_refusal(run({"--gamma", "5"}), 2, "gamma is 5, expected 0 to 1");
  expect_refusal(run({"--from-layer", "30"}), 2, "layers 0 to 29");
  expect_refusal(run({"--placement", "before"}), 2, "post_norm, pre_norm");
  expect_refusal(run({"--alpha", "0"}), 2, "--alpha");
  expect_refusal(run({"--tasks", "toyy"}), 2, "toyy");
  expect_refusal(run_onset({"ablate", demo_model().string()}), 2, "needs tasks");
}

}  // namespace
}  // namespace onset::testing
