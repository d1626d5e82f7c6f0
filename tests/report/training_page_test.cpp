// The page of a run draws what its files hold.
#include "onset/report/training_page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onset/report/training_figures.h"
#include "onset/train/settings_toml.h"
#include "support/page_data.h"
#include "support/support.h"

namespace onset::testing {
namespace {

std::vector<MetricsLine> lines_of(const std::string& name, const std::vector<double>& values) {
  std::vector<MetricsLine> lines;
  for (std::size_t i = 0; i < values.size(); ++i) {
    lines.push_back(
        {.step = static_cast<std::int64_t>(10 * (i + 1)), .metrics = {{name, values[i]}}});
  }
  return lines;
}

std::vector<std::string> ids_of(const std::vector<Figure>& figures) {
  std::vector<std::string> ids;
  for (const Figure& figure : figures) ids.push_back(figure.id);
  return ids;
}

TEST(TrainingFigures, OnlyWhatIsThereIsDrawn) {
  auto lines = lines_of("loss", {3, 2});
  lines[0].metrics.push_back({"learning_rate", 0.5});
  lines[1].metrics.push_back({"eval_loss", 2.5});
  const auto figures = curve_figures(lines);
  EXPECT_EQ(ids_of(figures), (std::vector<std::string>{"curve-loss", "curve-rate"}));
  const auto& series = figures[0].data["series"];
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0]["name"], "loss");
  EXPECT_EQ(series[0]["steps"], OrderedJson::parse("[10, 20]"));
  EXPECT_EQ(series[0]["values"], OrderedJson::parse("[3.0, 2.0]"));
  EXPECT_EQ(series[0]["smooth"], nullptr);
  EXPECT_EQ(series[1]["name"], "eval_loss");
  EXPECT_EQ(series[1]["steps"], OrderedJson::parse("[20]"));
  EXPECT_EQ(figures[0].see, "loss: 3 at step 10, 2 at step 20. eval_loss: 2.5 at step 20.");
  ASSERT_EQ(figures[0].tables.size(), 1U);
  EXPECT_EQ(figures[0].tables[0].header, (std::vector<std::string>{"step", "loss", "eval_loss"}));
  EXPECT_EQ(figures[0].tables[0].rows,
            (std::vector<std::vector<std::string>>{{"10", "3", ""}, {"20", "2", "2.5"}}));
  // Of the lines that have the metric.
  ASSERT_EQ(figures[1].tables.size(), 1U);
  EXPECT_EQ(figures[1].tables[0].rows, (std::vector<std::vector<std::string>>{{"10", "0.5"}}));
}

TEST(TrainingFigures, TheMarginIsToldOfImplicitRewards) {
  const std::vector<MetricsLine> lines = {
      {.step = 1, .metrics = {{"rewards/chosen", 1}, {"rewards/rejected", -1}}},
      {.step = 1, .metrics = {{"rewards/margins", 2}}},
      {.step = 1, .metrics = {{"eval_rewards/margins", 0.5}}}};
  EXPECT_EQ(curve_figures(lines).front().see,
            "rewards/chosen: 1 at step 1. rewards/margins: 2 at step 1. eval_rewards/margins: 0.5 "
            "at step 1.");
}

