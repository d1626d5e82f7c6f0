// Runs of GRPO with given completions and rewards against curves made with plain PyTorch.
#include "onset/train/grpo.h"
#include "onset/train/grpo_data.h"
#include "train/data_support.h"
#include "train/run_support.h"

namespace onset {
namespace {

using testing::FullPolicy;
using testing::on_all_devices;
using testing::OnDevice;
using testing::suffix_of;
using testing::TrainingFixtures;

GrpoLossType type_of(const std::string& name) {
  if (name == "bnpo") return GrpoLossType::bnpo;
  if (name == "dapo") return GrpoLossType::dapo;
  return name == "dr_grpo" ? GrpoLossType::dr_grpo : GrpoLossType::grpo;
}

GrpoOptions options_of(const Json& run, const Json& hyper) {
  const Json& facts = run.at("case");
  const auto group = hyper.at("group").get<std::int64_t>();
  const auto prompts = hyper.at("prompts").get<std::int64_t>();
  const bool one = facts.at("one_micro_batch").get<bool>();
  GrpoOptions options;
  options.window = {.batch = one ? prompts * group : group, .micro_batches = one ? 1 : prompts};
  options.group = group;
  options.iterations = hyper.at("inner").get<std::int64_t>();
  options.loss = {.type = type_of(facts.at("type").get<std::string>()),
                  .epsilon_low = facts.at("eps_low").get<double>(),
                  .epsilon_high = facts.at("eps_high").get<double>(),
                  .beta = facts.at("beta").get<double>(),
                  .kl_times_ratio = facts.at("kl_times_ratio").get<bool>(),
                  .max_completion_length = hyper.at("max_completion").get<std::int64_t>()};
  options.advantages = {
      .scale = facts.at("std_norm").get<bool>() ? RewardScale::group : RewardScale::none,
      .epsilon = hyper.at("adv_eps").get<double>()};
  options.mask_truncated = facts.at("mask_truncated").get<bool>();
  return options;
}

class GrpoCurves : public TrainingFixtures,
                   public ::testing::WithParamInterface<OnDevice<const char*>> {};

TEST_P(GrpoCurves, EqualTheReference) {
  const Json file = read(std::string("grpo_") + GetParam().value + ".json");
  const Json& hyper = file.at("hyper");
  const auto folder = onset::testing::data("training/" + file.at("model").get<std::string>());
  const auto data = read_grpo_data(onset::testing::data("training/data_grpo.json"),
                                   {.data = testing::id_options(512)});
  EXPECT_EQ(file.at("runs").size(), 26U);
  for (const Json& run : file.at("runs")) {
    SCOPED_TRACE(run.at("case").dump() + run.at("wemask").dump());
    const Device& device = GetParam().device;
    FullPolicy full(folder, run.at("wemask"), Compute::f32, false, device);
    FullPolicy reference(folder, run.at("wemask"), Compute::f32, false, device);
    const Ranks alone;
    GrpoObjective objective(full.policy, &reference.policy, nullptr, data.prompts, {}, {},
                            options_of(run, hyper), alone);
    const auto curve = testing::run_all(full.policy, objective,
                                        testing::options_of(hyper, 4, ScheduleShape::constant));
    testing::expect_curve(curve, run,
                          {{"loss", "loss"},
                           {"grad_norm", "grad_norm"},
                           {"kl", "mean_kl"},
                           {"clip_ratio/region_mean", "clip_fraction"}});
    double sum = 0;
    double squares = 0;
    for (const Parameter& parameter : full.policy.trained()) {
      const at::Tensor wide = parameter.value.detach().to(at::kDouble);
      sum += wide.sum().item<double>();
      squares += wide.square().sum().item<double>();
    }
    EXPECT_NEAR(sum, run.at("final_checksum_all").at(0).get<double>(), 1e-3);
    EXPECT_NEAR(squares, run.at("final_checksum_all").at(1).get<double>(), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GrpoCurves,
                         ::testing::ValuesIn(on_all_devices<const char*>({"llama", "qwen3"})),
                         [](const auto& instance) {
                           return std::string(instance.param.value) +
                                  suffix_of(instance.param.device);
                         });

}  // namespace
}  // namespace onset
