// Faults of other tools (rows of CASES.md) at the level of the forward pass. Expectations come from
// formulas or from another way to the same result.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onset/model/decoder.h"
#include "onset/model/layers.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

constexpr Tolerance exact_enough{.atol = 1e-5, .rtol = 1e-5};

class CasesTest : public ::testing::Test {
 protected:
  Model open(const Toy& toy) {
    toy.write(folder_.path());
    return Model::open(folder_.path());
  }

  TemporaryFolder folder_;
  c10::InferenceMode inference_;
};

// Zeroes dims {1, 5} of the attention input at absolute position 0 of every sequence.
Hooks mask_first_token(std::int64_t layers, int& masked_rows) {
  Hooks hooks(layers);
  SiteSet sites(layers);
  sites.add_all_layers(SiteKind::attn_norm);
  hooks.intervene(sites, [&masked_rows](const SiteContext& context, const at::Tensor& tensor) {
    at::Tensor edited = tensor;
    for (const SequenceRows& rows : context.sequences) {
      if (rows.position > 0) continue;
      edited = edited.clone();
      edited[rows.row][1] = 0;
      edited[rows.row][5] = 0;
      ++masked_rows;
    }
    return edited;
  });
  return hooks;
}

// Row 1: with a cache, an intervention on position 0 hits the prefill alone, and decoding equals
// recomputation.
TEST_F(CasesTest, AnInterventionOnTheFirstTokenSurvivesDecodingWithACache) {
  Toy toy;
  toy.draw();
  const Model model = open(toy);
  int masked_rows = 0;
  const Hooks hooks = mask_first_token(2, masked_rows);
  std::vector<std::int64_t> sequence{3, 7, 9, 4};
  KvCache cache = model.decoder().new_cache();
  std::vector<std::int64_t> next = sequence;
  for (int step = 0; step < 6; ++step) {
    masked_rows = 0;
    const std::vector<SequenceInput> cached{{.ids = next, .cache = &cache}};
    const at::Tensor found = model.decoder().forward(cached, LogitRows::last, &hooks).logits;
    EXPECT_EQ(masked_rows, step == 0 ? 2 : 0) << "one row a layer, and none while decoding";
    const std::vector<SequenceInput> whole{{.ids = sequence, .cache = nullptr}};
    const at::Tensor expected = model.decoder().forward(whole, LogitRows::last, &hooks).logits;
    EXPECT_TRUE(close(found, expected, exact_enough)) << "step " << step;
    next = {found[0].argmax().item<std::int64_t>()};
    sequence.push_back(next.front());
  }
  // The mask does something at all.
  const std::vector<SequenceInput> whole{{.ids = sequence, .cache = nullptr}};
  EXPECT_FALSE(close(model.decoder().forward(whole, LogitRows::last).logits,
                     model.decoder().forward(whole, LogitRows::last, &hooks).logits, exact_enough));
}

// Row 2 in the packed form: rows of a left-padded batch are what they are alone.
TEST_F(CasesTest, LeftPaddedRowsEqualTheirSoloRunsUnderAnIntervention) {
  Toy toy;
  toy.draw();
  const Model model = open(toy);
  int masked_rows = 0;
  const Hooks hooks = mask_first_token(2, masked_rows);
  const std::vector<std::int64_t> ids{0, 0, 0, 5, 6, 7, 8, 9};
  const std::vector<std::int64_t> mask{0, 0, 0, 1, 1, 1, 1, 1};
  const auto batch = sequences_of_padded(ids, mask, 4);
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch[0].ids, (std::vector<std::int64_t>{5}));
  const at::Tensor together = model.decoder().forward(batch, LogitRows::last, &hooks).logits;
  for (std::size_t row = 0; row < 2; ++row) {
    const at::Tensor solo =
        model.decoder().forward(std::span(batch).subspan(row, 1), LogitRows::last, &hooks).logits;
    EXPECT_TRUE(close(together[static_cast<std::int64_t>(row)], solo[0], exact_enough));
  }
}

