// Runs of LoRA against curves and adapters made with PEFT.
#include <algorithm>

#include "onset/train/lora.h"
#include "onset/train/peft.h"
#include "onset/train/sft.h"
#include "onset/train/sft_data.h"
#include "train/data_support.h"
#include "train/run_support.h"

namespace onset {
namespace {

using testing::on_all_devices;
using testing::OnDevice;
using testing::suffix_of;
using testing::TrainingFixtures;

// The references name tensors as a model in memory does: "..lora_A.default.weight".
std::map<std::string, at::Tensor> as_peft_names(std::map<std::string, at::Tensor> tensors) {
  std::map<std::string, at::Tensor> renamed;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = name.rfind(".weight");
    renamed[name.substr(0, end) + ".default.weight"] = tensor;
  }
  return renamed;
}

class LoraCurves : public TrainingFixtures,
                   public ::testing::WithParamInterface<OnDevice<const char*>> {};

TEST_P(LoraCurves, EqualTheReference) {
  const std::string name = std::string("sft_lora_") + GetParam().value;
  const Json run = read(name + ".json");
  const Json& hyper = run.at("hyper");
  Model model = Model::open(
      onset::testing::data("training/" + run.at("model").get<std::string>()),
      {.compute = Compute::f32, .residency = Residency::resident, .device = GetParam().device});
  Decoder& decoder = model.decoder_to_change();
  PeftAdapter read = read_peft(decoder, onset::testing::data("training/" + name + "/initial"));
  LoraAdapter adapter(decoder, std::move(read.config), std::move(read.tensors), /*trains=*/true);
  Policy policy(model, adapter.parameters(), [&] { adapter.refresh(); },
                {.dropout = adapter.dropout()});
  const Ranks alone;
  SftObjective objective(policy,
                         rows_of(read_sft_data(onset::testing::data("training/data_sft.json"),
                                               {.data = testing::id_options(512)})
                                     .examples),
                         {},
                         {.window = {.batch = hyper.at("micro_batch").get<std::int64_t>(),
                                     .micro_batches = hyper.at("micro").get<std::int64_t>()}},
                         alone);
  const auto curve = testing::run_all(
      policy, objective,
      testing::options_of(hyper, hyper.at("steps").get<std::int64_t>(), ScheduleShape::cosine));
  testing::expect_curve(curve, run,
                        {{"loss", "loss"}, {"grad_norm", "grad_norm"}, {"learning_rate", "lr"}});
  testing::expect_checksums(as_peft_names(testing::values_of(policy.trained())),
                            run.at("final_checksums_sum_sumsq"), 2e-5);

  Model fresh = Model::open(onset::testing::data("training/" + run.at("model").get<std::string>()));
  const PeftAdapter expected =
      read_peft(fresh.decoder_to_change(), onset::testing::data("training/" + name + "/final"));
  ASSERT_EQ(expected.tensors.adapted.size(), adapter.tensors().adapted.size());
  for (const AdaptedModule& module : adapter.tensors().adapted) {
    const auto same =
        std::find_if(expected.tensors.adapted.begin(), expected.tensors.adapted.end(),
                     [&](const AdaptedModule& other) { return other.name == module.name; });
    ASSERT_NE(same, expected.tensors.adapted.end()) << module.name;
    EXPECT_TRUE(at::allclose(module.up.cpu(), same->up, 1e-4, 2e-5)) << module.name;
    EXPECT_TRUE(at::allclose(module.down.cpu(), same->down, 1e-4, 2e-5)) << module.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LoraCurves,
                         ::testing::ValuesIn(on_all_devices<const char*>({"llama", "qwen3"})),
                         [](const auto& instance) {
                           return std::string(instance.param.value) +
                                  suffix_of(instance.param.device);
                         });

}  // namespace
}  // namespace onset
