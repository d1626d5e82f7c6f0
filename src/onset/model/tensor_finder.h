// Finds a model's tensors by either format's names and checks their shape and type. Inside the
// model room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/checkpoint/checkpoint.h"
#include "onset/kernels/stored_matrix.h"
#include "onset/model/linear.h"
#include "onset/model/model.h"
#include "onset/model/tensor_names.h"

namespace onset {

// All errors are input errors that name the file, the tensor, what was expected and found.
class TensorFinder {
 public:
  TensorFinder(const Checkpoint& checkpoint, Compute compute);

  [[nodiscard]] bool is_gguf() const { return gguf_; }
  [[nodiscard]] std::string layer_name(std::int64_t layer, TensorNames names) const;
  // "model." as the file spells it; empty in a GGUF file.
  [[nodiscard]] std::string prefix() const { return gguf_ ? "" : prefix_; }
  [[nodiscard]] std::string embedding_name() const;
  [[nodiscard]] std::string final_norm_name() const;
  [[nodiscard]] std::string head_name() const { return gguf_ ? "output" : "lm_head"; }

  // nullptr where the checkpoint has no NAME.SUFFIX; without a suffix no NAME.
  [[nodiscard]] const TensorInfo* find(const std::string& name, std::string_view suffix) const;

  // A matrix [rows, columns] under NAME.weight, with the scales of its blocks where it is FP8.
  StoredMatrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  // The matrices [rows, columns] of a stack [count, rows, columns] under NAME.
  std::vector<StoredMatrix> stack(const std::string& name, std::int64_t count, std::int64_t rows,
                                  std::int64_t columns);
  // A small vector under NAME.SUFFIX as a tensor of the residual type.
  at::Tensor vector(const std::string& name, std::string_view suffix, std::int64_t size);
  // The gain of a norm, as it multiplies.
  at::Tensor gain(const std::string& name, std::int64_t size, bool plus_one);
  // A bias where the file holds one; an error where the configuration promises one.
  at::Tensor bias(const std::string& name, std::int64_t size, bool promised);
  Linear linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool has_bias,
                std::int64_t permuted_head_dim = 0);
  // Consecutive row ranges of one stored matrix, each as a linear layer of its own.
  std::vector<Linear> divided(const std::string& name, std::span<const std::int64_t> rows,
                              std::int64_t columns);
  // A matrix of one row, which some files store as a vector.
  StoredMatrix row(const std::string& name, std::int64_t columns);
  [[nodiscard]] Linear plain(const StoredMatrix& weight, TensorOrigin origin) const;
  // Computed in float32 at least.
  [[nodiscard]] Linear precise(const StoredMatrix& weight, TensorOrigin origin) const;

  // The tensors found since the last call.
  std::vector<const TensorInfo*> take_noted();

 private:
  [[nodiscard]] std::string file_of(const TensorInfo& info) const;
  void check(const TensorInfo& info, std::span<const std::int64_t> shape) const;
  void add_scales(const std::string& name, const TensorInfo& info, StoredMatrix& weight) const;

  const Checkpoint& checkpoint_;
  Compute compute_;
  bool gguf_;
  std::string prefix_ = "model.";
  std::vector<const TensorInfo*> noted_;
};

}  // namespace onset
