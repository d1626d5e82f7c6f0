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
constexpr std::int64_t program = std::int64_t{350} << 20;  // libtorch and what it keeps
// And as many turned for the head's gradient.
constexpr std::int64_t logit_bytes = 2 * float_bytes * logits_at_once;

// Numbers that a block keeps of a token for the backward pass.
std::int64_t block_numbers(const ModelConfig& config, std::int64_t layer) {
  const std::int64_t attention =
      4 * config.heads * config.head_dim + 4 * config.kv_heads * config.head_dim;
  const std::int64_t ffn =
      config.is_mixture(layer) ? config.mixture.chosen * config.mixture.ffn : config.ffn;
  return 4 * config.hidden + attention + 3 * ffn;
}

std::int64_t activation_numbers(const TrainSettings& settings, const ModelConfig& config) {
  std::int64_t sum = 0;
  std::int64_t largest = 0;
  for (std::int64_t layer = 0; layer < config.layer_count(); ++layer) {
    sum += block_numbers(config, layer);
    largest = std::max(largest, block_numbers(config, layer));
  }
  if (!settings.trainer.gradient_checkpointing) return sum;
  return config.layer_count() * config.hidden + largest;
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
  return sum;
}

std::string MemoryPlan::text() const {
  std::string list;
  for (const auto& [what, bytes] : parts) {
    if (bytes == 0) continue;
    list += str_cat(list.empty() ? "" : ", ", what, " ", memory_words(bytes));
  }
  return str_cat("Memory", device == "cpu" ? "" : " of " + device,
                 ", estimated: ", memory_words(total()), " (", list, ").");
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
  // Weights in bfloat16 are used where the file is mapped; those that are trained have masters. On
  // a GPU what is not trained stands in the type of the products alone.
  const std::int64_t rounded = facts.weights - (adapter && !on_gpu ? facts.stored_as_bf16 : 0);
  const std::int64_t halves = settings.trainer.bf16 ? 2 * rounded : 0;
  const std::int64_t expanded = settings.trainer.bf16 ? 0 : float_bytes * facts.weights;
  const std::int64_t base = on_gpu ? expanded : facts.stored_bytes;
  const std::int64_t weights = (adapter ? base : float_bytes * facts.weights) + halves;
  const std::int64_t tokens = micro_batch_tokens(settings, facts);
  const std::int64_t head = config.vocabulary * config.hidden * float_bytes;
  MemoryPlan plan;
  plan.device = settings.trainer.device;
  plan.parts.emplace_back("weights", weights + (adapter ? float_bytes * facts.trained : 0));
  plan.parts.emplace_back("gradients", float_bytes * facts.trained);
  plan.parts.emplace_back("moments", 2 * float_bytes * facts.trained);
  plan.parts.emplace_back("activations",
                          tokens * float_bytes * activation_numbers(settings, config));
  plan.parts.emplace_back("head", logit_bytes + (adapter ? 1 : 3) * head);
  if (settings.method == TrainMethod::grpo) {
    // Keys and values of the completions that are sampled at a time.
    const std::int64_t rows = at_most_all(
        settings.trainer.per_device_train_batch_size * settings.trainer.gradient_accumulation_steps,
        settings, facts);
    plan.parts.emplace_back(
        "rollouts", rows * (facts.longest + settings.grpo.loss.max_completion_length) *
                        config.layer_count() * 2 * config.kv_heads * config.head_dim * float_bytes);
    if (settings.grpo.loss.beta > 0) {
      plan.parts.emplace_back("reference", base + halves);
    }
  }
  plan.parts.emplace_back("program", program);
  return plan;
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