TEST(TrainingFigures, EachRewardHasALine) {
  std::vector<MetricsLine> lines = {{.step = 1,
                                     .metrics = {{"reward", 1},
                                                 {"rewards/format/mean", 0.5},
                                                 {"rewards/format/std", 0.1},
                                                 {"rewards/length/mean", -0.5}}}};
  const auto figures = curve_figures(lines);
  ASSERT_EQ(ids_of(figures), std::vector<std::string>{"curve-reward"});
  std::vector<std::string> names;
  for (const auto& one : figures[0].data["series"]) names.push_back(one["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"reward", "rewards/format/mean", "rewards/length/mean"}));
}

TEST(TrainingFigures, ManyPointsGetARunningMeanAndAreThinnedByMeans) {
  std::vector<double> values(40);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1 : 2;
  const auto short_run = curve_figures(lines_of("loss", values));
  const auto& smooth = short_run[0].data["series"][0]["smooth"];
  ASSERT_EQ(smooth.size(), 40U);
  EXPECT_NEAR(smooth[0].get<double>(), 1.5, 1e-4);      // of 1, 2
  EXPECT_NEAR(smooth[1].get<double>(), 4.0 / 3, 1e-4);  // of 1, 2, 1
  EXPECT_NEAR(smooth[2].get<double>(), 5.0 / 3, 1e-4);  // of 2, 1, 2
  const auto long_run = curve_figures(lines_of("loss", std::vector<double>(4500, 7)));
  const auto& series = long_run[0].data["series"][0];
  EXPECT_EQ(series["values"].size(), 1500U);
  EXPECT_EQ(series["steps"][0], 20.0);  // of steps 10, 20, 30
  EXPECT_EQ(series["values"][0], 7.0);
}

TEST(TrainingFigures, TheHeatMapHasTheFirstAndTheLastStep) {
  std::vector<WatchedStep> watched;
  for (int i = 0; i <= 1000; ++i) {
    watched.push_back({.step = 5 * i, .me_layer = {}, .max_abs = {1, 2.0 + i}, .ratio = {1, 2}});
  }
  watched.back().me_layer = 1;
  const Figure figure = watch_figure(watched);
  ASSERT_EQ(figure.data["steps"].size(), 600U);
  EXPECT_EQ(figure.data["steps"].front(), 0);
  EXPECT_EQ(figure.data["steps"].back(), 5000);
  EXPECT_EQ(figure.data["max_abs"].back(), OrderedJson::parse("[1.0, 1002.0]"));
  EXPECT_EQ(figure.data["me_layer"].front(), nullptr);
  EXPECT_EQ(figure.data["me_layer"].back(), 1);
  ASSERT_EQ(figure.tables.size(), 1U);
  EXPECT_EQ(figure.tables[0].header,
            (std::vector<std::string>{"step", "ME layer", "layer 0", "layer 1"}));
  EXPECT_EQ(figure.tables[0].rows.size(), 200U);
  EXPECT_EQ(figure.tables[0].rows.front(), (std::vector<std::string>{"0", "none", "1", "2"}));
  EXPECT_EQ(figure.tables[0].rows.back(), (std::vector<std::string>{"5000", "1", "1", "1002"}));
  EXPECT_EQ(figure.see,
            "The largest |x| goes from 2 at step 0 to 1002 at step 5000. An ME layer is there "
            "first at step 5000: layer 1. At the end it is layer 1.");
}

TEST(TrainingPage, IsMadeOfARunsFolder) {
  const TemporaryFolder folder;
  (void)folder.write(
      "metrics.jsonl",
      "{\"step\":1,\"loss\":4,\"grad_norm\":1}\n{\"step\":2,\"loss\":2,\"grad_norm\":3}\n");
  (void)folder.write("watch.jsonl",
                     "{\"step\":0,\"me_layer\":null,\"layers\":[{\"max_abs\":1,\"ratio\":2},"
                     "{\"max_abs\":null,\"ratio\":null}]}\n"
                     "{\"step\":2,\"me_layer\":null,\"layers\":[{\"max_abs\":1},{\"max_abs\":5}]}\n"
                     "{\"step\":2,\"me_layer\":1,\"layers\":[{\"max_abs\":1},{\"max_abs\":500}]}\n"
                     "{\"step\":3,\"me_la");
  (void)folder.write("settings.toml", "model = \"<b>\"\n");
  const std::string html = training_report(folder.path());
  const OrderedJson page = page_data_of(html);
  const OrderedJson watch = figure_of(page, "watch");
  EXPECT_EQ(watch["steps"], OrderedJson::parse("[0, 2]"));
  EXPECT_EQ(watch["max_abs"], OrderedJson::parse("[[1.0, null], [1.0, 500.0]]"));
  EXPECT_EQ(figure_of(page, "curve-loss")["series"][0]["values"], OrderedJson::parse("[4.0, 2.0]"));
  EXPECT_EQ(figure_of(page, "curve-norm")["logarithmic"], true);
  EXPECT_NE(html.find("model = &quot;&lt;b&gt;&quot;"), std::string::npos);
  EXPECT_EQ(html.find("model = \"<b>\""), std::string::npos);
}

std::vector<std::string> boxes_of(const Page& page) {
  std::vector<std::string> boxes;
  for (const Fact& fact : page.highlights) {
    boxes.push_back(fact.name + " " + fact.value +
                    (fact.remark.empty() ? "" : " (" + fact.remark + ")"));
  }
  return boxes;
}

TEST(TrainingPage, TheBoxesHoldTheLossesAtTheEnd) {
  auto lines = lines_of("loss", {4, 3, 2});
  // Evaluations are lines of their own, the last of them behind the last update's.
  lines.insert(lines.begin() + 2, {.step = 20, .metrics = {{"eval_loss", 5}}});
  lines.push_back({.step = 30, .metrics = {{"eval_loss", 4.5}}});
  const Page page = training_page({.name = "run", .lines = lines});
  EXPECT_EQ(boxes_of(page), (std::vector<std::string>{"steps 30", "train loss 2 (from 4)",
                                                      "held-out loss 4.5 (at step 30)"}));
  EXPECT_EQ(page.lead, std::vector<std::string>{
                           "The loss is 4 over the first tenth of 30 steps and 2 over the last; on "
                           "held-out data it is 4.5 at step 30. The run's folder is run."});
}

TEST(TrainingPage, TheBoxesOfDpoHaveAccuracyAndMarginAndThoseOfGrpoTheReward) {
  const std::vector<MetricsLine> dpo = {
      {.step = 1, .metrics = {{"loss", 0.7}, {"rewards/accuracies", 0.5}, {"rewards/margins", 0}}},
      {.step = 2, .metrics = {{"loss", 0.6}, {"rewards/accuracies", 1}, {"rewards/margins", 2}}},
      {.step = 2,
       .metrics = {
           {"eval_loss", 0.65}, {"eval_rewards/accuracies", 0.75}, {"eval_rewards/margins", 1.5}}}};
  EXPECT_EQ(boxes_of(training_page({.name = "run", .lines = dpo})),
            (std::vector<std::string>{
                "steps 2", "train loss 0.6 (from 0.7)", "held-out loss 0.65 (at step 2)",
                "accuracy 1 (from 0.5; held out 0.75)", "margin 2 (from 0; held out 1.5)"}));
  const std::vector<MetricsLine> grpo = {{.step = 1, .metrics = {{"loss", 0.1}, {"reward", 0.25}}},
                                         {.step = 2, .metrics = {{"loss", 0.1}, {"reward", 0.5}}}};
  EXPECT_EQ(
      boxes_of(training_page({.name = "run", .lines = grpo})),
      (std::vector<std::string>{"steps 2", "train loss 0.1 (from 0.1)", "reward 0.5 (from 0.25)"}));
}

TEST(TrainingPage, BeginsWithMethodModelDataAndMask) {
  const TemporaryFolder folder;
  (void)folder.write("metrics.jsonl", "{\"step\":1,\"loss\":4}\n");
  TrainSettings settings = default_settings(TrainMethod::dpo);
  settings.model = "models/small.gguf";
  settings.data.train_file = "data/pairs.jsonl";
  settings.data.hold_out = 5;
  settings.lora.use_peft = true;
  settings.lora.r = 8;
  const auto html = [&] {
    (void)folder.write("settings.toml", settings_toml(settings));
    return training_report(folder.path());
  };
  const auto expect = [](const std::string& page, const std::string& part) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  };
  const std::string plain = html();
  expect(plain, "<title>DPO of small on pairs.jsonl, without a mask: onset train dpo</title>");
  expect(plain, "<h1>DPO of small on pairs.jsonl, without a mask</h1>");
  expect(plain,
         "Direct preference optimisation of an adapter of rank 8 on models/small.gguf, on "
         "data/pairs.jsonl, one prompt in 5 held out for evaluation. No mask is in any pass.");
  settings.wemask.wemask = "masks/wemask.json";
  settings.wemask.reference = ReferenceWemask::none;
  const std::string masked = html();
  expect(masked, "<h1>DPO of small on pairs.jsonl, under wemask.json</h1>");
  expect(masked,
         "The mask masks/wemask.json is in every pass, with the dims that it begins with; the "
         "reference has none.");
  // A folder, a file of its own to evaluate on, all weights.
  settings = default_settings(TrainMethod::sft);
  settings.model = "models/smollm2/";
  settings.data.train_file = "rows.jsonl";
  settings.data.eval_file = "others.jsonl";
  const std::string whole = html();
  expect(whole, "<h1>SFT of smollm2 on rows.jsonl, without a mask</h1>");
  expect(whole,
         "Supervised fine-tuning of all weights of models/smollm2/, on rows.jsonl, evaluated on "
         "others.jsonl.");
  settings = default_settings(TrainMethod::pretrain);
  settings.model = "tokenizer";
  settings.data.train_file = "texts.jsonl";
  settings.wemask.from_layer = 3;
  const std::string pretrained = html();
  expect(pretrained,
         "<h1>Pre-training of a new llama model of 8 layers and 256 dims on texts.jsonl, masked "
         "from layer 3 on</h1>");
  expect(pretrained, "with the tokenizer of tokenizer");
  // What is no settings' file is shown as it is, under the folder's name.
  (void)folder.write("settings.toml", "# onset train dpo\nunheard_of = 1\n");
  expect(training_report(folder.path()), "<h1>" + folder.path().filename().string() + "</h1>");
}

TEST(TrainingPage, WhatIsNoRunIsAnErrorThatNamesItsLine) {
  const TemporaryFolder folder;
  (void)folder.write("metrics.jsonl", "");
  EXPECT_NE(error_of([&] { (void)training_report(folder.path()); }).find("no numbers yet"),
            std::string::npos);
  (void)folder.write("watch.jsonl", "{\"step\":1,\"layers\":[{}]}\n{\"step\":2}\n");
  EXPECT_NE(error_of([&] { (void)read_watch(folder.path()); }).find("watch.jsonl:2: no layers"),
            std::string::npos);
  EXPECT_TRUE(read_watch(folder.path() / "missing.jsonl").empty());
}

}  // namespace
}  // namespace onset::testing
