// The product of float32 panels, by whichever of the libraries in libtorch is faster on this CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace onset {

// x [n, columns], contiguous, and rows [count, columns], each row row_stride values behind the one
// before it.
struct PanelProduct {
  const float* x = nullptr;
  std::int64_t n = 0;
  const float* rows = nullptr;
  std::int64_t count = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
};

enum class PanelLibrary { blas, onednn };

// Whether the libtorch at hand has the library.
[[nodiscard]] bool has_library(PanelLibrary library);

// out[i, r] = sum_c x[i, c] rows[r, c] for i < n and r < count. A row of `out` is out_stride values
// behind the one before it. May be called on several threads at a time, and then runs on the
// calling one alone.
void multiply_panel(const PanelProduct& product, float* out, std::int64_t out_stride);
// The same as a new tensor [n, count], by a library that is named: for tests.
[[nodiscard]] at::Tensor panel_product_by(PanelLibrary library, const PanelProduct& product);

}  // namespace onset
