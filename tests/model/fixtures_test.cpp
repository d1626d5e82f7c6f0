// The forward pass against references computed with transformers (tests/data/models/README.md).
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <map>

#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

struct Fixture {
  std::filesystem::path folder;
  ReferenceTensors tensors;
  OrderedJson facts;

  explicit Fixture(const std::string& name)
      : folder(onset::testing::data("models/" + name)),
        tensors(folder / "reference.safetensors"),
        facts(OrderedJson::parse(read_file(folder / "reference.json"))) {}

  [[nodiscard]] Tolerance tolerance(const std::string& kind) const {
    const OrderedJson& row = facts.at("tolerances").at(kind);
    return {row.at("atol").get<double>(), row.at("rtol").get<double>()};
  }
};

// The pass, with its logits on the CPU.
ForwardResult forwarded(const Model& model, std::span<const SequenceInput> batch, LogitRows rows,
                        const Hooks* hooks = nullptr) {
  ForwardResult result = model.decoder().forward(batch, rows, hooks);
  result.logits = result.logits.cpu();
  return result;
}

ForwardResult run(const Model& model, const std::vector<std::int64_t>& ids,
                  const Hooks* hooks = nullptr) {
  const std::vector<SequenceInput> batch{{.ids = ids, .cache = nullptr}};
  return forwarded(model, batch, LogitRows::all, hooks);
}

// Everything the pass shows at the sites asked for; attn_probs of the one sequence.
std::map<std::string, at::Tensor> run_sites(const Model& model,
                                            const std::vector<std::int64_t>& ids,
                                            const std::string& patterns) {
  std::map<std::string, at::Tensor> seen;
  Hooks hooks(model.config().layer_count());
  hooks.observe(SiteSet::parse(patterns, model.config()),
                [&](const SiteContext& context, const at::Tensor& tensor) {
                  seen[site_name(context.site)] = tensor;
                });
  static_cast<void>(run(model, ids, &hooks));
  return seen;
}

class ModelFixture : public ::testing::TestWithParam<OnDevice<const char*>> {
 protected:
  Fixture fixture_{GetParam().value};
  c10::InferenceMode inference_;
  Model model_ = Model::open(fixture_.folder, {.device = GetParam().device});
};

TEST_P(ModelFixture, LogitsEqualTheReference) {
  for (const std::string prompt : {"a", "b"}) {
    const auto result = run(model_, fixture_.tensors.ids("input_ids." + prompt));
    EXPECT_TRUE(close(result.logits, fixture_.tensors.get("logits." + prompt),
                      fixture_.tolerance("logits")))
        << prompt;
  }
}

TEST_P(ModelFixture, StatesAfterEveryBlockEqualTheReference) {
  for (const std::string prompt : {"a", "b"}) {
    const auto seen = run_sites(model_, fixture_.tensors.ids("input_ids." + prompt),
                                "embed,layers.*.resid_pre,layers.*.resid_post,final_norm");
    const at::Tensor hidden = fixture_.tensors.get("hidden." + prompt);
    const Tolerance tolerance = fixture_.tolerance("hidden");
    EXPECT_TRUE(close(seen.at("embed"), hidden[0], tolerance));
    for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
      const std::string layer = "layers." + std::to_string(l);
      EXPECT_TRUE(close(seen.at(layer + ".resid_pre"), hidden[l], tolerance)) << layer;
      EXPECT_TRUE(close(seen.at(layer + ".resid_post"), hidden[l + 1], tolerance)) << layer;
    }
    if (prompt == "b") {
      EXPECT_TRUE(close(seen.at("final_norm"), fixture_.tensors.get("final_norm.b"), tolerance));
    }
  }
}

// The references' names of what onset calls by the first; in families with a norm after a module
// the module's own output is `raw`.
std::map<std::string, std::string> reference_names(const ModelConfig& config, std::int64_t layer) {
  std::map<std::string, std::string> names{{"attn_norm", "attn_norm"},
                                           {"resid_mid", "resid_mid"},
                                           {"ffn_norm", "ffn_norm"},
                                           {"ffn_product", "ffn_product"}};
  names["attn_out"] = config.post_norms ? "attn_post_norm" : "attn_out";
  names["ffn_out"] = config.post_norms ? "ffn_post_norm" : "ffn_out";
  if (config.post_norms) {
    names["attn_raw"] = "attn_out";
    names["ffn_raw"] = "ffn_out";
  }
  if (!config.pre_norms) names.erase("attn_norm");
  if (config.is_mixture(layer)) names.erase("ffn_product");
  if (config.is_mixture(layer) && config.mixture.shared_ffn > 0) names["shared_out"] = "shared_out";
  return names;
}

