#include "onset/train/memory_plan.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/device.h"
#include "onset/train/head_parts.h"
#include "onset/train/report_words.h"

namespace onset {
namespace {

constexpr std::int64_t float_bytes = 4;
constexpr std::int64_t half_bytes = 2;
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t program = std::int64_t{250} << 20;  // libtorch and what it keeps
constexpr std::int64_t logit_bytes = float_bytes * logits_at_once;

constexpr const char* smaller_adapter_hint = "make lora_r smaller, or adapt fewer modules";
constexpr const char* smaller_model_hint = "make hidden_size or num_hidden_layers smaller";

void refuse_weights(const std::string& what, double weights, const char* hint,
                    std::optional<std::int64_t> available) {
  constexpr double bytes_each = 16;
  if (!available || weights * bytes_each <= static_cast<double>(*available)) return;
  // Settings may ask for more than any count holds.
  constexpr double countable = 1e15;
  const std::string count = weights < countable
                                ? counted(static_cast<std::int64_t>(weights), "weight")
                                : "more than 10^15 weights";
  const std::string need =
      weights < countable ? "about " + memory_words(static_cast<std::int64_t>(weights * bytes_each))
                          : std::string("more than any machine has");
  throw resource_error(
      str_cat(what, " of ", count, " needs ", need, " for values, gradients and moments, and ",
              memory_words(*available), " are free"),
      hint);
}

std::int64_t ffn_of(const ModelConfig& config, std::int64_t layer) {
  return config.is_mixture(layer) ? config.mixture.chosen * config.mixture.ffn : config.ffn;
}

// Bytes that a block keeps of a token for the backward pass (linear_input.h, layers.h).
std::int64_t block_bytes(const TrainSettings& settings, const ModelConfig& config,
                         std::int64_t layer) {
  const bool adapter = settings.lora.use_peft;
  const bool bf16 = settings.trainer.bf16;
  const std::int64_t queries = config.heads * config.head_dim;
  const std::int64_t keys = config.kv_heads * config.head_dim;
  const std::int64_t ffn = ffn_of(config, layer);
  // Of the norms and of attention, and of the layers that are trained: as the products round them.
  std::int64_t bytes = float_bytes * (2 * config.hidden + queries + 2 * keys);
  if (config.qk_norm != QkNorm::none) bytes += float_bytes * (queries + keys);
  const std::int64_t input_bytes = bf16 && !adapter ? half_bytes : float_bytes;
  bytes += input_bytes * (2 * config.hidden + queries);
  if (config.activation == Activation::silu) {
    bytes += (bf16 ? half_bytes : float_bytes) * 2 * ffn;
  } else {
    bytes += float_bytes * 3 * ffn + input_bytes * ffn;
  }
  // A byte a number says whether dropout left it.
  if (adapter && settings.lora.dropout > 0) bytes += 5 * config.hidden + queries + ffn;
  return bytes;
}

// Bytes of a token: what the blocks keep, and what the largest of them works on.
std::int64_t activation_bytes(const TrainSettings& settings, const ModelConfig& config) {
  std::int64_t sum = 0;
  std::int64_t largest = 0;
  std::int64_t work = 0;
  for (std::int64_t layer = 0; layer < config.layer_count(); ++layer) {
    const std::int64_t block = block_bytes(settings, config, layer);
    sum += block;
    largest = std::max(largest, block);
    work = std::max(work, float_bytes * (6 * config.hidden + 5 * ffn_of(config, layer)));
  }
  if (!settings.trainer.gradient_checkpointing) return sum + work;
  return config.layer_count() * config.hidden * float_bytes + largest + work;
}

// Weights in the type of the products beside what they are made from.
std::int64_t converted_bytes(const TrainSettings& settings, const MemoryFacts& facts, bool on_gpu) {
  if (!settings.trainer.bf16) return 0;
  if (!settings.lora.use_peft) {
    const bool kept = on_gpu || !facts.rounds_in_products || settings.method == TrainMethod::grpo;
    return kept ? half_bytes * facts.weights : 0;
  }
  // Weights in bfloat16 are used where the file is mapped. On a GPU what is not trained stands in
  // the type of the products alone.
  return half_bytes * (facts.weights - (on_gpu ? 0 : facts.stored_as_bf16));
}

// What an adapter's base is read from.
std::int64_t base_bytes(const TrainSettings& settings, const MemoryFacts& facts, bool on_gpu) {
  if (on_gpu) return settings.trainer.bf16 ? 0 : float_bytes * facts.weights;
  const bool converted = settings.trainer.bf16 && settings.method != TrainMethod::grpo;
  return converted ? half_bytes * facts.stored_as_bf16 : facts.stored_bytes;
}

// So many rows, pairs or completions, or all that there are where those are fewer.
std::int64_t at_most_all(std::int64_t rows, const TrainSettings& settings,
                         const MemoryFacts& facts) {
  if (facts.examples == 0) return rows;
  const bool groups = settings.method == TrainMethod::grpo;
  const std::int64_t each = groups ? settings.grpo.num_generations : 1;
  return std::min(rows, facts.examples * each);
}

std::int64_t micro_batch_rows(const TrainSettings& settings, const MemoryFacts& facts) {
  return at_most_all(settings.trainer.per_device_train_batch_size, settings, facts);
}

// Tokens of a micro-batch at their most.
std::int64_t micro_batch_tokens(const TrainSettings& settings, const MemoryFacts& facts) {
  const std::int64_t rows = micro_batch_rows(settings, facts);
  const std::int64_t longest = facts.longest;
  switch (settings.method) {
    case TrainMethod::sft:
    case TrainMethod::pretrain:
      return rows * longest;
    case TrainMethod::dpo:
      return 2 * rows * longest;
    case TrainMethod::grpo:
      break;
  }
  return rows * (longest + settings.grpo.loss.max_completion_length);
}

}  // namespace

std::int64_t MemoryPlan::total() const {
  std::int64_t sum = 0;
  for (const auto& part : parts) sum += part.second;
  return sum - in_turn;
}

std::string MemoryPlan::text() const {
  std::string list;
  for (const auto& [what, bytes] : parts) {
    if (bytes == 0) continue;
    list += str_cat(list.empty() ? "" : ", ", what, " ", memory_words(bytes));
  }
  return str_cat("Memory", device == "cpu" ? "" : " of " + device,
                 ", estimated: ", memory_words(total()), " (", list,
                 in_turn >= mebibyte ? str_cat("; less ", memory_words(in_turn),
                                               ", which gradients take over from activations")
                                     : "",
                 ").");
}

MemoryFacts memory_facts(const Checkpoint& checkpoint) {
  MemoryFacts facts{.weights = parameter_count(checkpoint)};
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    facts.stored_bytes += static_cast<std::int64_t>(tensor.bytes);
    if (tensor.dtype == DType::bf16) facts.stored_as_bf16 += tensor.elements();
  }
  return facts;
}

