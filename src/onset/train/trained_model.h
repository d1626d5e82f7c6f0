// The model of a run with what of it is trained: all weights, or an adapter on them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "onset/base/log.h"
#include "onset/model/model.h"
#include "onset/model/parameters.h"
#include "onset/train/lora.h"
#include "onset/train/policy.h"
#include "onset/train/settings.h"

namespace onset {

class TrainedModel {
 public:
  // Of checked settings; `path` is the model's. Throws what Model::open, read_peft and the mask's
  // reader throw, and usage errors for adapters that fit no module. A mask that was made for other
  // gains is said on the log. Not in InferenceMode.
  // `memory`: bytes that are free for it, where that is known; an adapter that cannot fit is a
  // resource error before it is made.
  TrainedModel(const std::filesystem::path& path, const TrainSettings& settings, const Log& log,
               std::optional<std::int64_t> memory = std::nullopt);

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] Policy& policy() { return *policy_; }
  // "134,515,008 of 134,515,008 weights are trained"; for an adapter also where it sits.
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::int64_t trained_count() const;

  // The model in Hugging Face's layout, or the adapter in PEFT's, and wemask.json beside it where
  // there is a mask. `folder` exists.
  void write(const std::filesystem::path& folder) const;
  [[nodiscard]] bool has_adapter() const { return adapter_ != nullptr; }

 private:
  Model model_;
  std::unique_ptr<Parameters> parameters_;  // one of the two
  std::unique_ptr<LoraAdapter> adapter_;
  std::unique_ptr<Policy> policy_;
};

// The mask that the settings describe, as it fits this model; nothing where they describe none.
[[nodiscard]] std::optional<MaskSpec> mask_of(const TrainWemaskSettings& settings,
                                              const Model& model, const Log& log);

}  // namespace onset
