// The tensors of a model as a Hugging Face folder holds them. Inside the model room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onset/model/save_model.h"

namespace onset {

struct SavedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  // Its values, contiguous, made when they are written; a view into the checkpoint where they stay
  // as they are.
  std::function<at::Tensor()> make;

  [[nodiscard]] std::int64_t bytes() const;
};

struct SavedTensors {
  std::vector<SavedTensor> tensors;  // in the order of the forward pass
  bool tied = false;                 // the head is left out
};

// The model must outlive the result. Throws an input error for biases that the family's
// configuration cannot say.
[[nodiscard]] SavedTensors saved_tensors(Model& model, const SaveOptions& options);

}  // namespace onset
