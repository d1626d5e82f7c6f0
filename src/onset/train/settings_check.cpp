// What cannot be, or would do nothing: refused with the reason before anything is read.
#include <cstdint>
#include <initializer_list>
#include <string>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/device.h"
#include "onset/train/settings.h"
#include "onset/train/settings_table.h"
#include "onset/wemask/mask.h"

namespace onset {
namespace {

// The settings that are not at their defaults, by name.
class Changed {
 public:
  explicit Changed(TrainSettings& settings) : defaults_(default_settings(settings.method)) {
    const std::vector<Setting> given = settings_table(settings);
    const std::vector<Setting> unchanged = settings_table(defaults_);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!same_value(given[i], unchanged[i])) names_.push_back(given[i].name);
    }
  }

  [[nodiscard]] bool has(std::string_view name) const {
    for (const std::string& changed : names_) {
      if (changed == name) return true;
    }
    return false;
  }

  // A usage error where one of them is set, since it does nothing for that reason.
  void refuse(std::initializer_list<std::string_view> names, const std::string& reason,
              const std::string& hint) const {
    for (const std::string_view name : names) {
      if (has(name)) throw usage_error(str_cat(name, " is set, and ", reason), hint);
    }
  }

 private:
  TrainSettings defaults_;
  std::vector<std::string> names_;
};

void check_ranges(TrainSettings& settings) {
  for (const Setting& setting : settings_table(settings)) {
    const std::string fault = range_fault(setting);
    if (!fault.empty()) throw usage_error(str_cat(setting.name, " ", fault));
  }
}

void check_data(const TrainDataSettings& data, const Changed& changed) {
  if (data.hold_out == 1) {
    throw usage_error("hold_out is 1: nothing would be left to train on",
                      "one prompt in hold_out is kept for evaluation: give 2 or more");
  }
  if (data.hold_out > 0 && !data.eval_file.empty()) {
    throw usage_error("eval_file and hold_out both say what to evaluate on", "give one of them");
  }
  if (!data.text_as_chat) {
    changed.refuse({"system"}, "is the first message of text_as_chat alone", "set text_as_chat");
  }
  if (!data.check_leaks) {
    changed.refuse({"task_data"}, "check_leaks is off", "leave one of them out");
  }
}

void check_steps(TrainerSettings& trainer) {
  if (trainer.warmup_steps > 0 && trainer.warmup_ratio > 0) {
    throw usage_error("warmup_steps and warmup_ratio both say how long the warm-up is",
                      "set one of them to 0");
  }
  if (trainer.max_steps < 0) trainer.max_steps = 0;  // TRL's -1
  if (trainer.max_steps == 0 && trainer.num_train_epochs == 0) {
    throw usage_error("max_steps and num_train_epochs are both 0: no step would be made",
                      "set one of them");
  }
  static_cast<void>(parse_device(trainer.device));
  check(trainer.optimizer);
}

void check_evaluation(TrainSettings& settings, const Changed& changed) {
  TrainerSettings& trainer = settings.trainer;
  const bool evaluates = settings.data.hold_out > 0 || !settings.data.eval_file.empty();
  if (!evaluates) {
    const std::string hint = "give eval_file or hold_out";
    changed.refuse({"eval_steps", "load_best_model_at_end"}, "there is nothing to evaluate on",
                   hint);
  }
  if (!trainer.load_best_model_at_end) {
    changed.refuse({"metric_for_best_model", "greater_is_better"},
                   "says what is best for load_best_model_at_end alone",
                   "set load_best_model_at_end");
    return;
  }
  if (trainer.eval_steps == 0 || trainer.save_steps == 0 ||
      trainer.save_steps % trainer.eval_steps != 0) {
    throw usage_error(
        str_cat("load_best_model_at_end needs a value for each checkpoint: save_steps (",
                trainer.save_steps, ") has to be a multiple of eval_steps (", trainer.eval_steps,
                ")"),
        "set both, to the same number for instance");
  }
  if (!trainer.metric_for_best_model.empty() &&
      !trainer.metric_for_best_model.starts_with("eval_")) {
    trainer.metric_for_best_model.insert(0, "eval_");
  }
}

void check_lora(const TrainSettings& settings, const Changed& changed) {
  const LoraSettings& lora = settings.lora;
  const auto refuse = [&changed](const std::string& reason, const std::string& hint) {
    changed.refuse({"lora_r", "lora_alpha", "use_rslora", "lora_target_modules",
                    "lora_modules_to_save", "rank_pattern", "alpha_pattern"},
                   reason, hint);
  };
  if (!lora.use_peft) {
    refuse("without use_peft all weights are trained", "set use_peft");
    changed.refuse({"lora_dropout"}, "without use_peft all weights are trained", "set use_peft");
    changed.refuse(
        {"adapter"}, "without use_peft all weights are trained, and the adapter is left out",
        "set use_peft to train the adapter, or fold it into the model first (onset merge)");
    return;
  }
  if (!lora.adapter.empty()) {
    refuse("the adapter that the run begins with has its own", "leave one of them out");
  }
  if (lora.target_modules.empty()) {
    throw usage_error("lora_target_modules is empty: there is nothing to adapt",
                      "name linear layers, or all-linear");
  }
  if (lora.dropout > 0 && settings.method != TrainMethod::sft) {
    throw usage_error(
        str_cat("lora_dropout is ", lora.dropout, ", and ", name_of(settings.method),
                settings.method == TrainMethod::dpo
                    ? " compares the policy with itself as it began: dropout would be a difference"
                    : " needs the policy that is trained to be the one that was sampled"),
        "set lora_dropout to 0");
  }
}

