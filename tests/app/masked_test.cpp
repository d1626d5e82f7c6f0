// --wemask of the analyses: the unmasked half is what the verb gives without it, a mask of gamma 0
// changes nothing, and the text stays within 80 columns.

#include <algorithm>
#include <cstring>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {
namespace {

const std::string text_ids = "5,9,3,40,7,21,30,12,6,18,44,2,9,31,25,11,8,14,27,36";

class MaskedVerbs : public ::testing::Test {
 protected:
  // A mask for llama_me, whose massive activation is planted in block 1 for token id 1.
  [[nodiscard]] std::string mask(const std::string& name, std::vector<std::string> further) const {
    auto path = (folder_.path() / (name + ".json")).string();
    std::vector<std::string> arguments{
        "mask", "make", model_path("llama_me"), "--ids", "1,17,9,33", "-o", path, "--quiet"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    const auto made = run_onset(arguments);
    EXPECT_EQ(made.code, 0) << made.error;
    return path;
  }
  [[nodiscard]] std::string half() const { return mask("half", {"--rate", "0.5"}); }
  [[nodiscard]] std::string nothing() const {
    return mask("nothing", {"--rate", "0.5", "--gamma", "0"});
  }
  // The calls of the verbs that show both halves, without a mask.
  [[nodiscard]] static std::vector<std::vector<std::string>> calls() {
    const auto model = model_path("llama_me");
    const std::string a = "1,17,9,33,20";
    const std::string b = "1,4,28,11,7,30";
    return {{"scan", model, "--ids", a, "--ids", b},
            {"sinks", model, "--ids", a, "--ids", b, "--repeated"},
            {"rigidity", model, "--ids", a, "--ids", b},
            {"explain", model, "--ids", a, "--text-ids", text_ids, "--text-tokens", "20"}};
  }

  TemporaryFolder folder_;
};

std::vector<std::string> with(std::vector<std::string> call, std::vector<std::string> more) {
  call.insert(call.end(), more.begin(), more.end());
  return call;
}

OrderedJson json_of(const std::vector<std::string>& call) {
  const auto outcome = run_onset(call);
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  return outcome.json();
}

std::vector<float> values_of(const SafetensorsFile& file, const std::string& name) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.bytes / sizeof(float));
    std::memcpy(values.data(), file.file.bytes().data() + tensor.offset, tensor.bytes);
    return values;
  }
  return {};
}

TEST_F(MaskedVerbs, TheUnmaskedHalfIsTheVerbsResultWithoutAMask) {
  const auto file = half();
  for (const auto& call : calls()) {
    OrderedJson plain = json_of(with(call, {"--json"}));
    OrderedJson masked = json_of(with(call, {"--json", "--wemask", file}));
    EXPECT_EQ(masked.at("wemask"), OrderedJson::parse(read_file(file))) << call.front();
    EXPECT_TRUE(plain.at("wemask").is_null());
    EXPECT_TRUE(plain.at("masked").is_null());
    EXPECT_EQ(masked.at("run").at("paths").at("wemask"), file);
    ASSERT_TRUE(masked.at("masked").is_object()) << call.front();
    for (const auto& [key, value] : masked.at("masked").items()) {
      EXPECT_TRUE(plain.contains(key)) << call.front() << " has " << key << " in one half alone";
    }
    for (const auto* key : {"run", "wemask", "masked"}) {
      plain.erase(key);
      masked.erase(key);
    }
    EXPECT_EQ(plain, masked) << call.front();
  }
}

TEST_F(MaskedVerbs, AMaskOfGammaZeroGivesTheUnmaskedResult) {
  const auto file = nothing();
  for (const auto& call : calls()) {
    const auto found = json_of(with(call, {"--json", "--wemask", file}));
    ASSERT_TRUE(found.at("masked").is_object());
    for (const auto& [key, value] : found.at("masked").items()) {
      // The mask begins behind the layer that is explained: the vocabulary is not run again.
      if (key == "vocabulary" || key == "summary") continue;
      EXPECT_EQ(value, found.at(key)) << call.front() << " " << key;
    }
  }
}

TEST_F(MaskedVerbs, AMaskChangesTheMaskedHalf) {
  const auto file = half();
  for (const auto& call : calls()) {
    const auto found = json_of(with(call, {"--json", "--wemask", file}));
    bool differs = false;
    for (const auto& [key, value] : found.at("masked").items()) {
      differs = differs || (key != "summary" && value != found.at(key));
    }
    EXPECT_TRUE(differs) << call.front();
  }
}

