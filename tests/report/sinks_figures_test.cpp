// The pictures of sinks show what was measured, whatever the numbers and texts are, and stay small.
#include "onset/report/sinks_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onset/model/model.h"
#include "onset/report/html.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// One sample of L layers with H heads, alpha and score by (layer, head).
SinksResult made(std::size_t layers, std::size_t heads, const auto& alpha, const auto& score) {
  SinksResult result;
  SequenceSinks sample;
  for (std::size_t l = 0; l < layers; ++l) {
    LayerSinks layer;
    for (std::size_t h = 0; h < heads; ++h) {
      layer.alpha.push_back(alpha(l, h));
      layer.alpha_incl_self.push_back(alpha(l, h));
      layer.score.push_back(score(l, h));
    }
    sample.layers.push_back(std::move(layer));
    result.most_attended.emplace_back();
    result.uniform_alpha.push_back(0.059);
  }
  result.samples = {std::move(sample)};
  result.summary = summarise(result.samples, result.options.threshold);
  return result;
}

SinksResult made(std::size_t layers, std::size_t heads) {
  const auto wave = [](std::size_t l, std::size_t h) {
    return 0.5 + 0.49 * std::sin(static_cast<double>(31 * l + 17 * h));
  };
  return made(layers, heads, wave, [&](auto l, auto h) { return -123.456 * wave(l, h); });
}

// dump() writes NaN as null, so look at the values.
void expect_finite(const OrderedJson& value) {
  if (value.is_number_float()) {
    EXPECT_TRUE(std::isfinite(value.get<double>()));
  }
  if (!value.is_structured()) return;
  for (const auto& part : value) expect_finite(part);
}

TEST(SinksFigures, CellsAreMeansOverTheSamples) {
  const ReferenceTensors reference(data("models/llama_me/reference.safetensors"));
  const Model model = Model::open(data("models/llama_me"));
  const std::vector<std::vector<std::int64_t>> samples{
      {1, 5, 9, 4, 7, 2}, {3, 8, 6, 2, 4, 9}, {7, 7, 1, 2, 3, 4}};
  const auto result = measure_sinks(model, samples, {});
  const std::vector<std::int64_t> windows(result.summary.layer_rate.size(), 0);
  const Figure figure = sink_heads_figure({.result = result, .windows = windows});
  const auto layers_figure = sink_layers_figure({.result = result, .windows = windows});
  const auto& series = layers_figure.data["plots"][0][0]["series"];
  for (std::size_t l = 0; l < windows.size(); ++l) {
    double layer_sum = 0;
    double layer_above = 0;
    const std::size_t heads = result.samples[0].layers[l].alpha.size();
    for (std::size_t h = 0; h < heads; ++h) {
      double sum = 0;
      double score = 0;
      double above = 0;
      for (const auto& sample : result.samples) {
        sum += sample.layers[l].alpha[h];
        score += sample.layers[l].score[h];
        above += sample.layers[l].alpha[h] > 0.3 ? 1 : 0;
      }
      const auto& views = figure.data["views"];
      EXPECT_NEAR(views[0]["values"][l][h].get<double>(), sum / 3, 5.1e-5);
      EXPECT_NEAR(views[1]["values"][l][h].get<double>(), above / 3, 5.1e-5);
      EXPECT_NEAR(views[2]["values"][l][h].get<double>(), score / 3, 5.1e-4);
      layer_sum += sum;
      layer_above += above;
    }
    const double cells = 3 * static_cast<double>(heads);
    EXPECT_NEAR(series[0]["values"][l].get<double>(), layer_above / cells, 6e-6);
    EXPECT_NEAR(series[1]["values"][l].get<double>(), layer_sum / cells, 6e-6);
    // Even attention over six tokens: 1/2 .. 1/6.
    EXPECT_NEAR(series[2]["values"][l].get<double>(), (1. / 2 + 1. / 3 + 1. / 4 + .2 + 1. / 6) / 5,
                6e-6);
  }
}

