// The page of a scan: its numbers are the scan's and the reference's, its text is only text, and it
// stays small.
#include "onset/report/scan_page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "onset/base/error.h"
#include "onset/massive/stage_json.h"
#include "onset/model/model.h"
#include "onset/report/html.h"
#include "support/page_data.h"
#include "support/super_expert.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Scanned {
  ScanResult result;
  std::size_t prompt = 0;
  PromptStates states;

  [[nodiscard]] ScanPageInput input() const {
    return {.model = "model",
            .verdict = {"a verdict"},
            .facts = {},
            .scan = result,
            .prompt = prompt,
            .bos = "none",
            .tokens = {},
            .states = states};
  }
};

Scanned scan_fixture(const std::string& fixture) {
  const ReferenceTensors reference(
      onset::testing::data("models/" + fixture + "/reference.safetensors"));
  const Model model = Model::open(onset::testing::data("models/" + fixture));
  Scanned scanned;
  scanned.result = scan(model, {{"", reference.ids("input_ids.b")}}, {});
  scanned.states = observe_states(model, scanned.result.prompts[0].ids, view_of(scanned.result, 0));
  return scanned;
}

class FixturePage : public ::testing::TestWithParam<const char*> {};

TEST_P(FixturePage, NumbersAreTheReferenceStates) {
  const Scanned scanned = scan_fixture(GetParam());
  const ReferenceTensors reference(
      onset::testing::data(std::string("models/") + GetParam() + "/reference.safetensors"));
  const at::Tensor hidden = reference.get("hidden.b").abs();  // [L + 1, T, D]
  const auto page = page_data_of(render_page(scan_page(scanned.input())));
  const auto layer = scanned.states.view.layer;
  const auto token = scanned.states.view.token;
  const auto near = [&](const OrderedJson& found, std::int64_t l, std::int64_t t, std::int64_t d) {
    const auto expected = hidden[l + 1][t][d].item<double>();
    EXPECT_NEAR(found.get<double>(), expected, 1e-4 * expected + 1e-4)
        << "layer " << l << ", token " << t << ", dim " << d;
  };
  const auto tokens = figure_of(page, "tokens");
  const auto layers = figure_of(page, "layers");
  EXPECT_TRUE(tokens["at"].is_null());  // a fixture is small enough to be shown as it is
  ASSERT_EQ(tokens["z"].size(), static_cast<std::size_t>(hidden.size(1)));
  ASSERT_EQ(layers["z"].size(), static_cast<std::size_t>(hidden.size(0) - 1));
  for (std::int64_t d = 0; d < hidden.size(2); ++d) {
    const auto column = static_cast<std::size_t>(d);
    for (std::int64_t t = 0; t < hidden.size(1); ++t) {
      near(tokens["z"][static_cast<std::size_t>(t)][column], layer, t, d);
    }
    for (std::int64_t l = 0; l + 1 < hidden.size(0); ++l) {
      near(layers["z"][static_cast<std::size_t>(l)][column], l, token, d);
    }
  }
}

