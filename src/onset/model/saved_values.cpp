#include "onset/model/saved_values.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace onset {
namespace {

// Rows as float32: of the tensor where something is trained, else of the file.
at::Tensor rows_of(const at::Tensor& trained, const StoredMatrix& stored, std::int64_t first,
                   std::int64_t count) {
  if (trained.defined()) return trained.detach().narrow(0, first, count).to(at::kCPU, at::kFloat);
  return expand(stored.slice(first, count), at::kFloat);
}

}  // namespace

at::ScalarType scalar_type_of(DType type) {
  switch (type) {
    case DType::f64:
      return at::kDouble;
    case DType::bf16:
      return at::kBFloat16;
    case DType::f16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

bool is_fp8(DType type) { return type == DType::f8_e4m3 || type == DType::f8_e5m2; }

at::Tensor view_of_bytes(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()),
                       {static_cast<std::int64_t>(bytes.size())}, at::TensorOptions(at::kByte));
}

at::Tensor joined_weights(const std::vector<Linear*>& parts, DType type) {
  std::vector<at::Tensor> weights;
  for (const Linear* part : parts) {
    // In float32 first: an adapter's change is rounded once, with the weight.
    weights.push_back(part->dense(at::kFloat).to(scalar_type_of(type)));
  }
  return (weights.size() == 1 ? weights.front() : at::cat(weights)).contiguous();
}

at::Tensor joined_biases(const std::vector<Linear*>& parts, DType type) {
  std::vector<at::Tensor> biases;
  for (const Linear* part : parts) biases.push_back(part->dense_bias().to(scalar_type_of(type)));
  return at::cat(biases);
}

at::Tensor embedding_values(const ModelWeights& weights, DType type) {
  const StoredMatrix& stored = weights.embedding;
  if (weights.embedding_parameter.defined()) {
    return weights.embedding_parameter.detach().to(scalar_type_of(type)).contiguous();
  }
  if (stored.dtype == type && !stored.scales) return view_of_bytes(stored.bytes);
  return expand(stored, at::kFloat).to(scalar_type_of(type));
}

bool head_is_embedding(const ModelWeights& weights) {
  const Linear& head = weights.head;
  if (head.adapter()) return false;
  if (weights.tied && head.parameter().is_same(weights.embedding_parameter)) return true;
  constexpr std::int64_t rows_at_once = 4096;
  const std::int64_t rows = head.out_features();
  for (std::int64_t first = 0; first < rows; first += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, rows - first);
    const at::Tensor own = rows_of(head.parameter(), head.stored(), first, count);
    const at::Tensor embedded =
        rows_of(weights.embedding_parameter, weights.embedding, first, count);
    if (!at::equal(own, embedded)) return false;
  }
  return true;
}

}  // namespace onset
