// Runs of DPO and its variants against curves made with plain PyTorch.
#include "onset/train/dpo.h"
#include "onset/train/dpo_data.h"
#include "train/data_support.h"
#include "train/run_support.h"

namespace onset {
namespace {

using testing::FullPolicy;
using testing::on_all_devices;
using testing::OnDevice;
using testing::suffix_of;
using testing::TrainingFixtures;

const testing::MetricNames metric_names{{"loss", "loss"},
                                        {"grad_norm", "grad_norm"},
                                        {"learning_rate", "lr"},
                                        {"rewards/chosen", "rewards_chosen"},
                                        {"rewards/rejected", "rewards_rejected"},
                                        {"rewards/margins", "margin"},
                                        {"rewards/accuracies", "accuracy"}};

std::vector<Metrics> run_of(FullPolicy& full, const Json& hyper, const DpoLossOptions& loss,
                            std::int64_t steps) {
  const Ranks alone;
  auto pairs = read_dpo_data(onset::testing::data("training/data_dpo.json"),
                             {.data = testing::id_options(512)})
                   .pairs;
  DpoObjective objective(full.policy, std::move(pairs), {},
                         {.window = {.batch = hyper.at("pairs").get<std::int64_t>()}, .loss = loss},
                         alone);
  objective.take_reference(steps);
  return testing::run_all(full.policy, objective,
                          testing::options_of(hyper, steps, ScheduleShape::constant));
}

class DpoCurves : public TrainingFixtures,
                  public ::testing::WithParamInterface<OnDevice<std::string>> {};

TEST_P(DpoCurves, EqualTheReference) {
  const Json run = read("dpo_" + GetParam().value + ".json");
  const Json& hyper = run.at("hyper");
  FullPolicy full(onset::testing::data("training/" + run.at("model").get<std::string>()),
                  run.at("wemask"), Compute::f32, false, GetParam().device);
  const auto curve = run_of(full, hyper, {.beta = hyper.at("beta").get<double>()},
                            hyper.at("steps").get<std::int64_t>());
  EXPECT_NEAR(testing::value_of(curve.at(0), "loss"), std::log(2.0), 1e-6);
  testing::expect_curve(curve, run, metric_names);
  testing::expect_checksums(testing::values_of(full.policy.trained()),
                            run.at("final_checksums_sum_sumsq"), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, DpoCurves,
                         ::testing::ValuesIn(on_all_devices<std::string>(
                             {"llama", "llama_wemask_frozen", "llama_wemask_recompute", "qwen3",
                              "qwen3_wemask_frozen", "qwen3_wemask_recompute"})),
                         [](const auto& instance) {
                           return instance.param.value + suffix_of(instance.param.device);
                         });

class DpoLosses : public TrainingFixtures, public ::testing::WithParamInterface<const char*> {};

// Two steps alone do not show how far rounding moves a number: Adam's first update of a weight
// whose gradient is all rounding goes either way. In float64 the reference's own bounds hold, in
// float32 those of the longer run of the same file.
TEST_P(DpoLosses, TwoStepsEqualTheReference) {
  for (const char* model : {"llama", "qwen3"}) {
    const Json run = read(std::string("dpo_") + model + ".json");
    const Json& hyper = run.at("hyper");
    const std::string name = GetParam();
    DpoLossOptions loss{.beta = hyper.at("beta").get<double>()};
    if (name == "robust") loss.type = DpoLossType::robust;
    if (name == "ipo") loss.type = DpoLossType::ipo;
    if (name == "ipo_sum") loss.type = DpoLossType::ipo_sum;
    if (name == "robust" || name == "sigmoid_label_smoothing") {
      loss.label_smoothing = hyper.at("label_smoothing").get<double>();
    }
    for (const Compute compute : {Compute::f64, Compute::f32}) {
      SCOPED_TRACE(std::string(model) + ", " + std::string(compute_name(compute)));
      Json expected = run.at("other_losses_two_steps").at(name);
      for (const auto& [key, noise] : run.at("noise_f32_vs_f64").items()) {
        Json& own = expected["noise_f32_vs_f64"][key];
        if (compute == Compute::f32) own = std::max(own.get<double>(), noise.get<double>());
      }
      FullPolicy full(onset::testing::data("training/" + run.at("model").get<std::string>()),
                      nullptr, compute);
      testing::expect_curve(run_of(full, hyper, loss, 2), expected, metric_names);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, DpoLosses,
                         ::testing::Values("sigmoid_label_smoothing", "robust", "ipo", "ipo_sum"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace onset