void check_wemask(TrainSettings& settings, const Changed& changed) {
  TrainWemaskSettings& mask = settings.wemask;
  if (!mask.given()) {
    const std::string hint = settings.method == TrainMethod::pretrain
                                 ? "give wemask or wemask_from_layer"
                                 : "give wemask";
    changed.refuse({"wemask_update", "reference_wemask", "wemask_rate", "wemask_k"},
                   "there is no mask", hint);
    return;
  }
  if (settings.method == TrainMethod::grpo && settings.grpo.loss.beta == 0) {
    changed.refuse({"reference_wemask"}, "with beta 0 there is no reference", "set beta");
  }
  if (!mask.wemask.empty()) {
    changed.refuse({"wemask_from_layer", "wemask_rate", "wemask_k"},
                   "the file that wemask names has its own", "leave one of them out");
    return;
  }
  if (mask.rate && mask.k) {
    throw usage_error("wemask_rate and wemask_k both say how many dims are masked",
                      "give one of them");
  }
  if (*mask.from_layer >= settings.pretrain.num_hidden_layers) {
    throw usage_error(str_cat("wemask_from_layer is ", *mask.from_layer, ", and the model has ",
                              settings.pretrain.num_hidden_layers, " layers, from 0"));
  }
  if (!mask.rate && !mask.k) mask.rate = default_mask_rate;
  const std::int64_t hidden = settings.pretrain.hidden_size;
  const std::int64_t k = mask.k.value_or(
      static_cast<std::int64_t>(mask.rate.value_or(0) * static_cast<double>(hidden)));
  if (k < 1 || k > hidden) {
    throw usage_error(str_cat("the mask would have ", k, " of ", hidden, " dims"),
                      "set wemask_rate or wemask_k");
  }
}

void check_sft(const SftSettings& sft, const Changed& changed) {
  if (!sft.packing) {
    changed.refuse({"packing_strategy"}, "nothing is packed without packing", "set packing");
  } else if (sft.max_length < 2) {
    throw usage_error(str_cat("max_length is ", sft.max_length, ": packed rows need a length"),
                      "set max_length to the tokens of a row");
  }
}

void check_grpo(TrainSettings& settings, std::int64_t ranks) {
  GrpoSettings& grpo = settings.grpo;
  if (!grpo.epsilon_high) grpo.epsilon_high = grpo.loss.epsilon_low;
  grpo.loss.epsilon_high = *grpo.epsilon_high;
  check(grpo.loss);
  check_sampling(grpo.sampling);
  const std::int64_t completions = settings.trainer.per_device_train_batch_size *
                                   settings.trainer.gradient_accumulation_steps * ranks;
  if (completions % grpo.num_generations != 0) {
    throw usage_error(
        str_cat("a step holds ", completions, " completions (per_device_train_batch_size ",
                settings.trainer.per_device_train_batch_size, " x gradient_accumulation_steps ",
                settings.trainer.gradient_accumulation_steps, " x ", ranks,
                ranks == 1 ? " rank" : " ranks", "), which num_generations ", grpo.num_generations,
                " does not divide: a prompt's completions belong together"),
        "change one of these numbers");
  }
  if (!grpo.reward_weights.empty() && grpo.reward_weights.size() != grpo.reward_funcs.size()) {
    throw usage_error(str_cat("reward_weights has ", grpo.reward_weights.size(),
                              " numbers, and reward_funcs ", grpo.reward_funcs.size()),
                      "give one weight for each reward, or none");
  }
  (void)Rewards(grpo.reward_funcs, grpo.reward_weights, reward_options(grpo));
}

// As Llama chose it: 8/3 of the width, up to a multiple.
std::int64_t default_intermediate(std::int64_t hidden) {
  constexpr std::int64_t multiple = 64;
  return (hidden * 8 / 3 + multiple - 1) / multiple * multiple;
}

void check_pretrain(PretrainSettings& model) {
  if (model.num_key_value_heads == 0) model.num_key_value_heads = model.num_attention_heads;
  if (model.num_attention_heads % model.num_key_value_heads != 0) {
    throw usage_error(str_cat("num_attention_heads ", model.num_attention_heads,
                              " is no multiple of num_key_value_heads ", model.num_key_value_heads),
                      "each KV head serves as many query heads");
  }
  if (model.head_dim == 0) {
    if (model.hidden_size % model.num_attention_heads != 0) {
      throw usage_error(
          str_cat("hidden_size ", model.hidden_size, " is no multiple of num_attention_heads ",
                  model.num_attention_heads),
          "change one of them, or set head_dim");
    }
    model.head_dim = model.hidden_size / model.num_attention_heads;
  }
  if (model.head_dim % 2 != 0) {
    throw usage_error(str_cat("head_dim is ", model.head_dim, ": RoPE turns pairs of dims"),
                      "choose an even head_dim");
  }
  if (model.intermediate_size == 0) {
    model.intermediate_size = default_intermediate(model.hidden_size);
  }
}

}  // namespace

TrainSettings checked_settings(TrainSettings settings, std::int64_t ranks) {
  check_ranges(settings);
  const Changed changed(settings);
  check_data(settings.data, changed);
  check_steps(settings.trainer);
  check_evaluation(settings, changed);
  check_wemask(settings, changed);
  switch (settings.method) {
    case TrainMethod::sft:
      check_sft(settings.sft, changed);
      break;
    case TrainMethod::dpo:
      check(settings.dpo.loss);
      break;
    case TrainMethod::grpo:
      check_grpo(settings, ranks);
      break;
    case TrainMethod::pretrain:
      check_pretrain(settings.pretrain);
      return settings;
  }
  check_lora(settings, changed);
  return settings;
}

}  // namespace onset