TEST_P(FixturePage, NumbersAreTheScans) {
  const Scanned scanned = scan_fixture(GetParam());
  const auto& prompt = scanned.result.prompts[0];
  const auto page = page_data_of(render_page(scan_page(scanned.input())));
  const auto magnitude = figure_of(page, "magnitude");
  for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
    const auto& largest = magnitude["largest"][l];
    ASSERT_EQ(largest.size(), 3U);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const auto& expected = prompt.layers[l].top[rank];
      EXPECT_EQ(largest[rank][0], expected.token);
      EXPECT_EQ(largest[rank][1], expected.dim);
      EXPECT_EQ(largest[rank][2].get<float>(), expected.value);
    }
    EXPECT_EQ(magnitude["median"][l].get<float>(), prompt.layers[l].median_abs);
    EXPECT_EQ(magnitude["threshold"][l].get<double>(),
              std::max(100.0, 1000.0 * static_cast<double>(prompt.layers[l].median_abs)));
  }
  if (prompt.me_layer) {
    EXPECT_EQ(magnitude["me_layer"], *prompt.me_layer);
  } else {
    EXPECT_TRUE(magnitude["me_layer"].is_null());
  }
  if (prompt.stages.empty()) return;
  const auto stages = figure_of(page, "stages")["stages"];
  ASSERT_EQ(stages.size(), prompt.stages.size());
  EXPECT_EQ(stages, OrderedJson::parse(stages_json(prompt.stages).dump()));
  for (std::size_t i = 0; i < prompt.stages.size(); ++i) {
    EXPECT_EQ(stages[i]["layer"], prompt.stages[i].layer);
    EXPECT_EQ(stages[i]["ffn_out"].get<float>(), prompt.stages[i].ffn_out);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FixturePage,
                         ::testing::Values("llama_me", "qwen3_me", "mistral_me", "llama"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(ScanPage, OneTokenAndNoStageHaveAPage) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  Scanned scanned;
  scanned.result = scan(model, {{"", {3}}}, {});
  scanned.states = observe_states(model, {3}, view_of(scanned.result, 0));
  const auto html = render_page(scan_page(scanned.input()));
  const auto page = page_data_of(html);
  EXPECT_TRUE(figure_of(page, "magnitude")["me_layer"].is_null());
  // With the first token gone nothing would be left.
  EXPECT_FALSE(figure_of(page, "tokens").contains("hide"));
  EXPECT_NE(html.find("No layer makes the largest entry double or halve"), std::string::npos);
}

// A planted expert: what it adds is known, and the page names it; switched off, the page says so.
TEST(ScanPage, AMixturesExpertsAreOnThePage) {
  const SuperExpertModel planted("deepseek_v2");
  const Model model = Model::open(planted.path());
  const auto page_of = [&](const std::vector<ExpertId>& without) {
    ScanOptions options;
    options.min_ratio = 300;
    options.without_experts = without;
    Scanned scanned;
    scanned.result = scan(model, {{"", planted_prompt}}, options);
    scanned.states = observe_states(model, planted_prompt, view_of(scanned.result, 0), {}, without);
    return scan_page(scanned.input());
  };
  const std::string expert = "expert " + std::to_string(planted.expert());
  const Page page = page_of({});
  EXPECT_EQ(page.lead, (std::vector<std::string>{"a verdict"}));
  const auto parts = std::find_if(page.sections.begin(), page.sections.end(),
                                  [](const Section& section) { return section.id == "parts"; });
  ASSERT_NE(parts, page.sections.end());
  const Table& table = parts->figures.at(0).tables.at(0);
  ASSERT_EQ(table.rows.size(), 1U);
  ASSERT_EQ(table.header.size(), table.numeric.size());
  const auto cell = [&](const std::string& name) {
    const auto at = std::find(table.header.begin(), table.header.end(), name);
    return at == table.header.end()
               ? "no column " + name
               : table.rows[0].at(static_cast<std::size_t>(at - table.header.begin()));
  };
  EXPECT_EQ(cell("main expert"), expert);
  EXPECT_FALSE(cell("shared expert").empty());
  EXPECT_TRUE(
      cell("experts").starts_with(str_cat(planted.expert(), ": ", number_text(planted.adds()))))
      << cell("experts");

  const Page off = page_of({{planted_layer, planted.expert()}});
  EXPECT_EQ(off.lead.at(0),
            "This scan is of the model with experts switched off, so that they add "
            "nothing: " +
                expert + " of layer 1.");
  EXPECT_EQ(off.lead.at(1), "a verdict");
}

TEST(ScanPage, TextsFromOutsideStayTexts) {
  Scanned scanned = scan_fixture("llama_me");
  const std::string attack = "</script><!--<script>alert(1)</script>\"'&\xE2\x80\xA8\xFF";
  scanned.result.prompts[0].text = attack;
  // A second prompt brings the table of prompts.
  scanned.result.prompts.push_back(scanned.result.prompts[0]);
  auto input = scanned.input();
  input.model = input.bos = attack;
  input.verdict = {attack};
  input.facts = {{attack, attack, attack}};
  input.tokens.assign(scanned.result.prompts[0].ids.size(), attack);
  const auto html = render_page(scan_page(input));
  // The page's own: the data, plotly.js, the kinds of figures and page.js.
  EXPECT_EQ(occurrences(html, "</script>"), 7U);
  EXPECT_EQ(occurrences(html, "<script>alert"), 0U);
  EXPECT_EQ(occurrences(html, "<!--"), 1U);
  EXPECT_EQ(html.find('\xFF'), std::string::npos);
  EXPECT_GT(occurrences(html, "&lt;/script&gt;"), 5U);
  EXPECT_EQ(page_data_of(html)["shared"]["tokens"][0].get<std::string>().substr(0, 9), "</script>");
}

TEST(ScanPage, FetchesNothing) {
  const auto html = render_page(scan_page(scan_fixture("llama_me").input()));
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  for (const auto* part : {"<link", "<iframe", "src=\"http", "@import", "url("}) {
    EXPECT_EQ(html.substr(0, html.find("plotly.js v")).find(part), std::string::npos) << part;
  }
}

// A large model and a long prompt: 32 layers, D = 4096, 30,000 tokens, 500 prompts.
TEST(ScanPage, StaysUnderEightMegabytes) {
  const std::int64_t layers = 32;
  const std::int64_t hidden = 4096;
  const std::int64_t tokens = 30000;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<std::size_t>(hidden));
  const auto draw = [&] {
    for (float& value : row) value = normal(random);
  };
  Scanned scanned;
  auto& states = scanned.states;
  states.view = {.layer = 3, .token = 0, .alone = {0, 17}};
  const auto dims = divide_evenly(hidden, most_dim_blocks);
  states.tokens = {divide_evenly(tokens, most_token_blocks, states.view.alone), dims};
  states.layers = {divide_evenly(layers, most_layer_blocks), dims};
  for (std::int64_t t = 0; t < tokens; t += 50) {
    draw();
    states.tokens.take(t, row);
  }
  for (std::int64_t l = 0; l < layers; ++l) {
    draw();
    states.layers.take(l, row);
    states.largest.push_back({{0, 7, 1e4F}, {0, 8, -33.25F}, {17, 7, 12.125F}});
  }
  PromptScan prompt;
  prompt.text = std::string(200000, 'x');
  prompt.ids.assign(static_cast<std::size_t>(tokens), 151643);
  prompt.me_layer = 3;
  prompt.last_massive_layer = 31;
  for (std::int64_t l = 0; l < layers; ++l) {
    LayerStatistics layer;
    layer.layer = l;
    layer.largest = {0, 7, 1e4F};
    layer.median_abs = 0.67F;
    layer.massive = l >= 3;
    prompt.layers.push_back(layer);
    Stage stage;
    stage.layer = l;
    stage.before = 1;
    stage.after = 1e4F;
    prompt.stages.push_back(stage);
  }
  scanned.result.prompts.assign(500, prompt);
  scanned.result.me_layer = 3;
  auto input = scanned.input();
  input.tokens.assign(static_cast<std::size_t>(tokens),
                      "\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80");
  const auto html = render_page(scan_page(input));
  EXPECT_LT(html.size(), 8'000'000U);
  const auto surface = figure_of(page_data_of(html), "tokens");
  EXPECT_LE(surface["z"].size(), 98U);
  EXPECT_LE(surface["z"][0].size(), 640U);
  EXPECT_EQ(surface["columns"].back(), hidden);
  EXPECT_EQ(surface["rows"].back(), tokens);
}

}  // namespace
}  // namespace onset::testing
