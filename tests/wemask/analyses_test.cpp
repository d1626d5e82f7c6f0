// Analyses under a mask: what they say equals what a masked pass shows, and a mask that takes
// nothing changes nothing.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onset/massive/explain.h"
#include "onset/massive/rigidity.h"
#include "onset/massive/scan.h"
#include "onset/massive/sinks.h"
#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/support.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

// llama_me: a massive activation is planted in block 1 for token id 1 (tests/data/models).
class MaskedAnalyses : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<const Hooks> mask(std::int64_t from_layer,
                                                  double gamma = 1.0) const {
    return masking(make_mask(model_, {.gamma = gamma, .rate = 0.5, .from_layer = from_layer}),
                   model_);
  }
  // What a pass under the hooks shows at a site of every layer: [L] of [T, ..].
  [[nodiscard]] std::vector<at::Tensor> states(const Ids& ids, SiteKind kind,
                                               const Hooks* hooks) const {
    const std::int64_t layers = model_.config().layer_count();
    Hooks seen(layers);
    if (hooks != nullptr) seen.add_interventions(*hooks);
    SiteSet sites(layers);
    sites.add_all_layers(kind);
    std::vector<at::Tensor> result;
    seen.observe(sites, [&](const SiteContext&, const at::Tensor& state) {
      result.push_back(state.clone());
    });
    const std::vector<SequenceInput> batch{{.ids = ids}};
    static_cast<void>(model_.decoder().forward(batch, LogitRows::none, &seen));
    return result;
  }

  c10::InferenceMode inference_;
  Model model_ = Model::open(onset::testing::data("models/llama_me"));
  std::vector<ScanPrompt> prompts_{{"a", {1, 17, 9, 33, 20}}, {"b", {1, 4, 28, 11, 7, 30}}};
};

void expect_same(const ScanResult& a, const ScanResult& b) {
  ASSERT_EQ(a.prompts.size(), b.prompts.size());
  EXPECT_EQ(a.me_layer, b.me_layer);
  for (std::size_t p = 0; p < a.prompts.size(); ++p) {
    for (std::size_t l = 0; l < a.prompts[p].layers.size(); ++l) {
      EXPECT_EQ(a.prompts[p].layers[l].largest.value, b.prompts[p].layers[l].largest.value);
      EXPECT_EQ(a.prompts[p].layers[l].median_abs, b.prompts[p].layers[l].median_abs);
    }
    ASSERT_EQ(a.prompts[p].stages.size(), b.prompts[p].stages.size());
  }
}

TEST_F(MaskedAnalyses, ScanTellsTheMaskedStates) {
  const auto masked = mask(0);
  const ScanResult found = scan(model_, prompts_, {}, {}, masked.get());
  bool differs = false;
  for (std::size_t p = 0; p < prompts_.size(); ++p) {
    const auto expected = states(prompts_[p].ids, SiteKind::resid_post, masked.get());
    const auto plain = states(prompts_[p].ids, SiteKind::resid_post, nullptr);
    for (std::size_t l = 0; l < expected.size(); ++l) {
      const auto largest = expected[l].abs().max().item<double>();
      EXPECT_NEAR(std::fabs(found.prompts[p].layers[l].largest.value), largest, 1e-5 * largest);
      differs = differs || !at::allclose(expected[l], plain[l], 1e-3, 1e-3);
    }
    // Attribution of the masked run: the parts sum to the masked state.
    const WrittenEntry& entry = found.prompts[p].largest;
    EXPECT_EQ((entry.resid_pre + entry.attn_out) + entry.ffn_out, entry.value);
  }
  EXPECT_TRUE(differs) << "the mask does something";
}

TEST_F(MaskedAnalyses, AMaskOfGammaZeroChangesNothing) {
  const auto nothing = mask(0, 0.0);
  expect_same(scan(model_, prompts_, {}, {}, nothing.get()), scan(model_, prompts_, {}));
  const std::vector<Ids> samples{prompts_[0].ids, prompts_[1].ids};
  const SinksResult sinks = measure_sinks(model_, samples, {}, {}, nothing.get());
  EXPECT_EQ(sinks.summary.head_alpha, measure_sinks(model_, samples, {}).summary.head_alpha);
  const auto tokens = choose_tokens(scan(model_, prompts_, {}), {}).prompts;
  const RigidityResult rigidity = measure_rigidity(model_, tokens, {}, nothing.get());
  const RigidityResult plain = measure_rigidity(model_, tokens);
  for (std::size_t s = 0; s < plain.sites.size(); ++s) {
    EXPECT_EQ(rigidity.sites[s].token.mean_layers, plain.sites[s].token.mean_layers);
    EXPECT_EQ(rigidity.sites[s].token.mean_prompts, plain.sites[s].token.mean_prompts);
  }
}

