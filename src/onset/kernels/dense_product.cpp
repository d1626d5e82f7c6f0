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

// Multiplications below which MKL is taken everywhere: it rounds long sums less (attributions of a
// short prompt agree to 1e-6 of the largest term), and there is little time to save.
constexpr std::int64_t smallest_onednn_product = 6 << 20;

// In the BLAS's column-major view out^T (count x n, leading dimension out_stride) = rows
// (transposed) times x^T.
void by_blas(const PanelProduct& product, float* out, std::int64_t out_stride) {
  const int m = static_cast<int>(product.count);
  const int n = static_cast<int>(product.n);
  const int k = static_cast<int>(product.columns);
  const int lda = static_cast<int>(product.row_stride);
  const int ldc = static_cast<int>(out_stride);
  const float one = 1.0F;
  const float zero = 0.0F;
  sgemm_("T", "N", &m, &n, &k, &one, product.rows, &lda, product.x, &k, &zero, out, &ldc);
}

using LinearOp = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            std::string_view, c10::List<std::optional<at::Scalar>>,
                            std::optional<std::string_view>);

// libtorch's linear layer by oneDNN, which has no function of its own; nothing in a libtorch
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
  static const bool answer = __builtin_cpu_is("intel") == 0 && has_library(PanelLibrary::onednn);
  return answer;
}

// Contiguous: for others oneDNN has a plain loop alone. A copy where they are not.
at::Tensor tensor_of(const float* values, std::int64_t rows, std::int64_t columns,
                     std::int64_t row_stride) {
  return at::from_blob(const_cast<float*>(values), {rows, columns}, {row_stride, 1},
                       at::TensorOptions().dtype(at::kFloat))
      .contiguous();
}

at::Tensor by_onednn(const PanelProduct& product) {
  const c10::InferenceMode inference;
  return onednn_linear()->call(
      tensor_of(product.x, product.n, product.columns, product.columns),
      tensor_of(product.rows, product.count, product.columns, product.row_stride), std::nullopt,
      "none", c10::List<std::optional<at::Scalar>>(), "");
}

PanelLibrary library_for(const PanelProduct& product) {
  const bool large = product.n * product.count * product.columns >= smallest_onednn_product;
  return large && prefers_onednn() ? PanelLibrary::onednn : PanelLibrary::blas;
}

}  // namespace

bool has_library(PanelLibrary library) {
  return library == PanelLibrary::blas || onednn_linear().has_value();
}

at::Tensor panel_product_by(PanelLibrary library, const PanelProduct& product) {
  if (library == PanelLibrary::onednn) return by_onednn(product);
  at::Tensor out = at::empty({product.n, product.count}, at::TensorOptions().dtype(at::kFloat));
  by_blas(product, out.mutable_data_ptr<float>(), product.count);
  return out;
}

void multiply_panel(const PanelProduct& product, float* out, std::int64_t out_stride) {
  if (library_for(product) == PanelLibrary::blas) return by_blas(product, out, out_stride);
  const at::Tensor made = by_onednn(product);
  const float* from = made.const_data_ptr<float>();
  for (std::int64_t i = 0; i < product.n; ++i) {
    std::copy_n(from + i * product.count, product.count, out + i * out_stride);
  }
}

}  // namespace onset