TEST_F(CasesTest, PaddedBatchesWithHolesOrEmptyRowsAreRefused) {
  const std::vector<std::int64_t> ids{1, 2, 3};
  EXPECT_NE(error_of([&] {
              static_cast<void>(sequences_of_padded(ids, std::vector<std::int64_t>{1, 0, 1}, 3));
            }).find("hole"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              static_cast<void>(sequences_of_padded(ids, std::vector<std::int64_t>{0, 0, 0}, 3));
            }).find("no token"),
            std::string::npos);
}

// Row 7: one dim of 7e4 overflows float16; the stream, norms and attention stay finite.
TEST_F(CasesTest, AStateBeyondFloat16StaysFinite) {
  Toy toy;
  toy.draw();
  for (std::int64_t token = 0; token < 32; ++token) {
    toy.values["model.embed_tokens.weight"][static_cast<std::size_t>(token * 8 + 3)] = 7e4F;
  }
  toy.write(folder_.path());
  const std::vector<SequenceInput> batch{{.ids = {1, 2, 3}, .cache = nullptr}};
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const Model model = Model::open(folder_.path(), {.compute = compute});
    const auto result = model.decoder().forward(batch, LogitRows::all);
    EXPECT_TRUE(result.logits.isfinite().all().item<bool>()) << compute_name(compute);
    EXPECT_GT(result.hidden.abs().max().item<float>(), 65504.0F);
  }
}

TEST(RmsNorm, ALargeEntryIsNotSquaredInHalfPrecision) {
  const at::Tensor x = at::tensor({3e4F, 4e4F, 0.0F, 0.0F});
  // rms = sqrt((9e8 + 16e8) / 4) = 25000
  EXPECT_TRUE(
      close(rms_norm(x, at::ones({4}), 0.0), at::tensor({1.2F, 1.6F, 0.0F, 0.0F}), exact_enough));
}

TEST(ComputeNames, Float16IsRefusedNamingBfloat16) {
  const std::string error = error_of([] { static_cast<void>(parse_compute("f16")); });
  EXPECT_NE(error.find("65504"), std::string::npos);
  EXPECT_NE(error.find("bf16"), std::string::npos);
}

// Row 7, the last part: float16 weights load as float32.
TEST_F(CasesTest, Float16WeightsLoadAsFloat32) {
  Toy toy;
  toy.draw();
  // Values that float16 holds exactly, so that both files are the same model.
  for (auto& [name, tensor] : toy.values) {
    for (float& value : tensor) value = std::round(value * 64.0F) / 64.0F;
  }
  const std::vector<SequenceInput> batch{{.ids = {1, 2, 3}, .cache = nullptr}};
  const at::Tensor expected = open(toy).decoder().forward(batch, LogitRows::all).logits;
  std::vector<NamedTensor> halves;
  for (const auto& [name, tensor] : toy.values) {
    const at::Tensor half = at::tensor(tensor).to(at::kHalf);
    const auto* bytes = static_cast<const std::byte*>(half.const_data_ptr());
    halves.push_back({name, DType::f16, toy.shapes.at(name), {bytes, bytes + half.nbytes()}});
  }
  write_safetensors(folder_.path() / "model.safetensors", halves);
  const Model model = Model::open(folder_.path());
  EXPECT_TRUE(at::equal(model.decoder().forward(batch, LogitRows::all).logits, expected));
}