MemoryPlan memory_plan(const TrainSettings& settings, const ModelConfig& config,
                       const MemoryFacts& facts) {
  const bool adapter = settings.lora.use_peft;
  const bool on_gpu = parse_device(settings.trainer.device).kind != DeviceKind::cpu;
  const std::int64_t base = base_bytes(settings, facts, on_gpu);
  const std::int64_t converted = converted_bytes(settings, facts, on_gpu);
  const std::int64_t weights = (adapter ? base : float_bytes * facts.weights) + converted;
  const std::int64_t head = config.vocabulary * config.hidden;
  const std::int64_t turned = (settings.trainer.bf16 ? half_bytes : float_bytes) * head;
  const std::int64_t gradients = float_bytes * facts.trained;
  const std::int64_t activations =
      micro_batch_tokens(settings, facts) * activation_bytes(settings, config);
  MemoryPlan plan;
  plan.device = settings.trainer.device;
  plan.parts.emplace_back("weights", weights + (adapter ? gradients : 0));
  plan.parts.emplace_back("gradients", gradients);
  plan.parts.emplace_back("moments", 2 * gradients);
  plan.parts.emplace_back("activations", activations);
  // The embedding's gradient stands beside the head's, which is a part of the gradients.
  plan.parts.emplace_back("head", logit_bytes + turned + (adapter ? 0 : float_bytes * head));
  if (!adapter && settings.trainer.gradient_accumulation_steps == 1) {
    plan.in_turn = std::min(activations, std::max<std::int64_t>(0, gradients - float_bytes * head));
  }
  if (settings.method == TrainMethod::grpo) {
    // Keys and values of the completions that are sampled at a time.
    const std::int64_t rows = at_most_all(
        settings.trainer.per_device_train_batch_size * settings.trainer.gradient_accumulation_steps,
        settings, facts);
    plan.parts.emplace_back(
        "rollouts", rows * (facts.longest + settings.grpo.loss.max_completion_length) *
                        config.layer_count() * 2 * config.kv_heads * config.head_dim * float_bytes);
    if (settings.grpo.loss.beta > 0) {
      plan.parts.emplace_back("reference", base + converted);
    }
  }
  plan.parts.emplace_back("program", program);
  return plan;
}

void refuse_an_adapter_that_cannot_fit(double weights, std::optional<std::int64_t> available) {
  refuse_weights("an adapter", weights, smaller_adapter_hint, available);
}

void refuse_a_new_model_that_cannot_fit(double weights, std::optional<std::int64_t> available) {
  refuse_weights("a model", weights, smaller_model_hint, available);
}

void refuse_what_cannot_fit(const MemoryPlan& plan, const TrainSettings& settings,
                            const MemoryFacts& facts, std::optional<std::int64_t> available) {
  if (!available || plan.total() <= *available) return;
  const auto largest =
      std::max_element(plan.parts.begin(), plan.parts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string& what = largest->first;
  std::string hint = "take a machine with more memory";
  if (what == "activations" && !settings.trainer.gradient_checkpointing) {
    hint = "set gradient_checkpointing";
  } else if (what == "activations" && micro_batch_rows(settings, facts) > 1) {
    hint =
        "make per_device_train_batch_size smaller, and gradient_accumulation_steps larger by "
        "as much: the step stays the same";
  } else if (what == "activations") {
    hint = settings.method == TrainMethod::grpo       ? "make max_completion_length smaller"
           : settings.method == TrainMethod::pretrain ? "make block_size smaller"
                                                      : "make max_length smaller";
  } else if (what == "rollouts") {
    hint = "make gradient_accumulation_steps or max_completion_length smaller";
  } else if (settings.method == TrainMethod::pretrain && what != "program") {
    hint = smaller_model_hint;
  } else if (settings.lora.use_peft && (what == "gradients" || what == "moments")) {
    hint = smaller_adapter_hint;
  } else if (!settings.lora.use_peft && what != "program") {
    hint = "train an adapter: set use_peft";
  }
  throw resource_error(str_cat("the run needs about ", memory_words(plan.total()), ", and ",
                               memory_words(*available), " are free",
                               plan.device == "cpu" ? "" : " on " + plan.device, "; ", what,
                               " take ", memory_words(largest->second)),
                       hint);
}

}  // namespace onset