TEST_F(MaskedVerbs, TextsShowBothAndSayWhatTheyDoNotShow) {
  const auto file = half();
  for (const auto& call : calls()) {
    const auto outcome = run_onset(with(call, {"--wemask", file}));
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("mask    "), std::string::npos) << call.front();
    EXPECT_NE(outcome.out.find("masked"), std::string::npos) << call.front();
    EXPECT_NE(outcome.out.find("Whether it helps"), std::string::npos) << call.front();
    EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
  }
}

TEST_F(MaskedVerbs, CsvHasTheMaskedRowsWithAColumnOfTheirOwn) {
  const auto file = half();
  const auto call = calls().front();
  const auto plain = run_onset(with(call, {"--csv"})).out;
  const auto both = run_onset(with(call, {"--csv", "--wemask", file})).out;
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(both) - 1, 2 * (lines(plain) - 1));
  EXPECT_NE(both.find(",me_layer,masked\n"), std::string::npos);
  // Without the last column the unmasked rows are the plain ones.
  std::string unmasked;
  for (std::size_t begin = 0; begin < both.size();) {
    const auto end = both.find('\n', begin);
    const auto line = both.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with(",masked")) unmasked += line.substr(0, line.size() - 7) + "\n";
    if (line.ends_with(",0")) unmasked += line.substr(0, line.size() - 2) + "\n";
  }
  EXPECT_EQ(unmasked, plain);
}

TEST_F(MaskedVerbs, CaptureWritesTheMaskedStatesAndTheMask) {
  const auto file = half();
  const auto states = (folder_.path() / "masked.safetensors").string();
  const auto call = json_of({"capture", model_path("llama_me"), "--ids", "1,17,9,33", "--sites",
                             "layers.*.attn_norm", "--wemask", file, "-o", states, "--json"});
  const auto spec = OrderedJson::parse(read_file(file));
  EXPECT_EQ(call.at("wemask"), spec);
  const auto written = read_safetensors(states);
  EXPECT_EQ(OrderedJson::parse(written.metadata.at("wemask")), spec);
  ASSERT_FALSE(spec.at("dims").empty());
  for (const auto& [layer, dims] : spec.at("dims").items()) {
    const auto values = values_of(written, str_cat("0.layers.", layer, ".attn_norm"));
    ASSERT_FALSE(values.empty());
    for (const auto& dim : dims) {
      EXPECT_EQ(values[dim.get<std::size_t>()], 0.0F) << "layer " << layer << " dim " << dim;
    }
  }
}

TEST_F(MaskedVerbs, OfSeveralModelsTheOneThatDoesNotFitIsNamed) {
  const auto file = half();
  const auto outcome = run_onset({"scan", model_path("llama_me"), model_path("qwen3_me"), "--ids",
                                  "1,17,9,33", "--json", "--wemask", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find(model_path("qwen3_me")), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("another model"), std::string::npos) << outcome.error;
  const auto models = outcome.json().at("models");
  EXPECT_TRUE(models[0].at("masked").is_object());
  EXPECT_TRUE(models[1].contains("error"));
}

TEST_F(MaskedVerbs, PagesHaveASectionOfBoth) {
  const auto file = half();
  const auto page = (folder_.path() / "scan.html").string();
  const auto scanned = run_onset(
      {"scan", model_path("llama_me"), "--ids", "1,17,9,33", "--report", page, "--wemask", file});
  ASSERT_EQ(scanned.code, 0) << scanned.error;
  EXPECT_NE(read_file(page).find("id=\"masked-layers\""), std::string::npos);
  const auto data = (folder_.path() / "report.json").string();
  const auto reported = run_onset({"report", model_path("llama_me"), "--ids", "1,17,9,33", "--ids",
                                   "1,4,28,11", "--text-ids", text_ids, "--skip", "vocabulary",
                                   "--wemask", file, "--data", data, "-o", page});
  ASSERT_EQ(reported.code, 0) << reported.error;
  EXPECT_NE(reported.out.find("What does the mask change?"), std::string::npos);
  const auto html = read_file(page);
  for (const auto* id : {"masked-layers", "masked-heads", "masked-cosines"}) {
    EXPECT_NE(html.find(str_cat("id=\"", id, "\"")), std::string::npos) << id;
  }
  const auto found = OrderedJson::parse(read_file(data)).at("models")[0];
  EXPECT_EQ(found.at("wemask"), OrderedJson::parse(read_file(file)));
  for (const auto* part : {"scan", "explain", "rigidity", "sinks"}) {
    EXPECT_TRUE(found.at(part).at("masked").is_object()) << part;
  }
}

}  // namespace
}  // namespace onset::testing