// Row 13: query head h uses key-value head h / (H / G).
TEST_F(CasesTest, GroupedQueryHeadsUseTheirOwnKeyValueHead) {
  Toy toy;
  toy.config["num_attention_heads"] = 4;
  toy.config["num_key_value_heads"] = 2;
  toy.draw();
  const Model model = open(toy);
  const auto heads_with = [&](bool zeroed) {
    at::Tensor heads;
    Hooks hooks(2);
    if (zeroed) {
      hooks.intervene(SiteSet::parse("layers.0.v", 2), [](const SiteContext&, const at::Tensor& v) {
        at::Tensor edited = v.clone();
        edited.select(1, 1).zero_();
        return edited;
      });
    }
    hooks.observe(SiteSet::parse("layers.0.attn_heads", 2),
                  [&](const SiteContext&, const at::Tensor& tensor) { heads = tensor; });
    const std::vector<SequenceInput> batch{{.ids = {3, 1, 4, 1, 5}, .cache = nullptr}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
    return heads;  // [T, H, K]
  };
  const at::Tensor difference = (heads_with(true) - heads_with(false)).abs().amax({0, 2});  // [H]
  EXPECT_EQ(difference[0].item<float>(), 0.0F);
  EXPECT_EQ(difference[1].item<float>(), 0.0F);
  EXPECT_GT(difference[2].item<float>(), 1e-4F);
  EXPECT_GT(difference[3].item<float>(), 1e-4F);
}

// Row 14: QK-norm works per head over the head size of the configuration, before RoPE.
TEST_F(CasesTest, QkNormIsPerHeadOverTheConfiguredHeadSize) {
  Toy toy;
  toy.config["model_type"] = "qwen3";
  toy.config["head_dim"] = 6;
  toy.draw();
  for (auto& [name, tensor] : toy.values) {
    if (name.find("_norm.weight") != std::string::npos)
      std::fill(tensor.begin(), tensor.end(), 1.0F);
  }
  const Model model = open(toy);
  Hooks hooks(2);
  int seen = 0;
  hooks.observe(SiteSet::parse("layers.*.q_pre,layers.*.k_pre", 2),
                [&](const SiteContext& context, const at::Tensor& tensor) {
                  const std::int64_t heads = context.site.kind == SiteKind::q_pre ? 2 : 1;
                  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{3, heads, 6}));
                  const at::Tensor rms = tensor.square().mean(-1).sqrt();
                  EXPECT_TRUE(close(rms, at::ones_like(rms), {.atol = 1e-3, .rtol = 0}));
                  ++seen;
                });
  const std::vector<SequenceInput> batch{{.ids = {3, 1, 4}, .cache = nullptr}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  EXPECT_EQ(seen, 4);
}

// Row 17: no head and the tie flag: shared. A head and the tie flag: the head is used, and a
// difference is said. No head and no flag: an error.
TEST_F(CasesTest, ATiedHeadIsTheEmbedding) {
  Toy toy;
  toy.draw();
  const std::vector<SequenceInput> batch{{.ids = {3, 1, 4}, .cache = nullptr}};
  toy.values["lm_head.weight"] = toy.values["model.embed_tokens.weight"];
  const at::Tensor expected = open(toy).decoder().forward(batch, LogitRows::all).logits;

  toy.config["tie_word_embeddings"] = true;
  toy.remove("lm_head.weight");
  const Model tied = open(toy);
  EXPECT_TRUE(tied.decoder().weights().tied);
  EXPECT_TRUE(at::equal(tied.decoder().forward(batch, LogitRows::all).logits, expected));

  toy.config["tie_word_embeddings"] = false;
  toy.write(folder_.path());
  EXPECT_NE(error_of([&] { Model::open(folder_.path()); }).find("lm_head.weight"),
            std::string::npos);
}

TEST_F(CasesTest, AHeadThatDiffersFromATiedEmbeddingIsUsedAndSaid) {
  Toy toy;
  toy.draw();
  const std::vector<SequenceInput> batch{{.ids = {3, 1, 4}, .cache = nullptr}};
  const at::Tensor expected = open(toy).decoder().forward(batch, LogitRows::all).logits;
  toy.config["tie_word_embeddings"] = true;
  toy.write(folder_.path());
  std::vector<std::string> warnings;
  const Log log{.warn = [&](const std::string& text) { warnings.push_back(text); }, .progress = {}};
  const Model model = Model::open(folder_.path(), {}, log);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().find("lm_head.weight"), std::string::npos);
  EXPECT_TRUE(at::equal(model.decoder().forward(batch, LogitRows::all).logits, expected));
}

