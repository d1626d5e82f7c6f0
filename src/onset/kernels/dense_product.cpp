#include "onset/kernels/dense_product.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>
#include <string_view>

// The BLAS inside libtorch_cpu, MKL (Fortran interface, column-major).
extern "C" void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace onset {
namespace {

// Multiplications below which the call of oneDNN costs more than it saves.
constexpr std::int64_t smallest_onednn_product = 1 << 20;

// In the BLAS's column-major view out^T (count x n, leading dimension out_columns) = rows
// (transposed) times x^T.
void by_blas(const float* x, std::int64_t n, const float* rows, std::int64_t count,
             std::int64_t columns, float* out, std::int64_t out_columns) {
  const int m = static_cast<int>(count);
  const int nn = static_cast<int>(n);
  const int k = static_cast<int>(columns);
  const int ldc = static_cast<int>(out_columns);
  const float one = 1.0F;
  const float zero = 0.0F;
  sgemm_("T", "N", &m, &nn, &k, &one, rows, &k, x, &k, &zero, out, &ldc);
}

using LinearOp = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            std::string_view, c10::List<std::optional<at::Scalar>>,
                            std::optional<std::string_view>);

// libtorch's linear layer by oneDNN, which has no function of its own; undefined in a libtorch
// without oneDNN.
const std::optional<c10::TypedOperatorHandle<LinearOp>>& onednn_linear() {
  static const auto op = []() -> std::optional<c10::TypedOperatorHandle<LinearOp>> {
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found) return std::nullopt;
    return found->typed<LinearOp>();
  }();
  return op;
}

// MKL keeps its AVX-512 kernels for Intel's CPUs; elsewhere oneDNN is up to twice as fast.
bool prefers_onednn() {
  static const bool answer = __builtin_cpu_is("intel") == 0 && onednn_linear().has_value();
  return answer;
}

at::Tensor view_of(const float* values, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(const_cast<float*>(values), {rows, columns},
                       at::TensorOptions().dtype(at::kFloat));
}

void by_onednn(const float* x, std::int64_t n, const float* rows, std::int64_t count,
               std::int64_t columns, float* out, std::int64_t out_columns) {
  const c10::InferenceMode inference;
  const at::Tensor product =
      onednn_linear()->call(view_of(x, n, columns), view_of(rows, count, columns), std::nullopt,
                            "none", c10::List<std::optional<at::Scalar>>(), "");
  const float* from = product.const_data_ptr<float>();
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(from + i * count, count, out + i * out_columns);
  }
}

}  // namespace

void multiply_panel(const float* x, std::int64_t n, const float* rows, std::int64_t count,
                    std::int64_t columns, float* out, std::int64_t out_columns) {
  const bool large = n * count * columns >= smallest_onednn_product;
  const auto by = large && prefers_onednn() ? by_onednn : by_blas;
  by(x, n, rows, count, columns, out, out_columns);
}

}  // namespace onset
