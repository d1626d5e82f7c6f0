// Experts in the forward pass: which are visited, and the two ways to switch one off.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "onset/model/decoder.h"
#include "support/fixture_copy.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr Tolerance close_enough{.atol = 1e-5, .rtol = 1e-5};
constexpr double infinity = std::numeric_limits<double>::infinity();

class Experts : public ::testing::TestWithParam<const char*> {
 protected:
  using Sites = std::map<std::string, at::Tensor>;

  struct Run {
    at::Tensor logits;
    Sites sites;
    std::map<std::string, std::vector<std::int64_t>> rows;  // of an expert's sites
  };

  // With the interventions of `edit`, which may be empty.
  [[nodiscard]] static Run run(const Model& model, const std::vector<std::int64_t>& ids,
                               const std::function<void(Hooks&)>& edit = {}) {
    Run result;
    Hooks hooks(model.config().layer_count());
    if (edit) edit(hooks);
    hooks.observe(SiteSet::parse("layers.*.*", model.config()),
                  [&](const SiteContext& context, const at::Tensor& tensor) {
                    const std::string name = site_name(context.site);
                    result.sites[name] = tensor;
                    result.rows[name].assign(context.rows.begin(), context.rows.end());
                  });
    const std::vector<SequenceInput> batch{{.ids = ids}};
    result.logits = model.decoder().forward(batch, LogitRows::all, &hooks).logits;
    return result;
  }

  [[nodiscard]] static std::set<std::int64_t> chosen(const Run& run, const std::string& layer) {
    const at::Tensor experts = run.sites.at(layer + "router.experts").reshape({-1}).contiguous();
    const auto* first = experts.const_data_ptr<std::int64_t>();
    return {first, first + experts.numel()};
  }

  // The layer that is looked at: the last, a mixture in every fixture.
  [[nodiscard]] std::string layer() const {
    return "layers." + std::to_string(model_.config().layer_count() - 1) + ".";
  }
  [[nodiscard]] SiteSet site(const std::string& kind) const {
    return SiteSet::parse(layer() + kind, model_.config());
  }

  c10::InferenceMode inference_;
  std::filesystem::path folder_ = onset::testing::data(std::string("models/") + GetParam());
  Model model_ = Model::open(folder_);
  std::vector<std::int64_t> ids_ =
      ReferenceTensors(folder_ / "reference.safetensors").ids("input_ids.b");
};

TEST_P(Experts, OnlyThoseWithATokenAreVisited) {
  for (const std::vector<std::int64_t>& ids : {std::vector<std::int64_t>{1}, ids_}) {
    const Run seen = run(model_, ids);
    const std::set<std::int64_t> used = chosen(seen, layer());
    for (std::int64_t e = 0; e < model_.config().mixture.experts; ++e) {
      const std::string name = layer() + "experts." + std::to_string(e);
      EXPECT_EQ(seen.sites.contains(name + ".out"), used.contains(e)) << name;
      EXPECT_EQ(seen.sites.contains(name + ".product"), used.contains(e)) << name;
      if (!used.contains(e)) continue;
      const at::Tensor to_it = seen.sites.at(layer() + "router.experts").eq(e).any(1).nonzero();
      const at::Tensor rows = at::tensor(seen.rows.at(name + ".out"), at::kLong).unsqueeze(1);
      EXPECT_TRUE(at::equal(rows, to_it)) << name;
    }
  }
}

// Its weights may be anything.
TEST_P(Experts, OneWithoutATokenIsNotRead) {
  const Run before = run(model_, {1});
  Toy copy = copy_of_fixture(GetParam());
  int spoiled = 0;
  for (auto& [name, values] : copy.values) {
    const std::size_t at = name.find(".experts.");
    if (at == std::string::npos) continue;
    const std::int64_t expert = std::stoll(name.substr(at + 9));
    const std::string of = name.substr(6, name.find('.', 13) - 5);  // "layers.N."
    if (chosen(before, of).contains(expert)) continue;
    std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
    ++spoiled;
  }
  EXPECT_GT(spoiled, 0);
  const TemporaryFolder folder;
  copy.write(folder.path());
  for (const Residency residency : {Residency::streamed, Residency::resident}) {
    const Model model = Model::open(folder.path(), {.residency = residency});
    EXPECT_TRUE(close(run(model, {1}).logits, before.logits, close_enough));
  }
}

