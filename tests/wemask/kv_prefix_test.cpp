// The exported prefix carries the mask: behind it a run without any mask gives the masked logits of
// the references (tests/data/models/README.md).
#include "onset/wemask/kv_prefix.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr Tolerance logit_tolerance{.atol = 1e-4, .rtol = 1e-4};

class ExportedPrefix : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] MaskSpec mask(MaskPlacement placement) const {
    return make_mask(model_, {.placement = placement, .k = 4, .from_layer = 1});
  }
  [[nodiscard]] ReferenceTensors exported(const MaskSpec& spec) const {
    const auto path = folder_.path() / "prefix.safetensors";
    const std::vector<KvPrefix> prefixes{{.token = ids_.front(), .path = path}};
    const KvPrefixSummary summary = write_kv_prefixes(model_, spec, prefixes);
    EXPECT_EQ(summary.tensors, 2 * model_.config().layer_count());
    return ReferenceTensors(path);
  }
  // Keys as the cache takes them, [1, G, K].
  [[nodiscard]] at::Tensor keys(const ReferenceTensors& file, std::int64_t layer) const {
    const std::string name = str_cat("layers.", layer, ".");
    if (!model_.config().has_latent_attention()) return file.get(name + "key").transpose(0, 1);
    // The cache keeps the pairs of dims that turn together as two halves.
    const at::Tensor pairs = file.get(name + "k_rope").view({-1, 2});  // [rope / 2, 2]
    const at::Tensor turned =
        model_.config().interleaved_rope ? pairs.t().reshape({1, -1}) : pairs.reshape({1, -1});
    return at::cat({file.get(name + "kv_latent"), turned}, 1).unsqueeze(1);
  }
  [[nodiscard]] at::Tensor values(const ReferenceTensors& file, std::int64_t layer) const {
    if (model_.config().has_latent_attention()) return {};
    return file.get(str_cat("layers.", layer, ".value")).transpose(0, 1);
  }
  // Logits of all tokens behind the first, with no mask but the prefix.
  [[nodiscard]] at::Tensor behind(const ReferenceTensors& file) const {
    KvCache cache = model_.decoder().new_cache();
    for (std::int64_t layer = 0; layer < model_.config().layer_count(); ++layer) {
      static_cast<void>(cache.append(layer, keys(file, layer), values(file, layer)));
    }
    cache.advance(std::span(ids_).first(1), static_cast<std::int64_t>(ids_.size()));
    const std::vector<SequenceInput> batch{
        {.ids = {ids_.begin() + 1, ids_.end()}, .cache = &cache}};
    return model_.decoder().forward(batch, LogitRows::all).logits;
  }
  [[nodiscard]] at::Tensor reference(const std::string& name) const {
    return reference_.get(name).slice(0, 1);
  }

  c10::InferenceMode inference_;
  TemporaryFolder folder_;
  std::filesystem::path data_ = onset::testing::data(std::string("models/") + GetParam());
  ReferenceTensors reference_{data_ / "reference.safetensors"};
  Model model_ = Model::open(data_);
  std::vector<std::int64_t> ids_ = reference_.ids("input_ids.b");
};

TEST_P(ExportedPrefix, GivesTheMaskedLogitsWithoutAMask) {
  EXPECT_TRUE(close(behind(exported(mask(MaskPlacement::post_norm))),
                    reference("logits.wemask_post.b"), logit_tolerance));
  EXPECT_TRUE(close(behind(exported(mask(MaskPlacement::pre_norm))),
                    reference("logits.wemask_pre.b"), logit_tolerance));
}

// A mask of nothing (gamma 0) is no mask: the prefix is the one of the model itself, and the test
// above would not pass with it.
TEST_P(ExportedPrefix, OfAMaskOfNothingIsThatOfTheModel) {
  const MaskSpec nothing = make_mask(model_, {.gamma = 0.0, .k = 4, .from_layer = 1});
  const at::Tensor found = behind(exported(nothing));
  const std::vector<SequenceInput> whole{{.ids = ids_, .cache = nullptr}};
  EXPECT_TRUE(close(found, model_.decoder().forward(whole, LogitRows::all).logits.slice(0, 1),
                    logit_tolerance));
  EXPECT_FALSE(close(found, reference("logits.wemask_post.b"), logit_tolerance));
}