TEST(SinksFigures, CaptionComparesTheLayersThatReadAMassiveState) {
  const auto step = [](std::size_t l, std::size_t) { return l == 2 || l == 3 ? 0.9 : 0.1; };
  const auto result = made(6, 4, step, step);
  const std::vector<std::int64_t> windows(6, 0);
  const SinksFiguresInput input{
      .result = result, .windows = windows, .me_layer = 1, .last_massive_layer = 2};
  const auto figure = sink_layers_figure(input);
  EXPECT_NE(figure.see.find("In layers 2 to 3, whose attention reads a massive state, the rate is "
                            "1; in the others 0."),
            std::string::npos)
      << figure.see;
  EXPECT_NE(figure.see.find("Hardly any head is a sink (a rate below 0.05) in layers 0 to 1, 4 to "
                            "5."),
            std::string::npos)
      << figure.see;
  EXPECT_EQ(figure.data["me_layer"], 1);
  EXPECT_EQ(figure.data["last_massive_layer"], 2);
  EXPECT_NE(sink_heads_figure(input).see.find("8 of 24 heads give the first token more than 0.3"),
            std::string::npos);
  // An ME layer in the last block: nothing reads it, and nothing is compared.
  const auto last = sink_layers_figure({.result = result, .windows = windows, .me_layer = 5});
  EXPECT_EQ(last.see.find("whose attention"), std::string::npos);
}

TEST(SinksFigures, LayersThatSeeNothingAreEmpty) {
  const auto half = [](std::size_t l, std::size_t) { return l == 1 ? nothing : 0.5; };
  auto result = made(3, 2, half, half);
  result.uniform_alpha[1] = nothing;
  const std::vector<std::int64_t> windows{0, 1, 0};
  const SinksFiguresInput input{.result = result, .windows = windows};
  for (const Figure& figure : {sink_heads_figure(input), sink_layers_figure(input)}) {
    expect_finite(figure.data);
    EXPECT_NE(figure.see.find("In 1 of 3 layers no query sees the first token"), std::string::npos);
    for (const auto& table : figure.tables) {
      EXPECT_EQ(table_html(table).find("nan"), std::string::npos);
    }
  }
  EXPECT_TRUE(sink_heads_figure(input).data["views"][0]["values"][1][0].is_null());
  const auto none = [](std::size_t, std::size_t) { return nothing; };
  const auto empty = made(2, 2, none, none);
  const auto figure = sink_heads_figure({.result = empty, .windows = std::span(windows).first(2)});
  EXPECT_TRUE(figure.see.starts_with("0 of 0 heads give the first token more than 0.3"));
}

TEST(SinksFigures, TextsFromOutsideStayTexts) {
  const auto result = made(3, 2);
  const std::vector<std::int64_t> windows(3, 0);
  const SinksFiguresInput input{.result = result,
                                .windows = windows,
                                .control = &result,
                                .control_token = "</script><img src=x onerror=\"a()\">"};
  Page page{
      .kind = "k", .heading = "h", .lead = {}, .highlights = {}, .sections = {}, .shared = {}};
  page.sections.push_back({.id = "sinks",
                           .title = "Sinks",
                           .figures = {sink_heads_figure(input), sink_layers_figure(input)}});
  const auto html = render_page(page);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("&lt;/script&gt;&lt;img src=x onerror=&quot;a()&quot;&gt; repeated"),
            std::string::npos);
}

TEST(SinksFigures, StaySmallForLargeModels) {
  const auto result = made(128, 128);
  const std::vector<std::int64_t> windows(128, 4096);
  const SinksFiguresInput input{.result = result, .windows = windows, .control = &result};
  for (const Figure& figure : {sink_heads_figure(input), sink_layers_figure(input)}) {
    expect_finite(figure.data);
    EXPECT_LT(script_json(figure.data).size(), 600'000U) << figure.id;
  }
}

}  // namespace
}  // namespace onset::testing