TEST_F(MaskedAnalyses, NothingBeforeTheFirstMaskedLayerChanges) {
  const std::int64_t from = 2;
  const ScanResult masked = scan(model_, prompts_, {}, {}, mask(from).get());
  const ScanResult plain = scan(model_, prompts_, {});
  for (std::size_t p = 0; p < prompts_.size(); ++p) {
    for (std::size_t l = 0; l < static_cast<std::size_t>(from); ++l) {
      EXPECT_EQ(masked.prompts[p].layers[l].largest.value,
                plain.prompts[p].layers[l].largest.value);
    }
  }
}

TEST_F(MaskedAnalyses, RigidityComparesTheMaskedAttentionInput) {
  const auto masked = mask(1);
  const std::vector<RigidityPrompt> tokens{{.ids = prompts_[0].ids}, {.ids = prompts_[1].ids}};
  const RigidityResult found = measure_rigidity(model_, tokens, {}, masked.get());
  const auto site = std::find_if(found.sites.begin(), found.sites.end(),
                                 [](const auto& row) { return row.site == SiteKind::attn_norm; });
  ASSERT_NE(site, found.sites.end());
  const auto a = states(prompts_[0].ids, SiteKind::attn_norm, masked.get());
  for (std::size_t l = 1; l < a.size(); ++l) {
    const auto x = a[l - 1][0].to(at::kDouble);
    const auto y = a[l][0].to(at::kDouble);
    const auto cosine = (x.dot(y) / (x.norm() * y.norm())).item<double>();
    EXPECT_NEAR(site->token.layers[0][l][l - 1], cosine, 1e-6) << l;
  }
}

class MaskedExplanation : public MaskedAnalyses {
 protected:
  void explain_from(std::int64_t from_layer) {
    masked_ = mask(from_layer);
    const auto text = experiment_text({1, 17, 9, 33, 20, 4, 28, 11, 7, 30, 5, 6}, {.window = 6}, 6);
    const ScanResult plain = scan(model_, prompts_, {});
    const ScanResult scanned = scan(model_, prompts_, {}, {}, masked_.get());
    const auto target =
        same_target(model_, scanned, choose_target(model_, plain, {}), masked_.get());
    found_ = explain(model_, scanned, target, text, {}, {}, masked_.get());
    states_ = states(prompts_[target.tokens[target.shown].prompt].ids, SiteKind::resid_post,
                     masked_.get());
    text_ = text;
  }

  std::shared_ptr<const Hooks> masked_;
  ExplainResult found_;
  std::vector<at::Tensor> states_;  // of the shown prompt
  ExperimentText text_;
};

// Every part is of the masked run: its values are those of a masked pass.
TEST_F(MaskedExplanation, TellsTheMaskedStates) {
  explain_from(0);
  const auto& target = found_.target;
  const auto token = target.tokens[target.shown].token;
  const at::Tensor state = states_[static_cast<std::size_t>(target.layer)][token];
  const auto value = state[target.dims.front()].item<double>();
  EXPECT_NEAR(target.tokens[target.shown].values.front(), value, 1e-5 * std::fabs(value));
  const EntryAttribution& entry = found_.ffn->entries.front();
  EXPECT_NEAR(entry.resid_post, value, 1e-5 * std::fabs(value));
  EXPECT_LE(std::fabs(entry.ffn_difference), 1e-6 * entry.largest_neuron);
  const auto last = states_.back()[token].abs().max().item<double>();
  EXPECT_NEAR(found_.fall->last_largest, last, 1e-5 * last);
  const auto& layers = found_.ffn->super_weights.looks.front().layers;
  EXPECT_EQ(layers.size(), states_.size());
}

// The conditions that change nothing are the mask alone.
TEST_F(MaskedExplanation, ExperimentsMeasureTheTextUnderTheMask) {
  explain_from(0);
  const auto expected = score_text(model_, text_.ids, text_.windows, masked_.get()).perplexity();
  const auto plain = score_text(model_, text_.ids, text_.windows).perplexity();
  EXPECT_GT(std::fabs(expected - plain), 1e-4 * plain) << "the mask does something";
  const auto* as_is = cell_of(*found_.factorial, 1.0, FfnChange::as_is);
  EXPECT_NEAR(as_is->text->perplexity, expected, 1e-9 * expected);
  const auto* whole = condition_of(*found_.dose, "dose", 1.0);
  EXPECT_NEAR(whole->text.perplexity, expected, 1e-9 * expected);
  const auto sinks = measure_sinks(model_, text_.samples, {}, {}, masked_.get());
  EXPECT_EQ(whole->text.sinks.head_alpha, sinks.summary.head_alpha);
}

TEST_F(MaskedExplanation, TheVocabularyIsRunUnderTheMask) {
  explain_from(0);
  for (const std::int64_t id : {0, 1, 17}) {
    const auto layer = static_cast<std::size_t>(found_.target.layer);
    const auto state = states({id}, SiteKind::resid_post, masked_.get())[layer];
    const auto largest = state.abs().max().item<double>();
    EXPECT_NEAR(found_.vocabulary->values[static_cast<std::size_t>(id)], largest, 1e-4 * largest);
  }
}

}  // namespace
}  // namespace onset::testing