// experts.E.out = 0: what the expert would add is left out. The tokens keep their choice, and the
// weights of the others stay, so that the layer adds less.
TEST_P(Experts, AnOutputOfZeroLeavesOutThatPartAlone) {
  const Run before = run(model_, ids_);
  const std::int64_t expert = *chosen(before, layer()).begin();
  const std::string out = layer() + "experts." + std::to_string(expert) + ".out";
  const Run after = run(model_, ids_, [&](Hooks& hooks) {
    hooks.intervene(site("experts." + std::to_string(expert) + ".out"),
                    [](const SiteContext&, const at::Tensor& t) { return at::zeros_like(t); });
  });
  const at::Tensor rows = at::tensor(before.rows.at(out), at::kLong);
  at::Tensor expected = before.sites.at(layer() + "ffn_out").clone();
  expected.index_add_(0, rows, before.sites.at(out).neg());
  EXPECT_TRUE(close(after.sites.at(layer() + "ffn_out"), expected, close_enough));
  EXPECT_FALSE(close(after.logits, before.logits, close_enough));
  for (const std::string kind : {"router", "router.experts", "router.weights"}) {
    EXPECT_TRUE(at::equal(after.sites.at(layer() + kind), before.sites.at(layer() + kind)));
  }
}

// A router logit of -infinity: the expert is not chosen, the next best takes its place, and the
// weights are those of a router without it.
TEST_P(Experts, ARouterLogitOfMinusInfinityChoosesAnother) {
  const Run before = run(model_, ids_);
  const std::int64_t expert = *chosen(before, layer()).begin();
  const Run after = run(model_, ids_, [&](Hooks& hooks) {
    SiteSet logits_alone(model_.config().layer_count());  // "router" is its choice and weights too
    logits_alone.add({SiteKind::router, model_.config().layer_count() - 1});
    hooks.intervene(logits_alone, [&](const SiteContext&, const at::Tensor& logits) {
      at::Tensor edited = logits.clone();
      edited.select(1, expert).fill_(-infinity);
      return edited;
    });
  });
  EXPECT_FALSE(chosen(after, layer()).contains(expert));
  const at::Tensor old_choice = before.sites.at(layer() + "router.experts");
  const at::Tensor new_choice = after.sites.at(layer() + "router.experts");
  EXPECT_EQ(new_choice.sizes(), old_choice.sizes());
  const MixtureConfig& mixture = model_.config().mixture;
  const at::Tensor logits = before.sites.at(layer() + "router").to(at::kDouble);
  const at::Tensor weights = after.sites.at(layer() + "router.weights").to(at::kDouble);
  for (std::int64_t t = 0; t < new_choice.size(0); ++t) {
    const bool had_it = old_choice[t].eq(expert).any().item<bool>();
    if (mixture.groups == 1 && !had_it) {
      EXPECT_TRUE(at::equal(new_choice[t], old_choice[t]));
    }
    double all = 0;  // of the softmax without the expert
    double taken = 0;
    const auto score = [&](std::int64_t e) {
      const double logit = logits[t][e].item<double>();
      return mixture.score == RouterScore::sigmoid ? 1 / (1 + std::exp(-logit)) : std::exp(logit);
    };
    for (std::int64_t e = 0; e < mixture.experts; ++e) all += e == expert ? 0 : score(e);
    for (std::int64_t i = 0; i < mixture.chosen; ++i) {
      taken += score(new_choice[t][i].item<std::int64_t>());
    }
    const double divisor = mixture.normalised                      ? taken
                           : mixture.score == RouterScore::sigmoid ? 1.0
                                                                   : all;
    for (std::int64_t i = 0; i < mixture.chosen; ++i) {
      EXPECT_NEAR(weights[t][i].item<double>(),
                  mixture.scale * score(new_choice[t][i].item<std::int64_t>()) / divisor, 1e-5);
    }
  }
}

// The choice itself can be edited: with weights of 0 and 1 the layer adds one expert's output.
TEST_P(Experts, AnEditOfTheChoiceIsFollowed) {
  const std::int64_t expert = model_.config().mixture.experts - 1;
  const Run after = run(model_, ids_, [&](Hooks& hooks) {
    hooks.intervene(site("router.experts"), [&](const SiteContext&, const at::Tensor& t) {
      at::Tensor edited = at::arange(t.size(1)).expand(t.sizes()).clone();
      edited.select(1, t.size(1) - 1).fill_(expert);
      return edited;
    });
    hooks.intervene(site("router.weights"), [](const SiteContext&, const at::Tensor& t) {
      at::Tensor edited = at::zeros_like(t);
      edited.select(1, t.size(1) - 1).fill_(1.0);
      return edited;
    });
  });
  const std::string name = layer() + "experts." + std::to_string(expert) + ".out";
  at::Tensor expected = after.sites.at(name);
  ASSERT_EQ(expected.size(0), static_cast<std::int64_t>(ids_.size()));
  if (model_.config().mixture.shared_ffn > 0)
    expected = expected + after.sites.at(layer() + "shared_out");
  EXPECT_TRUE(close(after.sites.at(layer() + "ffn_out"), expected, close_enough));
}

INSTANTIATE_TEST_SUITE_P(Mixtures, Experts,
                         ::testing::Values("mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2",
                                           "deepseek_v2_lite", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace onset::testing
