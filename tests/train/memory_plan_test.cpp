// The estimate of what a run needs, against sums made by hand.
#include "onset/train/memory_plan.h"

#include <gtest/gtest.h>

#include "onset/base/error.h"
#include "support/support.h"

namespace onset::testing {
namespace {

constexpr std::int64_t million = 1000000;

// One block of 64 numbers, 4 heads of 16, 2 for keys and values, an FFN of 128, 1,000 tokens.
ModelConfig small_config() {
  ModelConfig config;
  config.hidden = 64;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.ffn = 128;
  config.vocabulary = 1000;
  config.layers.resize(2);
  return config;
}

std::int64_t part(const MemoryPlan& plan, const std::string& name) {
  for (const auto& [what, bytes] : plan.parts) {
    if (what == name) return bytes;
  }
  ADD_FAILURE() << "no part " << name;
  return -1;
}

TrainSettings settings_of(bool lora, bool bf16) {
  TrainSettings settings;
  settings.lora.use_peft = lora;
  settings.trainer.bf16 = bf16;
  settings.trainer.per_device_train_batch_size = 3;
  return settings;
}

TEST(MemoryPlan, CountsMastersGradientsAndMomentsOfAllWeights) {
  const MemoryFacts facts{
      .weights = 10 * million, .trained = 10 * million, .stored_bytes = 20 * million, .longest = 7};
  const MemoryPlan plain = memory_plan(settings_of(false, false), small_config(), facts);
  EXPECT_EQ(part(plain, "weights"), 40 * million);
  EXPECT_EQ(part(plain, "gradients"), 40 * million);
  EXPECT_EQ(part(plain, "moments"), 80 * million);
  // 4 D + 2 heads + 2 kv heads + 2 F numbers, of 21 tokens and 2 blocks; 6 D + 5 F of one.
  EXPECT_EQ(part(plain, "activations"), 4 * 21 * (2 * (256 + 128 + 64 + 256) + 384 + 640));
  MemoryPlan halves = memory_plan(settings_of(false, true), small_config(), facts);
  EXPECT_EQ(part(halves, "weights"), 60 * million);
  EXPECT_EQ(part(halves, "moments"), 80 * million);
  // 2 D + heads + 2 kv heads in 4 bytes, 2 D + heads + 2 F in 2.
  EXPECT_EQ(part(halves, "activations"),
            21 * (2 * (4 * (128 + 64 + 64) + 2 * (128 + 64 + 256)) + 4 * (384 + 640)));
  MemoryFacts rounding = facts;
  rounding.rounds_in_products = true;
  TrainSettings settings = settings_of(false, true);
  EXPECT_EQ(part(memory_plan(settings, small_config(), rounding), "weights"), 40 * million);
  // Sampling reads them few rows at a time.
  settings.method = TrainMethod::grpo;
  EXPECT_EQ(part(memory_plan(settings, small_config(), rounding), "weights"), 60 * million);
}

TEST(MemoryPlan, GradientsTakeThePlaceOfActivations) {
  const MemoryFacts facts{.weights = 10 * million, .trained = 10 * million, .longest = 7};
  TrainSettings settings = settings_of(false, false);
  const MemoryPlan plan = memory_plan(settings, small_config(), facts);
  EXPECT_EQ(plan.in_turn, part(plan, "activations"));
  std::int64_t sum = 0;
  for (const auto& [what, bytes] : plan.parts) sum += bytes;
  EXPECT_EQ(plan.total(), sum - plan.in_turn);
  // The gradients of one micro-batch stand while the next is computed.
  settings.trainer.gradient_accumulation_steps = 2;
  EXPECT_EQ(memory_plan(settings, small_config(), facts).in_turn, 0);
  EXPECT_EQ(memory_plan(settings_of(true, false), small_config(), facts).in_turn, 0);
}

TEST(MemoryPlan, DropoutKeepsAByteANumber) {
  TrainSettings settings = settings_of(true, false);
  const auto activations = [&](double dropout) {
    settings.lora.dropout = dropout;
    return part(memory_plan(settings, small_config(), {.longest = 7}), "activations");
  };
  // Of the inputs of q, k, v, gate and up, of o and of down, in two blocks.
  EXPECT_EQ(activations(0.1) - activations(0.0), 21 * 2 * (5 * 64 + 64 + 128));
}

TEST(MemoryPlan, AnAdapterLeavesTheModelAsItIsStored) {
  MemoryFacts facts{
      .weights = 10 * million, .trained = million, .stored_bytes = 6 * million, .longest = 7};
  EXPECT_EQ(part(memory_plan(settings_of(true, false), small_config(), facts), "weights"),
            10 * million);
  // Rounded to bfloat16 beside what the file holds, unless that is what it holds.
  EXPECT_EQ(part(memory_plan(settings_of(true, true), small_config(), facts), "weights"),
            24 * million);
  // Sampling reads what the file holds, too.
  TrainSettings grpo = settings_of(true, true);
  grpo.method = TrainMethod::grpo;
  EXPECT_EQ(part(memory_plan(grpo, small_config(), facts), "weights"), 30 * million);
  facts.stored_bytes = 20 * million;
  facts.stored_as_bf16 = 10 * million;
  EXPECT_EQ(part(memory_plan(settings_of(true, true), small_config(), facts), "weights"),
            24 * million);
}

TEST(MemoryPlan, RecomputedBlocksKeepTheirInputs) {
  TrainSettings settings = settings_of(true, false);
  settings.trainer.gradient_checkpointing = true;
  const MemoryPlan plan = memory_plan(settings, small_config(), {.longest = 7});
  EXPECT_EQ(part(plan, "activations"), 4 * 21 * (2 * 64 + 704 + 1024));
}

TEST(MemoryPlan, WhatCannotFitIsRefusedWithTheSettingThatWould) {
  TrainSettings settings = settings_of(true, false);
  settings.trainer.per_device_train_batch_size = 100000;
  const MemoryFacts facts{.longest = 1000};
  const auto refusal = [&](std::optional<std::int64_t> available) {
    const MemoryPlan plan = memory_plan(settings, small_config(), facts);
    return error_of([&] { refuse_what_cannot_fit(plan, settings, facts, available); });
  };
  EXPECT_NE(refusal(1000 * million).find("set gradient_checkpointing"), std::string::npos);
  settings.trainer.gradient_checkpointing = true;
  EXPECT_NE(refusal(1000 * million).find("per_device_train_batch_size smaller"), std::string::npos);
  settings.trainer.per_device_train_batch_size = 1;
  const MemoryPlan plan = memory_plan(settings, small_config(), facts);
  EXPECT_NO_THROW(refuse_what_cannot_fit(plan, settings, facts, plan.total()));
  EXPECT_NO_THROW(refuse_what_cannot_fit(plan, settings, facts, std::nullopt));
  EXPECT_THROW(refuse_what_cannot_fit(plan, settings, facts, plan.total() - 1), Error);

  TrainSettings full = settings_of(false, false);
  const MemoryFacts large{.weights = 500 * million, .trained = 500 * million};
  const MemoryPlan whole = memory_plan(full, small_config(), large);
  EXPECT_NE(error_of([&] {
              refuse_what_cannot_fit(whole, full, large, 1000 * million);
            }).find("set use_peft"),
            std::string::npos);
}

TEST(MemoryPlan, AMicroBatchHoldsNoMoreThanThereIs) {
  const auto activations = [](TrainSettings settings, std::int64_t examples) {
    settings.trainer.per_device_train_batch_size = 1000000000;
    settings.grpo.loss.max_completion_length = 13;
    return part(memory_plan(settings, small_config(), {.longest = 7, .examples = examples}),
                "activations");
  };
  TrainSettings settings = settings_of(true, false);
  // 4 bytes, 2 blocks of 704 numbers a token and 1,024 of one; 3 rows of 7 tokens, pairs of such.
  constexpr std::int64_t token = 4 * (2 * 704 + 1024);
  EXPECT_EQ(activations(settings, 3), token * 3 * 7);
  settings.method = TrainMethod::dpo;
  EXPECT_EQ(activations(settings, 3), token * 2 * 3 * 7);
  // 5 completions of each of 3 prompts.
  settings.method = TrainMethod::grpo;
  settings.grpo.num_generations = 5;
  EXPECT_EQ(activations(settings, 3), token * 15 * (7 + 13));
}

TEST(MemoryPlan, ALongRowIsNoMatterOfTheBatch) {
  TrainSettings settings = settings_of(true, false);
  settings.trainer.gradient_checkpointing = true;
  settings.trainer.per_device_train_batch_size = 8;
  const MemoryFacts one{.longest = 10 * million, .examples = 1};
  const auto hint = [&] {
    const MemoryPlan plan = memory_plan(settings, small_config(), one);
    return error_of([&] { refuse_what_cannot_fit(plan, settings, one, 1000 * million); });
  };
  EXPECT_NE(hint().find("make max_length smaller"), std::string::npos) << hint();
  settings.method = TrainMethod::pretrain;
  EXPECT_NE(hint().find("make block_size smaller"), std::string::npos) << hint();
}

TEST(MemoryPlan, FactsAreThoseOfTheFile) {
  const auto checkpoint = Checkpoint::open(data("training/llama_tiny"));
  const MemoryFacts facts = memory_facts(checkpoint);
  EXPECT_EQ(facts.stored_bytes, 4 * facts.weights);
  EXPECT_EQ(facts.stored_as_bf16, 0);
}

TEST(MemoryPlan, WeightsThatCannotFitAreRefusedBeforeTheyAreMade) {
  // 16 bytes each.
  EXPECT_NO_THROW(refuse_an_adapter_that_cannot_fit(1e6, 16 * million));
  EXPECT_NO_THROW(refuse_an_adapter_that_cannot_fit(1e30, std::nullopt));
  const std::string adapter =
      error_of([] { refuse_an_adapter_that_cannot_fit(1e6 + 1, 16 * million); });
  EXPECT_NE(adapter.find("an adapter of 1,000,001 weights"), std::string::npos) << adapter;
  EXPECT_NE(adapter.find("make lora_r smaller"), std::string::npos) << adapter;
  const std::string model = error_of([] { refuse_a_new_model_that_cannot_fit(1e30, million); });
  EXPECT_NE(model.find("make hidden_size or num_hidden_layers smaller"), std::string::npos)
      << model;
  // What the settings of the method have no word for is not advised.
  TrainSettings pretrain = settings_of(false, false);
  pretrain.method = TrainMethod::pretrain;
  const MemoryFacts large{.weights = 500 * million, .trained = 500 * million};
  const MemoryPlan plan = memory_plan(pretrain, small_config(), large);
  const std::string hint =
      error_of([&] { refuse_what_cannot_fit(plan, pretrain, large, 1000 * million); });
  EXPECT_EQ(hint.find("use_peft"), std::string::npos) << hint;
  EXPECT_NE(hint.find("make hidden_size"), std::string::npos) << hint;
}

}  // namespace
}  // namespace onset::testing
