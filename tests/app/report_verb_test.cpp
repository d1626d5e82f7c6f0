// onset report: the page and the Markdown of one model and of several, what is left out, and wrong
// uses.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "support/page_data.h"
#include "support/planted_row.h"

namespace onset::testing {
namespace {

constexpr const char* text_ids =
    "1,5,9,4,7,3,2,8,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33";

std::vector<std::string> call(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"report", model_path(model), "--ids",      "1,5,9,4,7",
                                     "--ids",  "3,5,9",           "--text-ids", text_ids};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(ReportVerb, OnePageHasAllPartsAndTheirNumbers) {
  const TemporaryFolder folder;
  const auto page = (folder.path() / "a.html").string();
  const auto json = (folder.path() / "a.json").string();
  const auto outcome = run_onset(call("llama_me", {"-o", page, "--data", json}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("Massive activations are born in layer 1"), std::string::npos);
  EXPECT_NE(outcome.error.find("report written to " + page), std::string::npos);
  const auto html = read_file(page);
  EXPECT_LT(html.size(), 8'000'000U);
  for (const auto* id : {"magnitude", "tokens", "layers", "stages", "gains", "energy", "neurons",
                         "factorial", "vocabulary", "dose"}) {
    EXPECT_NE(html.find(str_cat("id=\"", id, "\"")), std::string::npos) << id;
  }
  const auto data = page_data_of(html);
  const auto all = OrderedJson::parse(read_file(json));
  const auto& model = all["models"][0];
  EXPECT_EQ(model["scan"]["me_layer"], 1);
  EXPECT_EQ(figure_of(data, "factorial")["interactions"],
            model["explain"]["factorial"]["interactions"]);
  EXPECT_EQ(figure_of(data, "vocabulary")["counts"], model["explain"]["vocabulary"]["counts"]);
  EXPECT_EQ(figure_of(data, "gains")["ffn_norm"], model["explain"]["norm"]["gains"]["ffn_norm"]);
  const auto dose = figure_of(data, "dose")["conditions"];
  const auto& conditions = model["explain"]["dose"]["conditions"];
  ASSERT_EQ(dose.size(), conditions.size());
  for (std::size_t i = 0; i < dose.size(); ++i) EXPECT_EQ(dose[i]["text"], conditions[i]["text"]);
  const auto entry = figure_of(data, "neurons")["entries"][0];
  double sum = 0;
  for (const auto& bar : entry["neurons"]) sum += bar["value"].get<double>();
  EXPECT_NEAR(sum, entry["ffn_out"].get<double>(), 1e-4 * std::abs(sum));
  EXPECT_FALSE(model["rigidity"].is_null());
  EXPECT_FALSE(model["sinks"].is_null());
}

TEST(ReportVerb, MarkdownHasWordsAndTablesAlone) {
  const auto outcome = run_onset(call("llama_me", {"--format", "md"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(outcome.out.starts_with("# llama\\_me\n")) << outcome.out.substr(0, 200);
  EXPECT_NE(outcome.out.find("| layer | largest |"), std::string::npos);
  EXPECT_NE(outcome.out.find("Who writes the massive value?"), std::string::npos);
  EXPECT_NE(outcome.out.find("What does this not show?"), std::string::npos);
  EXPECT_NE(outcome.out.find("--text-ids, 32 tokens; perplexity"), std::string::npos);
  for (const auto* sign : {"<script", "<div", "nan", "NaN"}) {
    EXPECT_EQ(outcome.out.find(sign), std::string::npos) << sign;
  }
}

TEST(ReportVerb, AModelWithoutMeLayerHasAPageThatSaysWhatIsLeftOut) {
  const auto outcome = run_onset(call("llama", {"--format", "md"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("No ME layer"), std::string::npos);
  EXPECT_NE(outcome.out.find("What is left out"), std::string::npos);
  EXPECT_NE(outcome.out.find("explain and rigidity: without an ME layer"), std::string::npos);
  EXPECT_NE(outcome.out.find("Attention sinks"), std::string::npos);
}

TEST(ReportVerb, SeveralModelsAreComparedAndAFailureHidesNone) {
  const TemporaryFolder folder;
  const auto page = (folder.path() / "a.html").string();
  const auto outcome =
      run_onset(call("llama_me", {model_path("llama"), (folder.path() / "none").string(), "-o",
                                  page, "--skip", "factorial,vocabulary"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find("does not exist"), std::string::npos);
  const auto html = read_file(page);
  const auto data = page_data_of(html);
  const auto depth = figure_of(data, "depth")["models"];
  ASSERT_EQ(depth.size(), 2U);
  EXPECT_EQ(depth[0]["me_layer"], 1);
  EXPECT_TRUE(depth[1]["me_layer"].is_null());
  EXPECT_FALSE(figure_of(data, "m0-magnitude").is_null());
  EXPECT_FALSE(figure_of(data, "m1-magnitude").is_null());
  EXPECT_EQ(html.find("id=\"m0-factorial\""), std::string::npos);
  EXPECT_NE(html.find("could not be measured"), std::string::npos);
}

TEST(ReportVerb, PartsCanBeChosen) {
  const auto outcome = run_onset(call("llama_me", {"--format", "md", "--only", "norm,sinks"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("What the norm before the FFN"), std::string::npos);
  EXPECT_EQ(outcome.out.find("Which neurons write it"), std::string::npos);
  EXPECT_EQ(outcome.out.find("How rigid"), std::string::npos);
}

TEST(ReportVerb, WrongUseIsRefused) {
  const TemporaryFolder folder;
  const auto page = (folder.path() / "a.html").string();
  expect_refusal(run_onset({"report"}), 2, "needs a model");
  expect_refusal(run_onset(call("llama_me", {"-o", page, "--only", "nrm"})), 2, "norm");
  expect_refusal(run_onset(call("llama_me", {"-o", page, "--only", "norm", "--skip", "ffn"})), 2,
                 "exclude each other");
  for (const auto* option : {"--only", "--skip"}) {
    expect_refusal(run_onset(call("llama_me", {"-o", page, option, ""})), 2,
                   "parts: norm, ffn, factorial, fall, vocabulary, dose, rigidity, sinks");
  }
  expect_refusal(run_onset(call("llama_me", {"-o", page, "--data", page})), 2, "same file");
  expect_refusal(run_onset(call("llama_me", {"-o", "none.html", "--data", "./none.html"})), 2,
                 "same file");
  expect_refusal(run_onset(call("llama_me", {"-o", page, "--data", "-"})), 2,
                 "--data needs a file");
  expect_refusal(run_onset({"report", model_path("llama_me"), "--text", "none.txt", "-o", page}), 1,
                 "none.txt");
  EXPECT_FALSE(std::filesystem::exists(page));
}

// The products of the first token's last expert, as `capture` tells them, first the first token's.
std::vector<std::vector<float>> captured_products(const std::filesystem::path& file,
                                                  std::int64_t& expert) {
  const auto read = read_safetensors(file);
  const auto bytes_of = [&](const std::string& name) {
    const auto found = std::find_if(read.tensors.begin(), read.tensors.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    if (found == read.tensors.end()) throw std::runtime_error("no tensor " + name);
    return std::pair(&*found, read.file.bytes().subspan(found->offset, found->bytes));
  };
  const auto [experts, ids] = bytes_of("0.layers.1.router.experts");
  const auto last = static_cast<std::size_t>(experts->shape[1] - 1);
  std::memcpy(&expert, ids.data() + last * sizeof(expert), sizeof(expert));
  const auto [products, values] = bytes_of(str_cat("0.layers.1.experts.", expert, ".product"));
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(products->shape[0]));
  const auto width = static_cast<std::size_t>(products->shape[1]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].resize(width);
    std::memcpy(rows[r].data(), values.data() + r * width * sizeof(float), width * sizeof(float));
  }
  return rows;
}

// A mixture with a planted super expert: the pages name it, and its parts sum to what the FFN adds.
TEST(ReportVerb, AMixturesSuperExpertIsNamed) {
  const TemporaryFolder folder;
  const TemporaryFolder model;
  const std::string prompt = "1,17,99,4,56,23";
  const auto file = (folder.path() / "products.safetensors").string();
  const auto captured = run_onset({"capture", model_path("deepseek_v2"), "--ids", prompt, "--sites",
                                   "layers.1.router,layers.1.experts.*.product", "-o", file});
  ASSERT_EQ(captured.code, 0) << captured.error;
  std::int64_t expert = -1;
  const auto products = captured_products(file, expert);
  plant_row(model_path("deepseek_v2"), model.path(), expert,
            row_for_first(products, planted_value));
  const auto name = str_cat("expert ", expert);

  const auto page = (folder.path() / "a.html").string();
  const auto reported = run_onset({"report", model.path().string(), "--ids", prompt, "--text-ids",
                                   text_ids, "--min-ratio", "300", "-o", page});
  ASSERT_EQ(reported.code, 0) << reported.error;
  EXPECT_NE(reported.out.find("By experts: " + name + " adds"), std::string::npos) << reported.out;
  const auto entry = figure_of(page_data_of(read_file(page)), "neurons")["entries"][0];
  double sum = 0;
  for (const auto& module : entry["modules"]) sum += module["value"].get<double>();
  const double ffn_out = entry["ffn_out"].get<double>();
  EXPECT_GT(ffn_out, 1000);
  EXPECT_NEAR(sum, ffn_out, 1e-5 * ffn_out);

  const auto explained =
      run_onset({"explain", model.path().string(), "--ids", prompt, "--only", "ffn", "--json"});
  ASSERT_EQ(explained.code, 0) << explained.error;
  EXPECT_EQ(explained.json()["ffn"]["entries"][0]["neurons"][0]["module"],
            str_cat("experts.", expert));

  const auto scanned =
      run_onset({"scan", model.path().string(), "--ids", prompt, "--min-ratio", "300",
                 "--without-expert", str_cat("1.", expert), "--report", page});
  ASSERT_EQ(scanned.code, 0) << scanned.error;
  EXPECT_NE(read_file(page).find("switched off, so that they add nothing: " + name + " of layer 1"),
            std::string::npos);
}

TEST(ReportVerb, HostileTextStaysText) {
  if (demo_model().empty()) GTEST_SKIP() << "scripts/setup did not fetch the model";
  const std::string attack = "</script><!--<script>throw 1</script> | `x` **b** &amp;";
  const std::vector<std::string> arguments{
      "report", demo_model().string(), "--prompt", attack, "--only", "ffn,norm"};
  const TemporaryFolder folder;
  const auto page = (folder.path() / "a.html").string();
  auto with_page = arguments;
  with_page.insert(with_page.end(), {"-o", page});
  ASSERT_EQ(run_onset(with_page).code, 0);
  const auto html = read_file(page);
  EXPECT_EQ(html.find("<script>throw"), std::string::npos);
  auto markdown = arguments;
  markdown.insert(markdown.end(), {"--format", "md"});
  const auto outcome = run_onset(markdown);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out.find("<script"), std::string::npos);
  EXPECT_EQ(outcome.out.find("**b**"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
