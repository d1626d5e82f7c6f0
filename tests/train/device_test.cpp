// Training on another device than the CPU: the same curves, checkpoints and files.
#include <c10/core/InferenceMode.h>

#include "onset/train/checkpoint_folders.h"
#include "onset/train/dpo.h"
#include "onset/train/peft.h"
#include "onset/train/sft.h"
#include "train/lora_support.h"
#include "train/run_support.h"

namespace onset::testing {
namespace {

std::vector<PackedRow> small_rows() {
  std::vector<PackedRow> rows;
  for (std::int64_t r = 0; r < 8; ++r) {
    SftExample example;
    for (std::int64_t t = 0; t < 6 + r % 5; ++t) {
      example.ids.push_back(3 + (r * 31 + t * t * 7) % 200);
      example.trained.push_back(t > 1 ? 1 : 0);
    }
    rows.push_back({example});
  }
  return rows;
}

TrainerOptions small_options(std::int64_t steps) {
  TrainerOptions options;
  options.schedule = {.learning_rate = 1e-3, .total_steps = steps};
  options.optimizer.weight_decay = 0.01;
  return options;
}

const SftOptions sft_options{.window = {.batch = 2, .micro_batches = 2}};

void expect_same_curve(const std::vector<Metrics>& found, const std::vector<Metrics>& expected,
                       double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t step = 0; step < found.size(); ++step) {
    for (const char* name : {"loss", "grad_norm"}) {
      const double value = value_of(expected[step], name);
      EXPECT_NEAR(value_of(found[step], name), value, tolerance * (1 + std::abs(value)))
          << name << " at step " << step;
    }
  }
}

class FarTraining : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::filesystem::path folder() {
    return onset::testing::data("models/" + std::string(GetParam()));
  }
};

const Json mask{{"k", 8}, {"first_layer", 1}, {"mode", "recompute"}};

// Everything is trained, under a mask, with and without blocks that are computed again. A trained
// head goes through its own part of the loss on the CPU, and through plain operations elsewhere.
TEST_P(FarTraining, OfAllWeightsGivesTheCurveOfTheCpu) {
  for (const bool recompute : {false, true}) {
    const auto curve = [&](const Device& device) {
      FullPolicy full(folder(), mask, Compute::f32, recompute, device);
      const Ranks alone;
      SftObjective objective(full.policy, small_rows(), {}, sft_options, alone);
      return run_all(full.policy, objective, small_options(4));
    };
    expect_same_curve(curve(far_device()), curve({}), 2e-5);
  }
}

// Of bfloat16 products, which both devices round alike but sum in another order.
TEST_P(FarTraining, InBfloat16StaysNearTheCpu) {
  const auto curve = [&](const Device& device) {
    FullPolicy full(folder(), nullptr, Compute::bf16, false, device);
    const Ranks alone;
    SftObjective objective(full.policy, small_rows(), {}, sft_options, alone);
    return run_all(full.policy, objective, small_options(3));
  };
  expect_same_curve(curve(far_device()), curve({}), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, FarTraining,
                         ::testing::Values("llama", "gemma2", "qwen3_moe", "deepseek_v2"),
                         [](const auto& parameter) { return std::string(parameter.param); });

struct LoraRun {
  explicit LoraRun(const Device& device)
      : model(Model::open(onset::testing::data("models/llama_gguf/q4_1.gguf"),
                          {.residency = Residency::resident, .device = device})),
        adapter(model.decoder_to_change(), config(),
                new_lora(model.decoder_to_change(), config(), 5), /*trains=*/true),
        policy(model, adapter.parameters(), [this] { adapter.refresh(); },
               {.dropout = adapter.dropout()}),
        objective(policy, small_rows(), {}, sft_options, alone) {}

  static LoraConfig config() {
    LoraConfig lora;
    lora.rank = 4;
    lora.dropout = 0.1;
    lora.all_linear = true;
    lora.modules_to_save = {"norm", "embed_tokens"};
    return lora;
  }

  Model model;
  LoraAdapter adapter;
  Policy policy;
  const Ranks alone;
  SftObjective objective;
};

// With dropout, which draws the same masks everywhere, on quantised weights.
TEST(FarLora, GivesTheCurveOfTheCpuAndTheSameFiles) {
  LoraRun here({});
  LoraRun far(far_device());
  expect_same_curve(run_all(far.policy, far.objective, small_options(4)),
                    run_all(here.policy, here.objective, small_options(4)), 2e-5);
  const TemporaryFolder folder;
  write_peft(folder.path() / "far", far.adapter);
  Model fresh = Model::open(onset::testing::data("models/llama_gguf/q4_1.gguf"));
  const PeftAdapter read = read_peft(fresh.decoder_to_change(), folder.path() / "far");
  ASSERT_EQ(read.tensors.adapted.size(), here.adapter.tensors().adapted.size());
  for (std::size_t i = 0; i < read.tensors.adapted.size(); ++i) {
    const AdaptedModule& expected = here.adapter.tensors().adapted[i];
    EXPECT_TRUE(at::allclose(read.tensors.adapted[i].up, expected.up, 1e-3, 2e-5)) << expected.name;
  }
  // An adapter that was read works there too.
  LoraAdapter attached(fresh.decoder_to_change(), read.config, read.tensors, /*trains=*/false);
  Model again =
      Model::open(onset::testing::data("models/llama_gguf/q4_1.gguf"), {.device = far_device()});
  LoraAdapter attached_there(again.decoder_to_change(), read.config, read.tensors, false);
  const c10::InferenceMode inference;
  EXPECT_TRUE(
      at::allclose(logits_of(again, some_ids).cpu(), logits_of(fresh, some_ids), 1e-4, 1e-4));
}

// Stopped in between and gone on from the checkpoint: the last bit is the same.
TEST(FarTrainer, GoesOnFromACheckpoint) {
  constexpr std::int64_t steps = 4;
  const Ranks alone;
  const auto weights = [&](FullPolicy& full) { return values_of(full.policy.trained()); };
  const auto model = onset::testing::data("models/llama");
  FullPolicy whole(model, mask, Compute::f32, false, far_device());
  SftObjective objective(whole.policy, small_rows(), {}, sft_options, alone);
  Trainer(whole.policy, objective, alone, small_options(steps), {}).run();

  const TemporaryFolder folder;
  TrainerOptions options = small_options(steps);
  options.output = folder.path();
  {
    FullPolicy first(model, mask, Compute::f32, false, far_device());
    SftObjective part(first.policy, small_rows(), {}, sft_options, alone);
    TrainerCalls calls;
    std::int64_t made = 0;
    calls.updated = [&](std::int64_t step, const Metrics&) { made = step; };
    calls.should_stop = [&] { return made == 2; };
    EXPECT_TRUE(Trainer(first.policy, part, alone, options, calls).run().stopped);
  }
  FullPolicy second(model, mask, Compute::f32, false, far_device());
  SftObjective rest(second.policy, small_rows(), {}, sft_options, alone);
  Trainer trainer(second.policy, rest, alone, options, {});
  trainer.resume(checkpoint_path(folder.path(), 2));
  EXPECT_EQ(trainer.run().step, steps);
  const auto expected = weights(whole);
  for (const auto& [name, value] : weights(second)) {
    EXPECT_TRUE(at::equal(value, expected.at(name))) << name;
  }
}

}  // namespace
}  // namespace onset::testing
