// The model that is trained, as the losses see it: log-probabilities of tokens under its present
// weights and its mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "onset/model/linear.h"
#include "onset/model/model.h"
#include "onset/model/parameter.h"
#include "onset/train/examples.h"
#include "onset/train/mask_update.h"
#include "onset/train/token_logps.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Hooks;

struct PolicyOptions {
  std::optional<MaskSpec> mask = {};
  MaskUpdate mask_update = MaskUpdate::frozen;
  // Of the adapters, where they drop.
  std::shared_ptr<DropoutState> dropout = nullptr;
};

struct LogpOptions {
  double temperature = 1.0;
  bool equal_gradients = false;  // see HeadOptions
  bool masked = true;            // false: without the mask, also where there is one
};

class Policy {
 public:
  // `trained` are tensors that the model's decoder works on (model/parameters.h, train/lora.h);
  // `refresh` is called after they changed. The model must outlive the policy. A mask for another
  // model is an input error, as check_mask says.
  Policy(const Model& model, std::vector<Parameter> trained, std::function<void()> refresh,
         const PolicyOptions& options);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Of the trained tokens of each example, one example behind the other; with gradients where
  // autograd is on. Backpropagate before changed() and before the next call with gradients. An
  // example without a trained token costs nothing.
  [[nodiscard]] TokenLogps logps(std::span<const SftExample* const> examples,
                                 const LogpOptions& options = {}) const;

  // To be called after the trained tensors were written to.
  void changed();
  // What the dropout of the next passes is drawn from.
  void draw_dropout(std::uint64_t seed);

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] std::span<const Parameter> trained() const { return trained_; }
  // As it is now; null without a mask.
  [[nodiscard]] const std::shared_ptr<const MaskSpec>& mask() const { return mask_; }

 private:
  Model model_;
  std::vector<Parameter> trained_;
  std::function<void()> refresh_;
  MaskUpdate mask_update_;
  std::shared_ptr<DropoutState> dropout_;
  std::shared_ptr<const MaskSpec> mask_;
  std::shared_ptr<const Hooks> hooks_;
};

// Trained tokens of an example: how many values logps() gives for it.
[[nodiscard]] std::int64_t trained_count(const SftExample& example);

}  // namespace onset
