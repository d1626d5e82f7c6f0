// The page of a run draws what its files hold.
#include "onset/report/training_page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onset/report/training_figures.h"
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
  EXPECT_EQ(figures[0].see, "loss: 3 at step 10, 2 at step 20.");
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

TEST(TrainingPage, TheLatestEvaluationIsAHighlight) {
  auto lines = lines_of("loss", {4, 3, 2});
  lines[0].metrics.push_back({"eval_loss", 5});
  lines[1].metrics.push_back({"eval_loss", 4.5});
  const Page page = training_page({.name = "run", .lines = lines});
  ASSERT_EQ(page.highlights.size(), 3U);
  EXPECT_EQ(page.highlights[1].value, "2");
  EXPECT_EQ(page.highlights[1].remark, "from 4");
  EXPECT_EQ(page.highlights[2].value, "4.5");
  EXPECT_EQ(page.highlights[2].remark, "at step 20");
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
