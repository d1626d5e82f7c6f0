#include "onset/train/settings_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "onset/base/error.h"
#include "onset/train/settings_rows.h"

namespace onset {

std::vector<Setting> settings_table(TrainSettings& settings) {
  SettingRows rows;
  add_data_rows(rows, settings);
  switch (settings.method) {
    case TrainMethod::sft:
      add_sft_rows(rows, settings.sft);
      break;
    case TrainMethod::dpo:
      add_dpo_rows(rows, settings.dpo);
      break;
    case TrainMethod::grpo:
      add_grpo_rows(rows, settings.grpo);
      break;
    case TrainMethod::pretrain:
      add_pretrain_rows(rows, settings.pretrain);
      break;
  }
  add_trainer_rows(rows, settings.trainer);
  if (settings.method != TrainMethod::pretrain) add_lora_rows(rows, settings.lora);
  add_wemask_rows(rows, settings);
  add_saving_rows(rows, settings.trainer);
  return rows.take();
}

std::string flag_of(const Setting& setting) {
  std::string flag = "--" + setting.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string range_fault(const Setting& setting, double value) {
  const SettingRange& range = setting.range;
  const bool inside = std::isfinite(value) &&
                      (range.above_min ? value > range.min : value >= range.min) &&
                      (range.below_max ? value < range.max : value <= range.max);
  if (inside) return {};
  const bool bounded = std::isfinite(range.max);
  std::string expected;
  if (!bounded) {
    expected = range.above_min ? str_cat("above ", range.min) : str_cat(range.min, " or above");
  } else {
    expected =
        str_cat(range.above_min ? "above " : "", range.min, range.above_min ? ", up to " : " to ",
                range.below_max ? "below " : "", range.max);
  }
  return str_cat("is ", value, ", should be ", expected);
}

namespace {

// The numbers a field holds, whatever its type; none for other fields.
std::vector<double> numbers_of(const SettingSlot& slot) {
  std::vector<double> numbers;
  const auto take = [&numbers](auto value) { numbers.push_back(static_cast<double>(value)); };
  std::visit(
      [&take](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, std::int64_t*> || std::is_same_v<Field, double*>) {
          take(*field);
        } else if constexpr (std::is_same_v<Field, std::optional<std::int64_t>*> ||
                             std::is_same_v<Field, std::optional<double>*>) {
          if (field->has_value()) take(**field);
        } else if constexpr (std::is_same_v<Field, std::vector<double>*>) {
          for (const double value : *field) take(value);
        } else if constexpr (std::is_same_v<Field, std::map<std::string, std::int64_t>*> ||
                             std::is_same_v<Field, std::map<std::string, double>*>) {
          for (const auto& [name, value] : *field) take(value);
        }
      },
      slot);
  return numbers;
}

}  // namespace

std::string range_fault(const Setting& setting) {
  for (const double value : numbers_of(setting.slot)) {
    std::string fault = range_fault(setting, value);
    if (!fault.empty()) return fault;
  }
  return {};
}

bool same_value(const Setting& a, const Setting& b) {
  if (a.slot.index() != b.slot.index()) return false;
  return std::visit(
      [&b](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        const auto& other = std::get<Field>(b.slot);
        if constexpr (std::is_same_v<Field, ChoiceSlot>) {
          return field.get() == other.get();
        } else {
          return *field == *other;
        }
      },
      a.slot);
}

std::string_view advice_for(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 26> advice{{
      {"dataset_name", "use train_file"},
      {"dataset_config", "use train_file"},
      {"dataset_text_field", "use columns, as in columns = {text = \"content\"}"},
      {"model_name_or_path", "give the model on the command line, or as model"},
      {"eval_strategy", "leave it out: eval_file or hold_out and eval_steps say when"},
      {"save_strategy", "leave it out: save_steps says when"},
      {"logging_strategy", "leave it out: logging_steps says when"},
      {"logging_dir", "leave it out: event files are written to output_dir"},
      {"report_to", "use tensorboard"},
      {"optim", "leave it out: the optimizer is AdamW"},
      {"fp16", "use bf16: massive activations leave float16's range"},
      {"tf32", "leave it out"},
      {"use_cpu", "use device"},
      {"no_cuda", "use device"},
      {"fsdp", "leave it out: ranks of mpirun share the data"},
      {"deepspeed", "leave it out: ranks of mpirun share the data"},
      {"data_seed", "use seed"},
      {"max_prompt_length", "use max_length"},
      {"max_seq_length", "use max_length"},
      {"padding_free", "leave it out: nothing is padded"},
      {"use_vllm", "leave it out: the policy is sampled by onset itself"},
      {"precompute_ref_log_probs", "leave it out: they are always computed before the run"},
      {"disable_dropout", "use lora_dropout"},
      {"lora_task_type", "leave it out"},
      {"target_modules", "use lora_target_modules"},
      {"steps_per_generation", "use gradient_accumulation_steps: each step samples anew"},
  }};
  const auto* const found = std::find_if(advice.begin(), advice.end(),
                                         [name](const auto& row) { return row.first == name; });
  return found == advice.end() ? std::string_view() : found->second;
}

}  // namespace onset