TEST_P(ModelFixture, SitesEqualTheReference) {
  const auto seen = run_sites(model_, fixture_.tensors.ids("input_ids.b"), "layers.*.*");
  for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
    for (const auto& [kind, reference] : reference_names(model_.config(), l)) {
      const std::string name = "site." + std::to_string(l) + "." + reference;
      EXPECT_TRUE(close(seen.at("layers." + std::to_string(l) + "." + kind),
                        fixture_.tensors.get(name), fixture_.tolerance("sites")))
          << name;
    }
  }
}

TEST_P(ModelFixture, AttentionProbabilitiesEqualTheReference) {
  const auto seen =
      run_sites(model_, fixture_.tensors.ids("input_ids.b"), "layers.*.attn_probs,logits");
  const at::Tensor probs = fixture_.tensors.get("attn_probs.b");
  for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
    EXPECT_TRUE(close(seen.at("layers." + std::to_string(l) + ".attn_probs"), probs[l],
                      fixture_.tolerance("attn_probs")))
        << "layer " << l;
  }
  // The explicit softmax and the fused kernel are one function.
  EXPECT_TRUE(
      close(seen.at("logits"), fixture_.tensors.get("logits.b"), fixture_.tolerance("logits")));
}

TEST_P(ModelFixture, RoutersChooseAndWeighAsTheReference) {
  const auto seen = run_sites(model_, fixture_.tensors.ids("input_ids.b"), "layers.*.*");
  for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
    if (!model_.config().is_mixture(l)) continue;
    const std::string layer = "layers." + std::to_string(l) + ".router";
    const std::string reference = "router." + std::to_string(l) + ".";
    EXPECT_TRUE(close(seen.at(layer), fixture_.tensors.get(reference + "logits"),
                      fixture_.tolerance("router_logits")));
    EXPECT_TRUE(
        at::equal(seen.at(layer + ".experts"), fixture_.tensors.get(reference + "experts")));
    EXPECT_TRUE(close(seen.at(layer + ".weights"), fixture_.tensors.get(reference + "weights"),
                      fixture_.tolerance("router_logits")));
  }
}

// What the experts and the shared expert add is what the FFN adds.
TEST_P(ModelFixture, TheExpertsPartsSumToTheFfnOutput) {
  const ModelConfig& config = model_.config();
  std::map<std::int64_t, at::Tensor> sums;
  std::map<std::int64_t, at::Tensor> whole;
  Hooks hooks(config.layer_count());
  hooks.observe(SiteSet::parse("layers.*.*", config), [&](const SiteContext& context,
                                                          const at::Tensor& tensor) {
    if (context.site.kind == SiteKind::ffn_out) whole[context.site.layer] = tensor;
    if (context.site.kind == SiteKind::shared_out) {
      sums.at(context.site.layer) += tensor;
    }
    if (context.site.kind == SiteKind::ffn_norm) {
      sums[context.site.layer] = at::zeros_like(tensor);
    }
    if (context.site.kind != SiteKind::expert_out) return;
    ASSERT_EQ(tensor.size(0), static_cast<std::int64_t>(context.rows.size()));
    for (std::size_t i = 0; i < context.rows.size(); ++i) {
      sums.at(context.site.layer)[context.rows[i]] += tensor[static_cast<std::int64_t>(i)];
    }
  });
  static_cast<void>(run(model_, fixture_.tensors.ids("input_ids.b"), &hooks));
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    if (!config.is_mixture(l)) continue;
    EXPECT_TRUE(close(sums.at(l), whole.at(l), {1e-5, 1e-5})) << "layer " << l;
  }
}

TEST_P(ModelFixture, TheStreamIsTheExactSumOfItsParts) {
  const auto seen = run_sites(model_, fixture_.tensors.ids("input_ids.b"), "layers.*.*");
  for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const at::Tensor sum =
        (seen.at(layer + "resid_pre") + seen.at(layer + "attn_out")) + seen.at(layer + "ffn_out");
    EXPECT_TRUE(at::equal(sum, seen.at(layer + "resid_post"))) << layer;
  }
}

