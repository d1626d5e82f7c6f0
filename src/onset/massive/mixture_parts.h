// What the experts of one mixture layer add, kept while the layer runs so that an entry of its
// output can be divided among them. Inside the massive room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "onset/massive/scan.h"
#include "onset/model/hooks.h"

namespace onset {

class MixtureParts {
 public:
  // Forgets the layer before, on the first site of a block.
  void begin_layer();
  // A tensor of expert_out or shared_out.
  void observe(const SiteContext& context, const at::Tensor& tensor);

  // Of one entry of a packed row: the parts of the experts it was sent to, the largest |value|
  // first, and of the shared expert. Empty in a dense layer.
  [[nodiscard]] std::vector<ExpertPart> experts(std::int64_t row, std::int64_t dim) const;
  [[nodiscard]] std::optional<float> shared_out(std::int64_t row, std::int64_t dim) const;

 private:
  struct Part {
    std::int64_t expert;
    at::Tensor values;  // [rows, D] float32
  };
  std::vector<Part> parts_;
  // Of every packed row: which part, and which row of it.
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> by_row_;
  at::Tensor shared_;  // [N, D] float32, undefined without
};

}  // namespace onset