// Row 33: x, 1/rms, x/rms and the gain of a norm are each at hand, every layer with its own rms.
TEST(RmsNorm, HandValues) {
  const at::Tensor x = at::tensor({3.0F, 4.0F, 0.0F, 0.0F});
  const at::Tensor gain = at::tensor({1.0F, 2.0F, 1.0F, 1.0F});
  // rms = sqrt(25 / 4) = 2.5
  EXPECT_TRUE(close(rms_norm(x, gain, 0.0), at::tensor({1.2F, 3.2F, 0.0F, 0.0F}), exact_enough));
}

TEST_F(CasesTest, NormsAreNotFoldedIntoTheProjections) {
  Toy toy;
  toy.draw();
  const Model model = open(toy);
  Hooks hooks(2);
  std::map<std::string, at::Tensor> seen;
  hooks.observe(SiteSet::parse("layers.*.*,final_norm", 2),
                [&](const SiteContext& context, const at::Tensor& tensor) {
                  seen[site_name(context.site)] = tensor;
                });
  const std::vector<SequenceInput> batch{{.ids = {3, 1, 4}, .cache = nullptr}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::all, &hooks));
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const auto& [input, output, gain] :
         {std::tuple{"resid_pre", "attn_norm", "input_layernorm.weight"},
          std::tuple{"resid_mid", "ffn_norm", "post_attention_layernorm.weight"}}) {
      const at::Tensor x = seen.at(layer + input).to(at::kDouble);
      const at::Tensor w = at::tensor(toy.values.at("model." + layer + gain)).to(at::kDouble);
      const at::Tensor rms = (x * x).mean(-1, true).add(1e-6).sqrt();
      EXPECT_TRUE(close(seen.at(layer + output), x / rms * w, exact_enough)) << layer << output;
    }
  }
}

TEST_F(CasesTest, IdsOutsideTheVocabularyAndEmptySequencesAreRefused) {
  Toy toy;
  toy.draw();
  const Model model = open(toy);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{32}, std::int64_t{1} << 40}) {
    const std::vector<SequenceInput> batch{{.ids = {1, bad}, .cache = nullptr}};
    const std::string error =
        error_of([&] { static_cast<void>(model.decoder().forward(batch, LogitRows::none)); });
    EXPECT_NE(error.find(std::to_string(bad)), std::string::npos);
    EXPECT_NE(error.find("32"), std::string::npos);
  }
  const std::vector<SequenceInput> empty{{.ids = {}, .cache = nullptr}};
  EXPECT_NE(error_of([&] { static_cast<void>(model.decoder().forward(empty, LogitRows::none)); }),
            "");
}