TEST_P(ModelFixture, PaddedRowsEqualTheReferenceAndTheirSoloRuns) {
  const at::Tensor ids = fixture_.tensors.get("input_ids.pad");
  const auto batch = sequences_of_padded(fixture_.tensors.ids("input_ids.pad"),
                                         fixture_.tensors.ids("attention_mask.pad"), ids.size(1));
  const auto together = forwarded(model_, batch, LogitRows::last);
  EXPECT_TRUE(close(together.logits, fixture_.tensors.get("logits.pad_last"),
                    fixture_.tolerance("logits")));
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const auto solo = forwarded(model_, std::span(batch).subspan(row, 1), LogitRows::last);
    EXPECT_TRUE(close(together.logits[static_cast<std::int64_t>(row)], solo.logits[0],
                      {.atol = 1e-5, .rtol = 1e-5}));
  }
}

TEST_P(ModelFixture, GreedyDecodingWithACacheEqualsTheReference) {
  KvCache cache = model_.decoder().new_cache();
  std::vector<std::int64_t> next = fixture_.tensors.ids("input_ids.b");
  const auto expected = fixture_.tensors.ids("greedy.tokens.b");
  const at::Tensor logits = fixture_.tensors.get("greedy.logits.b");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<SequenceInput> batch{{.ids = next, .cache = &cache}};
    const auto result = forwarded(model_, batch, LogitRows::last);
    EXPECT_TRUE(
        close(result.logits[0], logits[static_cast<std::int64_t>(i)], fixture_.tolerance("logits")))
        << "step " << i;
    next = {result.logits[0].argmax().item<std::int64_t>()};
    EXPECT_EQ(next.front(), expected[i]) << "step " << i;
  }
}

TEST_P(ModelFixture, ChunkedPrefillEqualsWholePrefill) {
  const auto ids = fixture_.tensors.ids("input_ids.b");
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
    KvCache cache = model_.decoder().new_cache();
    std::vector<at::Tensor> parts;
    for (std::size_t begin = 0; begin < ids.size(); begin += chunk) {
      const std::size_t end = std::min(begin + chunk, ids.size());
      const std::vector<SequenceInput> batch{
          {.ids = {ids.begin() + static_cast<std::ptrdiff_t>(begin),
                   ids.begin() + static_cast<std::ptrdiff_t>(end)},
           .cache = &cache,
           .planned_length = static_cast<std::int64_t>(ids.size())}};
      parts.push_back(forwarded(model_, batch, LogitRows::all).logits);
    }
    EXPECT_TRUE(
        close(at::cat(parts, 0), fixture_.tensors.get("logits.b"), fixture_.tolerance("logits")))
        << "chunks of " << chunk;
  }
}

TEST_P(ModelFixture, Float64AndBfloat16ComputeAgreeWithFloat32) {
  const auto ids = fixture_.tensors.ids("input_ids.b");
  const at::Tensor expected = fixture_.tensors.get("logits.b").to(at::kDouble);
  for (const Residency residency : {Residency::streamed, Residency::resident}) {
    const Model exact = Model::open(fixture_.folder, {Compute::f64, residency, GetParam().device});
    EXPECT_TRUE(close(run(exact, ids).logits, expected, fixture_.tolerance("logits")));
    const Model rounded =
        Model::open(fixture_.folder, {Compute::bf16, residency, GetParam().device});
    // Rounding may send a token to another expert, after which nothing is close: the routers get
    // the reference's logits.
    Hooks same_experts(model_.config().layer_count());
    for (std::int64_t l = 0; l < model_.config().layer_count(); ++l) {
      if (!model_.config().is_mixture(l)) continue;
      SiteSet router(model_.config().layer_count());
      router.add({SiteKind::router, l});
      same_experts.intervene(router, [&](const SiteContext& context, const at::Tensor&) {
        return fixture_.tensors.get("router." + std::to_string(context.site.layer) + ".logits");
      });
    }
    // bfloat16 has 8 significant bits; errors grow over a few layers as the root of their number.
    const at::Tensor difference =
        run(rounded, ids, &same_experts).logits.to(at::kDouble) - expected;
    EXPECT_LT((difference.norm() / expected.norm()).item<double>(), 0.05);
  }
}

