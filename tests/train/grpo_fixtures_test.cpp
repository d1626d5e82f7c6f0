// The GRPO references' losses as far as they follow from what is stored. At the first update after
// a rollout the policy is the one that sampled, so every ratio is 1; in the first rollout it is the
// reference too, so k3 is 0; in the second the stored mean of k3 is the KL term of the losses whose
// tokens all weigh the same.
#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <optional>

#include "onset/train/grpo_loss.h"
#include "training_fixtures.h"

namespace onset {
namespace {

const std::map<std::string, GrpoLossType> types{{"grpo", GrpoLossType::grpo},
                                                {"bnpo", GrpoLossType::bnpo},
                                                {"dapo", GrpoLossType::dapo},
                                                {"dr_grpo", GrpoLossType::dr_grpo}};

class GrpoFixtures : public testing::TrainingFixtures {
 protected:
  void SetUp() override { data_ = read("data_grpo.json"); }

  // A rollout's groups as the reference cut them into micro-batches.
  [[nodiscard]] std::vector<GrpoCompletions> micro_batches(const Json& run, std::size_t generation,
                                                           const Json& old_logps) const {
    const bool together = run.at("case").at("one_micro_batch").get<bool>();
    const bool drops = run.at("case").at("mask_truncated").get<bool>();
    std::vector<GrpoCompletions> result;
    std::vector<std::vector<float>> logps;
    std::size_t group_index = 0;
    for (const Json& group : data_.at(generation)) {
      if (result.empty() || !together) {
        result.emplace_back();
        logps.emplace_back();
      }
      GrpoCompletions& batch = result.back();
      for (std::size_t i = 0; i < group.at("completions").size(); ++i) {
        const Json& completion = group.at("completions").at(i);
        batch.lengths.push_back(static_cast<std::int64_t>(completion.size()));
        const bool ended = completion.back().get<int>() == 1;  // the end token's id
        batch.counted.push_back(drops && !ended ? 0 : 1);
        batch.advantages.push_back(
            run.at("advantages").at(generation).at(group_index).at(i).get<double>());
        for (std::size_t t = 0; t < completion.size(); ++t) {
          logps.back().push_back(stored(old_logps, generation, group_index, i, t));
        }
      }
      ++group_index;
    }
    for (std::size_t m = 0; m < result.size(); ++m) {
      result[m].logps = result[m].old_logps = at::tensor(logps[m]);
    }
    return result;
  }

  Json data_;

 private:
  // Runs without stored values have others in the second rollout; all that matters there is that
  // old and new ones are equal.
  [[nodiscard]] static float stored(const Json& old_logps, std::size_t generation,
                                    std::size_t group, std::size_t completion, std::size_t token) {
    const Json& row = old_logps.at(generation).at(group).at(completion);
    return token < row.size() ? row.at(token).get<float>() : -1.0F;
  }
};

TEST_F(GrpoFixtures, TheFirstLossAfterEachRolloutFollowsFromAdvantagesLengthsAndMeanKl) {
  int compared = 0;
  for (const std::string model : {"llama", "qwen3"}) {
    const Json file = read("grpo_" + model + ".json");
    const auto inner = file.at("hyper").at("inner").get<std::size_t>();
    ASSERT_EQ(file.at("runs").size(), 26U);
    for (const Json& run : file.at("runs")) {
      SCOPED_TRACE(model + " " + run.at("case").dump());
      const GrpoLossOptions options{
          .type = types.at(run.at("case").at("type").get<std::string>()),
          .epsilon_low = run.at("case").at("eps_low").get<double>(),
          .epsilon_high = run.at("case").at("eps_high").get<double>(),
          .max_completion_length = file.at("hyper").at("max_completion").get<std::int64_t>()};
      const auto beta = run.at("case").at("beta").get<double>();
      const Json& old_logps =
          run.contains("old_logps") ? run.at("old_logps") : file.at("runs").at(0).at("old_logps");
      for (std::size_t generation = 0; generation < data_.size(); ++generation) {
        const Json& step = run.at("steps").at(generation * inner);
        const auto batches = micro_batches(run, generation, old_logps);
        GrpoWindow window{.micro_batches = static_cast<double>(batches.size())};
        for (const GrpoCompletions& batch : batches) {
          window.completions += static_cast<double>(batch.lengths.size());
          window.tokens += static_cast<double>(counted_tokens(batch));
        }
        GrpoTotals totals;
        for (const GrpoCompletions& batch : batches) {
          totals += grpo_loss(batch, options, window).totals;
        }
        EXPECT_EQ(totals.tokens, step.at("tokens").get<double>());
        EXPECT_NEAR(totals.ratio_error(), 0, 1e-12);
        EXPECT_EQ(totals.clip_fraction(), step.at("clip_fraction").get<double>());
        EXPECT_NEAR(totals.nearest_ratio_to_clip_bound,
                    step.at("nearest_ratio_to_clip_bound").get<double>(), 1e-7);
        const bool tokens_weigh_the_same =
            options.type == GrpoLossType::dapo ||
            (options.type == GrpoLossType::bnpo && batches.size() == 1);
        const bool has_no_kl = generation == 0 || beta == 0;
        if (!has_no_kl && !tokens_weigh_the_same) continue;
        const double kl = has_no_kl ? 0 : beta * step.at("mean_kl").get<double>();
        EXPECT_NEAR(totals.loss + kl, step.at("loss").get<double>(),
                    10 * run.at("noise_f32_vs_f64").at("loss").get<double>() + 1e-6);
        ++compared;
      }
    }
  }
  // 26 first rollouts, and of the second ones dapo's ten (one with beta 0) and bnpo's single one.
  EXPECT_EQ(compared, 2 * (26 + 10 + 1));
}

}  // namespace
}  // namespace onset