TEST_F(CasesTest, ATensorOfTheWrongShapeOrTypeNamesFileTensorExpectedAndFound) {
  Toy toy;
  toy.draw();
  toy.shapes["model.layers.1.mlp.up_proj.weight"] = {8, 16};
  toy.write(folder_.path());
  const std::string error = error_of([&] { Model::open(folder_.path()); });
  for (const char* part :
       {"model.safetensors", "model.layers.1.mlp.up_proj.weight", "[8, 16]", "[16, 8]"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }
}

TEST_F(CasesTest, ConfigurationsThatMakeNoSenseAreRefused) {
  const auto error_with = [&](const std::string& key, const OrderedJson& value) {
    Toy toy;
    toy.draw();
    toy.config[key] = value;
    toy.write(folder_.path());
    const std::string error = error_of([&] { Model::open(folder_.path()); });
    EXPECT_NE(error.find("config"), std::string::npos) << key << ": " << error;
    return error;
  };
  EXPECT_NE(error_with("num_hidden_layers", 1).find("1 layers"), std::string::npos);
  error_with("rope_theta", 1.0);
  error_with("rope_theta", 1e308);
  error_with("rms_norm_eps", 1e308);
  error_with("max_position_embeddings", -1);
  error_with("partial_rotary_factor", 1e308);
  error_with("num_key_value_heads", 0);
  const OrderedJson yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  for (const auto& [key, value] :
       {std::pair{"factor", 1e308}, std::pair{"beta_fast", 0.0}, std::pair{"beta_fast", -1.0},
        std::pair{"attention_factor", 0.0}, std::pair{"attention_factor", 1e300}}) {
    OrderedJson changed = yarn;
    changed[key] = value;
    error_with("rope_scaling", changed);
  }
  error_with("rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}});
  error_with("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}});
}

TEST_F(CasesTest, AMissingTensorIsNamed) {
  Toy toy;
  toy.draw();
  toy.remove("model.layers.1.self_attn.o_proj.weight");
  toy.write(folder_.path());
  EXPECT_NE(
      error_of([&] { Model::open(folder_.path()); }).find("model.layers.1.self_attn.o_proj.weight"),
      std::string::npos);
}

// longrope: a row in a batch is what it is alone, and a sequence that grows past the original
// context while decoding equals its recomputation, with an intervention too.
TEST_F(CasesTest, LongropeChoosesByEachSequencesOwnLength) {
  const Model model = Model::open(onset::testing::data("models/phi3_long"));  // original context 6
  const std::vector<SequenceInput> batch{{.ids = {1, 7, 9}, .cache = nullptr},
                                         {.ids = {1, 5, 4, 3, 2, 8, 9, 11}, .cache = nullptr}};
  const at::Tensor together = model.decoder().forward(batch, LogitRows::last).logits;
  for (std::size_t row = 0; row < 2; ++row) {
    const at::Tensor solo =
        model.decoder().forward(std::span(batch).subspan(row, 1), LogitRows::last).logits;
    EXPECT_TRUE(close(together[static_cast<std::int64_t>(row)], solo[0], exact_enough)) << row;
  }
  int masked_rows = 0;
  const Hooks hooks = mask_first_token(3, masked_rows);
  std::vector<std::int64_t> sequence{1, 7, 9, 4};
  KvCache cache = model.decoder().new_cache();
  std::vector<std::int64_t> next = sequence;
  for (int step = 0; step < 6; ++step) {
    const std::vector<SequenceInput> cached{{.ids = next, .cache = &cache}};
    const at::Tensor found = model.decoder().forward(cached, LogitRows::last, &hooks).logits;
    const std::vector<SequenceInput> whole{{.ids = sequence, .cache = nullptr}};
    EXPECT_TRUE(close(found, model.decoder().forward(whole, LogitRows::last, &hooks).logits,
                      {.atol = 1e-4, .rtol = 1e-4}))
        << "length " << sequence.size();
    next = {found[0].argmax().item<std::int64_t>()};
    sequence.push_back(next.front());
  }
}

// A window that the prompt exceeds: query i sees keys i - W + 1 .. i only.
TEST_F(CasesTest, ASlidingWindowShowsExactlyItsKeys) {
  Toy toy;
  toy.config["model_type"] = "mistral";
  toy.config["sliding_window"] = 3;
  toy.draw();
  const Model model = open(toy);
  Hooks hooks(2);
  hooks.observe(SiteSet::parse("layers.*.attn_probs", 2),
                [&](const SiteContext&, const at::Tensor& probs) {  // [H, T, T]
                  for (std::int64_t q = 0; q < probs.size(1); ++q) {
                    for (std::int64_t k = 0; k < probs.size(2); ++k) {
                      const bool visible = k <= q && k > q - 3;
                      EXPECT_EQ(probs[0][q][k].item<float>() > 0, visible) << q << " " << k;
                    }
                  }
                });
  const std::vector<SequenceInput> batch{{.ids = {3, 1, 4, 1, 5, 9, 2, 6}, .cache = nullptr}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
}

}  // namespace
}  // namespace onset::testing
