// onset explain: what it finds in planted models and in SmolLM2, and what it refuses.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {
namespace {

// Of the fixtures' second prompt: the one that the planted models carry a massive value in.
std::string reference_ids(const std::string& model) {
  const auto file =
      read_safetensors(onset::testing::data("models/" + model + "/reference.safetensors"));
  for (const auto& tensor : file.tensors) {
    if (tensor.name != "input_ids.b") continue;
    std::string ids;
    for (std::size_t i = 0; i < tensor.bytes / sizeof(std::int64_t); ++i) {
      std::int64_t id = 0;
      std::memcpy(&id, file.file.bytes().data() + tensor.offset + i * sizeof(id), sizeof(id));
      ids += str_cat(ids.empty() ? "" : ",", id);
    }
    return ids;
  }
  throw std::runtime_error("no ids");
}

const std::string text_ids = "5,9,3,40,7,21,30,12,6,18,44,2,9,31,25,11,8,14,27,36";

std::string unwrapped(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Outcome explain(const std::string& model, std::vector<std::string> further) {
  std::vector<std::string> arguments{"explain", model_path(model), "--ids", reference_ids(model)};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return run_onset(arguments);
}

TEST(Explain, AnswersAllPartsForThePlantedLayer) {
  const auto outcome = explain("llama_me", {"--text-ids", text_ids, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["target"]["layer"], 1);
  EXPECT_EQ(found["target"]["dims"][0], 22);
  EXPECT_EQ(found["target"]["position"], 0);
  EXPECT_EQ(found["target"]["found_by_scan"], true);
  for (const auto* part : {"norm", "ffn", "factorial", "fall", "vocabulary", "dose"}) {
    EXPECT_TRUE(found[part].is_object()) << part;
    EXPECT_FALSE(found["summary"][part].empty()) << part;
  }
  const auto& entry = found["ffn"]["entries"][0];
  const double largest = entry["largest_neuron"].get<double>();
  EXPECT_NEAR(entry["neuron_sum"].get<double>(), entry["ffn_out"].get<double>(), 3e-6 * largest);
  EXPECT_EQ(found["factorial"]["cells"].size(), 12U);
  EXPECT_EQ(found["factorial"]["interactions"].size(), 6U);
  EXPECT_EQ(found["dose"]["conditions"].size(), 8U);
  EXPECT_EQ(found["dose"]["removed_writes"], OrderedJson::array({"ffn_out"}));
  for (const auto& condition : found["dose"]["conditions"]) {
    const auto& rates = condition["text"]["layer_sink_rate"];
    double sum = 0;
    for (std::size_t l = 2; l < rates.size(); ++l) sum += rates[l].get<double>();
    const auto behind = static_cast<double>(rates.size() - 2);
    EXPECT_NEAR(condition["sink_rate_behind"].get<double>(), sum / behind, 1e-12);
  }
  EXPECT_EQ(found["text"]["tokens"], 20);
  EXPECT_EQ(found["text"]["source"], "--text-ids");
  const auto& counts = found["vocabulary"]["counts"];
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                            [](std::int64_t sum, const OrderedJson& count) {
                              return sum + count.get<std::int64_t>();
                            }),
            found["vocabulary"]["tokens"].get<std::int64_t>());
}

TEST(Explain, TakesThePartsThatAreAskedFor) {
  const auto outcome = explain("llama_me", {"--only", "ffn, fall", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_TRUE(found["norm"].is_null());
  EXPECT_TRUE(found["ffn"].is_object());
  EXPECT_TRUE(found["fall"].is_object());
  EXPECT_TRUE(found["text"].is_null()) << "neither of them needs one";
  EXPECT_EQ(outcome.error, "");
}

TEST(Explain, SaysThatATextIsMissingWhereThereIsNoTokenizer) {
  const auto outcome = explain("llama_me", {"--only", "factorial,dose", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("--text-ids"), std::string::npos);
  EXPECT_EQ(outcome.error.find("about a minute"), std::string::npos) << "of a tiny model";
  EXPECT_TRUE(outcome.json()["dose"].is_null());
  EXPECT_TRUE(outcome.json()["factorial"]["cells"][0]["text"].is_null());
}

TEST(Explain, WithoutAnMeLayerSaysHowToNameOne) {
  const auto outcome = explain("llama", {});
  expect_refusal(outcome, 1, "no ME layer was found");
  EXPECT_NE(outcome.error.find("--layer N"), std::string::npos);
  EXPECT_NE(outcome.error.find("the nearest is --layer"), std::string::npos);
}

TEST(Explain, TakesWhatIsNamed) {
  const auto outcome = explain(
      "llama", {"--layer", "1", "--token", "2", "--dim", "5", "--only", "norm,ffn,fall", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["target"]["found_by_scan"], false);
  EXPECT_EQ(found["target"]["massive"], false);
  EXPECT_EQ(found["target"]["token"], 2);
  EXPECT_EQ(found["target"]["dims"], OrderedJson::array({5}));
  EXPECT_EQ(found["ffn"]["entries"][0]["dim"], 5);
  const auto table = explain("llama", {"--layer", "1", "--only", "norm,ffn,fall"});
  ASSERT_EQ(table.code, 0) << table.error;
  EXPECT_NE(unwrapped(table.out).find("there is no massive entry there"), std::string::npos);
}

// Stages and falls are those of the token that is named, and not of the massive one.
TEST(Explain, FollowsTheTokenThatIsNamed) {
  const auto outcome =
      explain("llama_me", {"--layer", "1", "--token", "3", "--only", "ffn,fall", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  ASSERT_EQ(found["target"]["token"], 3);
  for (const auto& stages : {found["ffn"]["stages"], found["fall"]["stages"]}) {
    for (const auto& stage : stages) {
      EXPECT_EQ(stage["stage"]["token"], 3);
      EXPECT_EQ(stage["entry"]["token"], 3);
    }
  }
  const auto& massive = found["prompts"][0]["stages"];
  ASSERT_FALSE(massive.empty());
  EXPECT_EQ(massive[0]["token"], 0);
  // With a lower threshold the same token has stages, whose values follow from its own states.
  const auto lower = explain("llama_me", {"--layer", "1", "--token", "3", "--only", "ffn,fall",
                                          "--min-abs", "0.01", "--min-ratio", "3", "--json"});
  ASSERT_EQ(lower.code, 0) << lower.error;
  const auto document = lower.json();
  std::size_t seen = 0;
  for (const auto& stages : {document["ffn"]["stages"], document["fall"]["stages"]}) {
    for (const auto& stage : stages) {
      ++seen;
      EXPECT_EQ(stage["stage"]["token"], 3);
      EXPECT_EQ(stage["entry"]["resid_post"], stage["stage"]["resid_post"]);
    }
  }
  EXPECT_GT(seen, 0U);
}

TEST(Explain, RefusesPlacesThatAreNotThere) {
  expect_refusal(explain("llama_me", {"--layer", "99"}), 2, "--layer 99 is out of range");
  expect_refusal(explain("llama_me", {"--dim", "9999"}), 2, "--dim 9999 is out of range");
  expect_refusal(explain("llama_me", {"--token", "800"}), 2, "--token 800 is out of range");
  expect_refusal(explain("llama_me", {"--only", "norms"}), 2, "no part \"norms\"");
  expect_refusal(explain("llama_me", {"--layer", "1", "--layer", "2"}), 2, "given once");
  expect_refusal(explain("llama_me", {"--text", "a.txt", "--text-ids", "1,2"}), 2, "exclude");
  expect_refusal(explain("llama_me", {"--text", "no-such-file.txt"}), 1, "no-such-file.txt");
}

TEST(Explain, NamesTheExpertsOfAMixture) {
  for (const std::string model : {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"}) {
    const auto outcome = explain(model, {"--layer", "1", "--text-ids", text_ids, "--json"});
    ASSERT_EQ(outcome.code, 0) << model << outcome.error;
    const auto found = outcome.json();
    const auto& entry = found["ffn"]["entries"][0];
    double sum = 0;
    for (const auto& module : entry["modules"]) {
      EXPECT_NE(module["module"], "ffn") << model;
      sum += module["contribution"].get<double>();
    }
    EXPECT_NEAR(sum, entry["ffn_out"].get<double>(), 1e-5) << model;
    EXPECT_EQ(found["factorial"]["cells"].size(), 12U) << model;
    EXPECT_NE(found["ffn"]["down_projection"]["module"], "ffn") << model;
    EXPECT_NE(found["summary"]["ffn"].dump().find(" writes most: "), std::string::npos) << model;
  }
}

TEST(Explain, TablesFitAndFamiliesWithOtherNormsWork) {
  for (const std::string model : {"llama_me", "gemma2", "olmo2", "deepseek_v2"}) {
    const auto outcome = explain(model, {"--layer", "1", "--text-ids", text_ids});
    ASSERT_EQ(outcome.code, 0) << model << outcome.error;
    EXPECT_LE(widest_line(outcome.out), 80U) << model;
    for (const auto* title : {"1. The norm", "2. The neurons", "3. Norm and FFN", "4. The fall",
                              "5. Which tokens", "6. Dose"}) {
      EXPECT_NE(outcome.out.find(title), std::string::npos) << model << title;
    }
  }
}

TEST(Explain, TellsTheStoryOfSmollm2) {
  const auto path = demo_model();
  if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
  const auto outcome = run_onset({"explain", path.string(), "--prompt",
                                  "My favorite color is Dark Blue.", "--only", "norm,ffn,fall"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_LE(widest_line(outcome.out), 80U);
  const auto words = unwrapped(outcome.out);
  for (const auto* part :
       {"layer 11 (block 12 of 30)", "In dim 507 the FFN adds 23687", "neuron 1229 17169",
        "neuron 1487 6434",
        "What the FFN reads instead is spread over about 145 dims (participation ratio; 73 before",
        "The largest are", "down projection of layer 11 is", "In the pass without the first two",
        "the FFN does not read what stands in this dim",
        "Layer 28 takes dim 507 from 23354 to 9055",
        "the neuron reads the massive value and writes against it", "W_down[507, 1229]"}) {
    EXPECT_NE(words.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

// Words against the numbers of the same run: the conclusion that lost sinks are not what the
// perplexity is lost for stands there where the numbers carry it, and nowhere else.
TEST(Explain, SinksAndPerplexityPartWhereTheNumbersSay) {
  for (const auto* model : {"llama_me", "mistral_me", "qwen3_me"}) {
    const std::vector<std::string> call{"--text-ids", text_ids, "--only", "dose"};
    auto with_json = call;
    with_json.emplace_back("--json");
    const auto words = explain(model, call);
    const auto numbers = explain(model, with_json);
    ASSERT_EQ(words.code, 0) << words.error;
    ASSERT_EQ(numbers.code, 0) << numbers.error;
    std::map<std::string, std::pair<double, double>> found;  // sinks and perplexity
    const auto document = numbers.json();
    for (const auto& condition : document["dose"]["conditions"]) {
      const auto name = condition["name"].get<std::string>() +
                        (condition["dose"].is_null() ? "" : condition["dose"].dump());
      found[name] = {condition["sink_rate_behind"].get<double>(),
                     condition["text"]["perplexity"].get<double>()};
    }
    const auto& none = found.at("dose0.0");
    const auto& removed = found.at("block_write");
    const bool apart = removed.first < none.first - 0.05 &&
                       none.second > 2 * std::max(removed.second, found.at("dose1.0").second);
    EXPECT_EQ(unwrapped(words.out).find("perplexity part here") != std::string::npos, apart)
        << model << "\n"
        << words.out;
  }
}

}  // namespace
}  // namespace onset::testing