TEST_P(ModelFixture, TheOlderSpellingOfTheConfigurationIsTheSameModel) {
  const auto older = fixture_.folder / "config_v4.json";
  if (!std::filesystem::exists(older)) return;  // not every family has one
  const TemporaryFolder folder;
  std::filesystem::copy_file(older, folder.path() / "config.json");
  std::filesystem::copy_file(fixture_.folder / "model.safetensors",
                             folder.path() / "model.safetensors");
  const auto result = run(Model::open(folder.path(), {.device = GetParam().device}),
                          fixture_.tensors.ids("input_ids.b"));
  EXPECT_TRUE(close(result.logits, fixture_.tensors.get("logits.b"), fixture_.tolerance("logits")));
}

INSTANTIATE_TEST_SUITE_P(Families, ModelFixture,
                         ::testing::ValuesIn(on_all_devices<const char*>(
                             {"llama",      "llama3",      "mistral",          "qwen2",
                              "qwen3",      "llama_me",    "qwen3_me",         "mistral_me",
                              "llama_gguf", "phi3",        "phi3_long",        "gemma2",
                              "gemma3",     "olmo2",       "mixtral",          "qwen2_moe",
                              "qwen3_moe",  "deepseek_v2", "deepseek_v2_lite", "deepseek_v3"})),
                         [](const auto& parameter) {
                           return std::string(parameter.param.value) +
                                  suffix_of(parameter.param.device);
                         });

struct GgufCase {
  const char* folder;
  const char* file;
};

class GgufFixture : public ::testing::TestWithParam<OnDevice<GgufCase>> {};

// A quantised file equals its dequantised weights; a float32 file the safetensors.
TEST_P(GgufFixture, LogitsEqualTheReference) {
  const c10::InferenceMode inference;
  const Fixture fixture(GetParam().value.folder);
  const std::string file = GetParam().value.file;
  const auto path = any_fixture(std::string("models/") + GetParam().value.folder + "/" + file);
  if (path.empty()) GTEST_SKIP() << file << " is not in the repository, nor beside it";
  const Model model = Model::open(path, {.device = GetParam().device});
  if (file == "f32.gguf") {
    const auto result = run(model, fixture.tensors.ids("input_ids.b"));
    EXPECT_TRUE(close(result.logits, fixture.tensors.get("logits.b"), fixture.tolerance("logits")));
    return;
  }
  const ReferenceTensors quantised(fixture.folder / "gguf_reference.safetensors");
  const auto result = run(model, quantised.ids("input_ids.b"));
  EXPECT_TRUE(close(result.logits,
                    quantised.get("logits." + file.substr(0, file.size() - 5) + ".b"),
                    fixture.tolerance("logits")));
}

INSTANTIATE_TEST_SUITE_P(
    Files, GgufFixture,
    ::testing::ValuesIn(on_all_devices<GgufCase>(
        {GgufCase{"llama", "f32.gguf"}, GgufCase{"llama3", "f32.gguf"},
         GgufCase{"llama_me", "f32.gguf"}, GgufCase{"qwen2", "f32.gguf"},
         GgufCase{"qwen2", "q8_0.gguf"}, GgufCase{"qwen3", "f32.gguf"},
         GgufCase{"llama_gguf", "f16.gguf"}, GgufCase{"llama_gguf", "bf16.gguf"},
         GgufCase{"llama_gguf", "q8_0.gguf"}, GgufCase{"llama_gguf", "q4_0.gguf"},
         GgufCase{"llama_gguf", "q4_1.gguf"}, GgufCase{"llama_gguf", "q5_0.gguf"},
         GgufCase{"llama_gguf", "q5_1.gguf"}, GgufCase{"llama_gguf", "kmix.gguf"},
         // scripts/make_mixture_gguf; deepseek_v3's has kv_b_proj as two stacks
         GgufCase{"mixtral", "f32.gguf"}, GgufCase{"qwen3_moe", "f32.gguf"},
         GgufCase{"deepseek_v2_lite", "f32.gguf"}, GgufCase{"deepseek_v3", "f32.gguf"},
         GgufCase{"qwen2_moe", "q8_0.gguf"}})),
    [](const auto& parameter) {
      const GgufCase& value = parameter.param.value;
      std::string name = std::string(value.folder) + "_" + value.file;
      std::replace(name.begin(), name.end(), '.', '_');
      return name + suffix_of(parameter.param.device);
    });

}  // namespace
}  // namespace onset::testing