TEST_P(ExportedPrefix, SaysWhatItIsFor) {
  const MaskSpec spec = mask(MaskPlacement::post_norm);
  static_cast<void>(exported(spec));
  const auto metadata = read_safetensors(folder_.path() / "prefix.safetensors").metadata;
  EXPECT_EQ(metadata.at("format"), "onset.kv_prefix.1");
  EXPECT_EQ(metadata.at("token_id"), std::to_string(ids_.front()));
  EXPECT_EQ(metadata.at("layout"), model_.config().has_latent_attention() ? "latent" : "heads");
  EXPECT_EQ(OrderedJson::parse(metadata.at("wemask")), mask_json(spec));
  EXPECT_EQ(OrderedJson::parse(metadata.at("model")), mask_json(spec).at("model"));
}

INSTANTIATE_TEST_SUITE_P(Families, ExportedPrefix,
                         ::testing::Values("llama", "llama3", "mistral", "qwen2", "qwen3",
                                           "llama_me", "phi3", "phi3_long", "gemma2", "gemma3",
                                           "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2",
                                           "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(KvPrefix, IsRefusedForMasksOfOtherTokens) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const auto refusal = [&](MaskOptions options) {
    options.k = 4;
    options.from_layer = 1;
    return error_of([&] { check_kv_prefix(make_mask(model, options)); });
  };
  EXPECT_NE(refusal({.tokens = MaskTokens::massive, .massive_dims = {3}}).find("massive"),
            std::string::npos);
  EXPECT_NE(
      refusal({.tokens = MaskTokens::positions, .positions = {0, 3}}).find("behind the first"),
      std::string::npos);
  EXPECT_NE(refusal({.official_compat = true}).find("decoded tokens"), std::string::npos);
  EXPECT_NO_THROW(check_kv_prefix(make_mask(
      model, {.tokens = MaskTokens::positions, .positions = {0}, .k = 4, .from_layer = 1})));
}

TEST(KvPrefix, ATokenOutsideTheVocabularyIsRefusedAndLeavesNoFile) {
  const TemporaryFolder folder;
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const std::vector<KvPrefix> prefixes{
      {.token = 1, .path = folder.path() / "1.safetensors"},
      {.token = model.config().vocabulary, .path = folder.path() / "2.safetensors"}};
  EXPECT_NE(error_of([&] {
              static_cast<void>(
                  write_kv_prefixes(model, make_mask(model, {.k = 4, .from_layer = 1}), prefixes));
            }).find("outside the vocabulary"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Several tokens at once give what each gives alone.
TEST(KvPrefix, TokensOfOnePassAreWrittenApart) {
  const TemporaryFolder folder;
  const Model model = Model::open(onset::testing::data("models/qwen3"));
  const MaskSpec spec = make_mask(model, {.k = 4, .from_layer = 1});
  std::vector<KvPrefix> together;
  for (const std::int64_t token : {1, 9, 5}) {
    together.push_back({.token = token, .path = folder.path() / str_cat("all-", token)});
  }
  static_cast<void>(write_kv_prefixes(model, spec, together));
  for (const KvPrefix& one : together) {
    const std::vector<KvPrefix> alone{{.token = one.token, .path = folder.path() / "alone"}};
    static_cast<void>(write_kv_prefixes(model, spec, alone));
    const ReferenceTensors found(one.path);
    const ReferenceTensors expected(folder.path() / "alone");
    for (const char* name : {"layers.0.key", "layers.1.value", "layers.2.key"}) {
      EXPECT_TRUE(close(found.get(name), expected.get(name), {.atol = 1e-6, .rtol = 1e-5}));
    }
  }
}

}  // namespace
}  // namespace onset::testing
