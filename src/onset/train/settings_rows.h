// How the rows of the table of settings are written down. Torch-free; for settings_table*.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "onset/train/settings_table.h"

namespace onset {

class SettingRows {
 public:
  void group(std::string title) { group_ = std::move(title); }

  template <typename Field>
  Setting& add(std::string name, Field& field, std::string value, std::string help) {
    return add_slot(std::move(name), SettingSlot(&field), std::move(value), std::move(help));
  }

  template <typename Enum>
  Setting& add_choice(std::string name, Enum& field,
                      const std::vector<std::pair<std::string, Enum>>& values, std::string help) {
    ChoiceSlot slot;
    for (const auto& value : values) slot.names.push_back(value.first);
    slot.get = [&field, values] {
      std::size_t index = 0;
      while (index + 1 < values.size() && values[index].second != field) ++index;
      return index;
    };
    slot.set = [&field, values](std::size_t index) { field = values.at(index).second; };
    return add_slot(std::move(name), std::move(slot), "", std::move(help));
  }

  Setting& add_path(std::string name, std::string& field, std::string value, std::string help) {
    Setting& setting = add(std::move(name), field, std::move(value), std::move(help));
    setting.is_path = true;
    return setting;
  }

  [[nodiscard]] Setting& back() { return settings_.back(); }
  [[nodiscard]] std::size_t size() const { return settings_.size(); }
  // Of the rows from there on: a run that goes on may have other values.
  void mark_off_curve(std::size_t begin) {
    for (std::size_t i = begin; i < settings_.size(); ++i) settings_[i].shapes_curve = false;
  }
  [[nodiscard]] std::vector<Setting> take() { return std::move(settings_); }

 private:
  Setting& add_slot(std::string name, SettingSlot slot, std::string value, std::string help) {
    return settings_.emplace_back(Setting{.name = std::move(name),
                                          .group = group_,
                                          .value = std::move(value),
                                          .help = std::move(help),
                                          .slot = std::move(slot)});
  }

  std::string group_;
  std::vector<Setting> settings_;
};

// Of every method, of one, or of some.
void add_data_rows(SettingRows& rows, TrainSettings& settings);
void add_trainer_rows(SettingRows& rows, TrainerSettings& trainer);
void add_saving_rows(SettingRows& rows, TrainerSettings& trainer);
void add_lora_rows(SettingRows& rows, LoraSettings& lora);
void add_wemask_rows(SettingRows& rows, TrainSettings& settings);
void add_sft_rows(SettingRows& rows, SftSettings& sft);
void add_dpo_rows(SettingRows& rows, DpoSettings& dpo);
void add_grpo_rows(SettingRows& rows, GrpoSettings& grpo);
void add_pretrain_rows(SettingRows& rows, PretrainSettings& pretrain);

}  // namespace onset
