// onset capture: its file against the reference states, and calls that it refuses.

#include <cmath>
#include <cstring>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {
namespace {

const TensorInfo* find(const SafetensorsFile& file, const std::string& name) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name == name) return &tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return nullptr;
}

template <typename Number>
std::vector<Number> values_of(const SafetensorsFile& file, const std::string& name) {
  const auto* tensor = find(file, name);
  if (tensor == nullptr) return {};
  std::vector<Number> values(tensor->bytes / sizeof(Number));
  std::memcpy(values.data(), file.file.bytes().data() + tensor->offset, tensor->bytes);
  return values;
}

TEST(Capture, WritesTheSitesAskedForInFileShapes) {
  const auto reference = read_safetensors(testing::data("models/llama/reference.safetensors"));
  const auto ids = values_of<std::int64_t>(reference, "input_ids.b");
  std::string list;
  for (const auto id : ids) list += str_cat(list.empty() ? "" : ",", id);
  const TemporaryFolder folder;
  const auto path = (folder.path() / "states.safetensors").string();
  const auto outcome =
      run_onset({"capture", model_path("llama"), "--sites", "layers.*.resid_post,logits", "--ids",
                 "1,2", "--ids", list, "-o", path, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json()["tensors"], 2 * (3 + 1 + 1));
  EXPECT_EQ(outcome.json()["sites"],
            OrderedJson::array(
                {"layers.0.resid_post", "layers.1.resid_post", "layers.2.resid_post", "logits"}));

  const auto file = read_safetensors(path);
  EXPECT_EQ(file.tensors.size(), 10U);
  EXPECT_EQ(values_of<std::int64_t>(file, "1.ids"), ids);
  EXPECT_EQ(values_of<std::int64_t>(file, "0.ids"), (std::vector<std::int64_t>{1, 2}));
  const auto states = values_of<float>(reference, "hidden.b");  // [L + 1, T, D]
  const auto size = states.size() / 4;
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const auto found = values_of<float>(file, str_cat("1.layers.", layer, ".resid_post"));
    ASSERT_EQ(found.size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(found[i], states[(layer + 1) * size + i], 5e-4) << "layer " << layer;
    }
  }
  const auto logits = values_of<float>(file, "1.logits");
  const auto expected = values_of<float>(reference, "logits.b");
  ASSERT_EQ(logits.size(), expected.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 5e-4);
  EXPECT_EQ(find(file, "1.logits")->shape,
            (std::vector<std::int64_t>{static_cast<std::int64_t>(ids.size()), 256}));
}

TEST(Capture, TheFileSaysWhatItHolds) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "states.safetensors").string();
  const auto outcome = run_onset(
      {"capture", model_path("llama"), "--ids", "5,6", "--ids", "1,2", "--bos", "yes", "-o", path});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto metadata = read_safetensors(path).metadata;
  EXPECT_EQ("onset " + metadata.at("version") + "\n", run_onset({"--version"}).out);
  EXPECT_EQ(metadata.at("model"), model_path("llama"));
  EXPECT_EQ(metadata.at("sites"), "layers.0.resid_post,layers.1.resid_post,layers.2.resid_post");
  const auto prompts = OrderedJson::parse(metadata.at("prompts"));
  ASSERT_EQ(prompts.size(), 2U);
  EXPECT_EQ(prompts[0]["bos_added"], true);
  EXPECT_EQ(prompts[1]["bos_added"], false);
  EXPECT_EQ(prompts[0]["text"], "");
}

TEST(Capture, SaysWhichFamiliesHaveASiteThatIsMissing) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "a.safetensors").string();
  const auto refused = [&path](const std::string& model, const std::string& sites) {
    return run_onset({"capture", model_path(model), "--ids", "1", "-o", path, "--sites", sites});
  };
  expect_refusal(refused("llama", "layers.*.attn_raw"), 2, "llama has no attn_raw");
  expect_refusal(refused("olmo2", "layers.0.attn_norm"), 2, "olmo2 has no attn_norm");
  expect_refusal(refused("llama", "layers.0,1.q"), 2, "layers.0|1.q");
  EXPECT_NE(run_onset({"capture", "--help"}).out.find("layers.*.*"), std::string::npos);
}

TEST(Capture, RefusesWhatItCannotWrite) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "a.safetensors").string();
  const auto model = model_path("llama");
  expect_refusal(run_onset({"capture", model, "--ids", "1,2"}), 2, "-o FILE");
  expect_refusal(run_onset({"capture", model, "-o", path}), 2, "needs a prompt");
  expect_refusal(run_onset({"capture", model, "--ids", "1", "-o", path, "--sites", "resid_pst"}), 2,
                 "resid_p");
  expect_refusal(
      run_onset({"capture", model, "--ids", "1", "-o", path, "--sites", "layers.9.resid_post"}), 2,
      "9");
  expect_refusal(run_onset({"capture", model, "--ids", "1,256", "-o", path}), 1, "256");
  expect_refusal(
      run_onset({"capture", model, "--ids", "1", "-o", (folder.path() / "no" / "a").string()}), 1,
      "cannot write");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "no half-written file stays";
}

// Of the experts of a layer one token is sent to two; the note names the others.
TEST(Capture, SaysWhichExpertsGotNoToken) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "experts.safetensors").string();
  const std::vector<std::string> arguments{
      "capture", model_path("mixtral"), "--sites", "layers.0.experts.*.out", "--ids", "5", "-o",
      path};
  const auto outcome = run_onset(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  std::size_t written = 0;
  for (const auto& tensor : read_safetensors(path).tensors) {
    const auto at = tensor.name.find("layers.0.experts.");
    if (at == std::string::npos || !tensor.name.ends_with(".out")) continue;
    ++written;
    EXPECT_EQ(outcome.error.find(tensor.name.substr(at)), std::string::npos) << outcome.error;
  }
  EXPECT_EQ(written, 2U);
  EXPECT_NE(outcome.error.find("no token was sent to the experts of layers.0.experts."),
            std::string::npos)
      << outcome.error;
  auto quiet = arguments;
  quiet.emplace_back("--quiet");
  EXPECT_EQ(run_onset(quiet).error, "");
}

}  // namespace
}  // namespace onset::testing
