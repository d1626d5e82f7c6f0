// Merged models: their logits are those of the model with its adapter, whatever was adapted.
#include "onset/train/merge.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "onset/train/peft.h"
#include "onset/wemask/mask.h"
#include "support/tensors.h"
#include "train/lora_support.h"

namespace onset::testing {
namespace {

std::unique_ptr<LoraAdapter> put_on(Model& model, const LoraConfig& config) {
  Decoder& decoder = model.decoder_to_change();
  auto adapter = std::make_unique<LoraAdapter>(decoder, config, drawn_lora(decoder, config), false);
  model.set_adaptation(adapter_facts(*adapter));
  return adapter;
}

class MergedModels : public ::testing::TestWithParam<const char*> {};

TEST_P(MergedModels, EqualTheModelWithItsAdapter) {
  const c10::AutoGradMode off(false);
  LoraConfig config;
  config.rank = 3;
  config.alpha = 5;
  config.targets.regex = ".*";
  config.modules_to_save = {"norm", "embed_tokens"};
  Model model = open_model(onset::testing::data(std::string("models/") + GetParam()));
  const auto adapter = put_on(model, config);
  const TemporaryFolder folder;
  static_cast<void>(merge(model, folder.path() / "merged", {.dtype = DType::f32}));
  EXPECT_TRUE(close(logits_of(open_model(folder.path() / "merged"), some_ids),
                    logits_of(model, some_ids), {.atol = 2e-4, .rtol = 1e-4}));
}

INSTANTIATE_TEST_SUITE_P(Models, MergedModels,
                         ::testing::Values("llama", "qwen2", "phi3", "gemma3", "mixtral",
                                           "qwen3_moe", "deepseek_v2", "llama/f32.gguf",
                                           "qwen3/f32.gguf", "llama_gguf/q4_1.gguf"),
                         [](const auto& one) {
                           std::string name(one.param);
                           for (char& c : name) c = c == '/' || c == '.' ? '_' : c;
                           return name;
                         });

Toy tied_toy() {
  Toy toy;
  toy.config["tie_word_embeddings"] = true;
  toy.draw();
  return toy;
}

// A head that has another matrix than the embedding is written, and the configuration says so.
TEST(MergedHeads, AreUntiedWhereTheyDiffer) {
  const c10::AutoGradMode off(false);
  const TemporaryFolder folder;
  tied_toy().write(folder.path());
  LoraConfig head;
  head.targets.names = {"lm_head"};
  LoraConfig embedding;
  embedding.modules_to_save = {"embed_tokens"};
  LoraConfig whole_head;
  whole_head.modules_to_save = {"lm_head"};
  for (const LoraConfig& config : {head, embedding, whole_head}) {
    Model model = open_model(folder.path());
    const auto adapter = put_on(model, config);
    const TemporaryFolder output;
    EXPECT_TRUE(merge(model, output.path() / "merged").untied);
    EXPECT_EQ(read_json(output.path() / "merged/config.json").at("tie_word_embeddings"), false);
    const Model read = open_model(output.path() / "merged");
    EXPECT_NE(read.checkpoint().find("lm_head.weight"), nullptr);
    const std::vector<std::int64_t> ids{3, 1, 4, 1, 5};
    EXPECT_TRUE(close(logits_of(read, ids), logits_of(model, ids), {.atol = 1e-5, .rtol = 0}));
  }
}

TEST(MergedHeads, StayTiedWhereTheyDoNot) {
  const c10::AutoGradMode off(false);
  const TemporaryFolder folder;
  tied_toy().write(folder.path());
  LoraConfig followed;
  followed.modules_to_save = {"embed_tokens"};
  followed.keep_tied = true;
  LoraConfig other;
  other.targets.names = {"q_proj"};
  for (const LoraConfig& config : {followed, other}) {
    Model model = open_model(folder.path());
    const auto adapter = put_on(model, config);
    const TemporaryFolder output;
    EXPECT_FALSE(merge(model, output.path() / "merged").untied);
    EXPECT_EQ(read_json(output.path() / "merged/config.json").at("tie_word_embeddings"), true);
    const Model read = open_model(output.path() / "merged");
    EXPECT_EQ(read.checkpoint().find("lm_head.weight"), nullptr);
    EXPECT_TRUE(
        close(logits_of(read, {3, 1, 4}), logits_of(model, {3, 1, 4}), {.atol = 1e-5, .rtol = 0}));
  }
}

TEST(Merge, TakesTheMaskAlongAndNeverReplacesAFolder) {
  const TemporaryFolder folder;
  Model model = open_model(data("models/llama_me"));
  LoraConfig config;
  config.targets.names = {"q_proj"};
  const auto adapter = put_on(model, config);
  MaskOptions mask;
  mask.from_layer = 1;
  mask.k = 4;
  const MergeOptions options{.dtype = DType::bf16, .mask = make_mask(model, mask)};
  const MergeReport report = merge(model, folder.path() / "merged", options);
  EXPECT_EQ(std::count(report.files.begin(), report.files.end(), "wemask.json"), 1);
  const Json note = read_json(folder.path() / "merged/config.json").at("onset");
  EXPECT_EQ(note.at("wemask"), "wemask.json");
  EXPECT_EQ(note.at("adapter").at("fingerprint"), model.adaptation().at("fingerprint"));
  const std::string message =
      error_of([&] { static_cast<void>(merge(model, folder.path() / "merged", options)); });
  EXPECT_NE(message.find("exists and would be replaced"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
