// Weights as the values that a file is to hold. Inside the model room.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "onset/checkpoint/dtype.h"
#include "onset/model/weights.h"

namespace onset {

// The type of a tensor that is written as F64, F32, BF16 or F16.
[[nodiscard]] at::ScalarType scalar_type_of(DType type);
[[nodiscard]] bool is_fp8(DType type);

// Bytes of a checkpoint as a tensor [n] that is only read.
[[nodiscard]] at::Tensor view_of_bytes(std::span<const std::byte> bytes);

// The layers' weights, adapters folded in, one above the other: [sum of rows, columns].
[[nodiscard]] at::Tensor joined_weights(const std::vector<Linear*>& parts, DType type);
[[nodiscard]] at::Tensor joined_biases(const std::vector<Linear*>& parts, DType type);

// [V, D], as trained where it is; the bytes of the file where they stay as they are.
[[nodiscard]] at::Tensor embedding_values(const ModelWeights& weights, DType type);
// Whether the head is the embedding now, whatever they were read from.
[[nodiscard]] bool head_is_embedding(const ModelWeights& weights);

}  // namespace onset
