// Runs of the small models of the training references. Tensors that it gives lie on the CPU.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "onset/model/decoder.h"
#include "onset/model/parameters.h"
#include "onset/train/policy.h"
#include "onset/train/trainer.h"
#include "onset/wemask/mask.h"
#include "support/test_devices.h"
#include "train/training_fixtures.h"

namespace onset::testing {

// A model of which everything is trained.
struct FullPolicy {
  explicit FullPolicy(const std::filesystem::path& folder, const Json& wemask = nullptr,
                      Compute compute = Compute::f32, bool recompute = false,
                      const Device& device = {})
      : model(Model::open(
            folder, {.compute = compute, .residency = Residency::resident, .device = device})),
        parameters(model.decoder_to_change()),
        policy(
            model, parameters.all(), [this] { parameters.refresh(); }, options_of(model, wemask)) {
    model.decoder_to_change().recompute_blocks(recompute);
  }

  static PolicyOptions options_of(const Model& model, const Json& wemask) {
    PolicyOptions options;
    if (wemask.is_null()) return options;
    options.mask = make_mask(model, {.k = wemask.at("k").get<std::int64_t>(),
                                     .from_layer = wemask.at("first_layer").get<std::int64_t>()});
    options.mask_update =
        wemask.at("mode") == "recompute" ? MaskUpdate::recompute : MaskUpdate::frozen;
    return options;
  }

  Model model;
  Parameters parameters;
  Policy policy;
};

// The optimizer and the schedule that a reference's `hyper` describe.
inline TrainerOptions options_of(const Json& hyper, std::int64_t steps, ScheduleShape shape) {
  TrainerOptions options;
  options.schedule = {.shape = shape,
                      .learning_rate = hyper.at("lr").get<double>(),
                      .warmup_steps = hyper.value("warmup", std::int64_t{0}),
                      .total_steps = steps};
  options.optimizer = {.beta1 = hyper.at("betas").at(0).get<double>(),
                       .beta2 = hyper.at("betas").at(1).get<double>(),
                       .epsilon = hyper.at("eps").get<double>(),
                       .weight_decay = hyper.at("wd").get<double>(),
                       .decays = WeightDecay::all};
  options.max_grad_norm = hyper.at("clip").get<double>();
  return options;
}

inline double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return std::nan("");
}

// The metrics of every update of a run.
inline std::vector<Metrics> run_all(Policy& policy, Objective& objective, TrainerOptions options,
                                    const Ranks& ranks = {}) {
  std::vector<Metrics> curve;
  TrainerCalls calls;
  calls.updated = [&](std::int64_t, const Metrics& metrics) { curve.push_back(metrics); };
  Trainer(policy, objective, ranks, std::move(options), std::move(calls)).run();
  return curve;
}

// Our metric beside the name in the reference's steps.
using MetricNames = std::vector<std::pair<std::string, std::string>>;

// Within 10 times the noise that the reference gives, and a millionth.
inline void expect_curve(const std::vector<Metrics>& curve, const Json& run,
                         const MetricNames& names) {
  ASSERT_EQ(curve.size(), run.at("steps").size());
  for (std::size_t step = 0; step < curve.size(); ++step) {
    const Json& expected = run.at("steps").at(step);
    for (const auto& [ours, theirs] : names) {
      const auto value = expected.at(theirs).get<double>();
      const double noise = run.at("noise_f32_vs_f64").value(theirs, 0.0);
      EXPECT_NEAR(value_of(curve[step], ours), value, 10 * noise + 1e-6 * std::abs(value) + 1e-9)
          << ours << " at step " << step;
    }
  }
}

// Sums and sums of squares of each tensor, as the references give them.
inline void expect_checksums(const std::map<std::string, at::Tensor>& tensors,
                             const Json& checksums, double tolerance) {
  ASSERT_EQ(tensors.size(), checksums.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(checksums.contains(name)) << name;
    const at::Tensor wide = tensor.detach().to(at::kDouble);
    const auto sum = checksums.at(name).at(0).get<double>();
    const auto squares = checksums.at(name).at(1).get<double>();
    // Errors of single numbers are of random signs.
    const double slack = tolerance * std::sqrt(squares * static_cast<double>(wide.numel()));
    EXPECT_NEAR(wide.sum().item<double>(), sum, slack + 1e-7) << name;
    EXPECT_NEAR(wide.square().sum().item<double>(), squares, 4 * tolerance * squares + 1e-8)
        << name;
  }
}

inline std::map<std::string, at::Tensor> values_of(std::span<const Parameter> parameters) {
  std::map<std::string, at::Tensor> values;
  for (const Parameter& parameter : parameters) values[parameter.name] = parameter.value.cpu();
  return values;
}

inline std::map<std::string, at::Tensor> gradients_of(std::span<const Parameter> parameters) {
  std::map<std::string, at::Tensor> values;
  for (const Parameter& parameter : parameters)
    values[parameter.name] = parameter.value.grad().cpu();
  return values;
}

}  // namespace onset::testing
