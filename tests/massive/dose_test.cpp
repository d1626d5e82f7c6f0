// Every vocabulary token alone, and doses of the massive entry.
#include "onset/massive/dose.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onset/massive/scan.h"
#include "onset/massive/vocabulary.h"
#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

// Against scans of prompts of one token each.
TEST(Vocabulary, EqualsScansOfLoneTokens) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const std::int64_t size = model.config().vocabulary;
  std::vector<ScanPrompt> prompts;
  for (std::int64_t id = 0; id < size; ++id) prompts.push_back({"", {id}});
  const ScanResult expected = scan(model, prompts, {});
  const VocabularyResult found =
      scan_vocabulary(model, {.layer = 1, .dims = {22}, .threshold = 100, .listed = 5});
  EXPECT_EQ(found.tokens, size);
  std::int64_t massive = 0;
  for (std::int64_t id = 0; id < size; ++id) {
    const StateEntry& largest = expected.prompts[static_cast<std::size_t>(id)].layers[1].largest;
    const double size_of = std::fabs(largest.value);
    EXPECT_NEAR(found.values[static_cast<std::size_t>(id)], size_of, 1e-5 * size_of);
    if (size_of > 100) ++massive;
  }
  EXPECT_EQ(found.massive, massive);
  std::int64_t counted = 0;
  for (const std::int64_t count : found.counts) counted += count;
  EXPECT_EQ(counted, size);
  EXPECT_EQ(found.edges.size(), found.counts.size() + 1);
  EXPECT_EQ(found.quantiles.front(), *std::min_element(found.values.begin(), found.values.end()));
  EXPECT_EQ(found.quantiles.back(), found.largest.front().largest);
  EXPECT_LE(found.small.size(), 5U);
}

class Smollm2Dose : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path));
    const ReferenceTensors text(onset::testing::data("smollm2/wikitext_ids.safetensors"));
    const at::Tensor ids = text.get("ids").to(at::kLong).narrow(0, 0, 128).contiguous();
    question_.entries = {.layer = 11, .dims = {507}};
    question_.mean = {23813.5774};
    question_.control_dim = 100;
    question_.text = experiment_text(
        {ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + ids.numel()}, {});
  }
  std::optional<Model> model_;
  DoseQuestion question_;
};

TEST_F(Smollm2Dose, SinksBehindTheLayerFollowTheDoseAndControlsDoNot) {
  ASSERT_EQ(question_.text.samples.size(), 2U);
  const DoseResult found = run_doses(*model_, question_);
  ASSERT_EQ(found.conditions.size(), 8U);
  const DoseCondition& full = found.conditions[0];
  const DoseCondition& none = found.conditions[3];
  const DoseCondition& mean = found.conditions[4];
  const DoseCondition& removed = found.conditions[5];
  const DoseCondition& dim = found.conditions[6];
  const DoseCondition& token = found.conditions[7];
  EXPECT_EQ(full.dose, 1.0);
  EXPECT_EQ(none.dose, 0.0);
  EXPECT_EQ(mean.name, "mean");
  EXPECT_EQ(removed.name, "block_write");
  EXPECT_GT(none.state_norm, 5 * none.others_state_norm) << "zeroing one dim leaves a long state";
  EXPECT_LT(removed.state_norm, none.state_norm);
  const auto rate = [](const DoseCondition& condition, std::size_t layer) {
    return condition.text.sinks.layer_rate[layer];
  };
  for (std::size_t layer = 0; layer <= 11; ++layer) {
    EXPECT_EQ(rate(none, layer), rate(full, layer)) << "before the edit, layer " << layer;
  }
  EXPECT_GT(rate(full, 20), 0.7);
  EXPECT_LT(rate(none, 20), 0.6 * rate(full, 20));
  EXPECT_NEAR(rate(mean, 20), rate(full, 20), 0.1);
  EXPECT_NEAR(rate(dim, 20), rate(full, 20), 0.1);
  EXPECT_NEAR(rate(token, 20), rate(full, 20), 0.1);
  EXPECT_GT(none.text.perplexity, 100 * full.text.perplexity);
  EXPECT_NEAR(mean.text.perplexity / full.text.perplexity, 1, 0.05);
  EXPECT_NEAR(dim.text.perplexity / full.text.perplexity, 1, 0.1);
}

// The removed write against a pass in which ffn_out (and attn_out) of that token is set to zero at
// its own site, and the state's norm by its definition.
TEST(Dose, RemovesTheBlocksWholeWrite) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const c10::InferenceMode inference;
  const std::vector<std::int64_t> ids{5, 9, 3, 40, 7, 21};
  for (const bool attention : {false, true}) {
    DoseQuestion question;
    question.entries = {.layer = 1, .dims = {22}};
    question.mean = {100.0};
    question.doses = {1.0};
    question.attention_writes = attention;
    question.text.ids = ids;
    question.text.samples = {ids};
    const DoseResult found = run_doses(model, question);
    ASSERT_EQ(found.conditions.size(), 5U);
    EXPECT_EQ(found.attention_removed, attention);
    const DoseCondition& removed = found.conditions[2];
    ASSERT_EQ(removed.name, "block_write");

    const auto zero_row = [](const SiteContext&, const at::Tensor& tensor) {
      at::Tensor edited = tensor.clone();
      edited.select(0, 0).zero_();
      return edited;
    };
    const std::int64_t layers = model.config().layer_count();
    Hooks hooks(layers);
    SiteSet ffn(layers);
    ffn.add({SiteKind::ffn_out, 1});
    hooks.intervene(ffn, zero_row);
    if (attention) {
      SiteSet attn(layers);
      attn.add({SiteKind::attn_out, 1});
      hooks.intervene(attn, zero_row);
    }
    at::Tensor state;
    SiteSet post(layers);
    post.add({SiteKind::resid_post, 1});
    hooks.observe(post, [&](const SiteContext&, const at::Tensor& tensor) { state = tensor; });
    const TextScore score = score_text(model, ids, {}, &hooks);
    EXPECT_NEAR(removed.text.perplexity, score.perplexity(), 1e-9 * score.perplexity());
    const std::vector<SequenceInput> batch{{.ids = ids}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
    const at::Tensor norms = state.to(at::kDouble).norm(2, 1);
    EXPECT_NEAR(removed.state_norm, norms[0].item<double>(), 1e-9 * removed.state_norm);
    EXPECT_NEAR(removed.others_state_norm, norms.narrow(0, 1, 5).median().item<double>(),
                1e-9 * removed.others_state_norm);
    EXPECT_LT(removed.state_norm, found.conditions[0].state_norm);
  }
}

// The readings of keys and values, by their definition from the captured tensors.
TEST_F(Smollm2Dose, KeyReadingsAreThoseOfTheirDefinition) {
  question_.doses = {1.0};
  const DoseResult found = run_doses(*model_, question_);
  const KeyReading& reading = found.conditions[0].keys[14];
  const c10::InferenceMode inference;
  std::map<SiteKind, at::Tensor> sites;
  SiteSet wanted(30);
  for (const SiteKind kind : {SiteKind::q, SiteKind::k, SiteKind::v}) wanted.add({kind, 14});
  double norm = 0;
  double own = 0;
  double others = 0;
  for (const auto& sample : question_.text.samples) {
    Hooks hooks(30);
    hooks.observe(wanted, [&](const SiteContext& context, const at::Tensor& tensor) {
      sites[context.site.kind] = tensor;
    });
    const std::vector<SequenceInput> batch{{.ids = sample}};
    static_cast<void>(model_->decoder().forward(batch, LogitRows::none, &hooks));
    norm += sites[SiteKind::k][0].norm(2, 1).mean().item<double>() / 2;
    double sum_own = 0;
    double sum_others = 0;
    double count = 0;
    for (std::int64_t i = 1; i < 64; ++i) {
      for (std::int64_t h = 0; h < 9; ++h) {
        const at::Tensor q = sites[SiteKind::q][i][h];
        const at::Tensor keys = sites[SiteKind::k].select(1, h / 3).narrow(0, 0, i + 1);
        const at::Tensor cosines = at::mv(keys, q) / (keys.norm(2, 1) * q.norm());
        sum_own += cosines[0].item<double>();
        sum_others += cosines.narrow(0, 1, i).sum().item<double>();
        count += static_cast<double>(i);
      }
    }
    own += sum_own / (63 * 9) / 2;
    others += sum_others / count / 2;
  }
  EXPECT_NEAR(reading.key_norm, norm, 1e-4 * norm);
  EXPECT_NEAR(reading.query_cosine, own, 1e-4);
  EXPECT_NEAR(reading.others_query_cosine, others, 1e-4);
}

}  // namespace
}  // namespace onset::testing
