#include "onset/kernels/elementwise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "onset/kernels/own_kernels.h"

namespace onset {
namespace {

// Elements below which a second thread costs more than it saves.
constexpr std::int64_t grain = 32 * 1024;

}  // namespace

bool elementwise_applies(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.is_contiguous() &&
         suits_own_kernels(tensor) && !(c10::GradMode::is_enabled() && tensor.requires_grad());
}

at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const std::int64_t width = x.size(-1);
  const std::int64_t rows = x.numel() / width;
  at::Tensor out = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  const float* weight = gain.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  at::parallel_for(
      0, rows, std::max<std::int64_t>(1, grain / width), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const float* row = from + r * width;
          float* result = to + r * width;
          // Eight sums keep the additions independent, so that they run side by side.
          double sums[8] = {};
          std::int64_t d = 0;
          for (; d + 8 <= width; d += 8) {
            for (std::int64_t i = 0; i < 8; ++i) {
              const auto value = static_cast<double>(row[d + i]);
              sums[i] += value * value;
            }
          }
          for (; d < width; ++d) {
            const auto value = static_cast<double>(row[d]);
            sums[0] += value * value;
          }
          double sum = 0;
          for (const double part : sums) sum += part;
          const auto scale =
              static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(width) + eps));
          for (d = 0; d < width; ++d) result[d] = row[d] * scale * weight[d];
        }
      });
  return out;
}

at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::int64_t heads = x.size(1);
  const std::int64_t dim = x.size(2);
  const std::int64_t half = cos.size(1);
  at::Tensor out = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  const float* c = cos.const_data_ptr<float>();
  const float* s = sin.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), std::max<std::int64_t>(1, grain / (heads * dim)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t n = begin; n < end; ++n) {
                       for (std::int64_t h = 0; h < heads; ++h) {
                         const float* a = from + (n * heads + h) * dim;
                         float* b = to + (n * heads + h) * dim;
                         for (std::int64_t i = 0; i < half; ++i) {
                           const float first = a[i];
                           const float second = a[half + i];
                           b[i] = first * c[n * half + i] - second * s[n * half + i];
                           b[half + i] = second * c[n * half + i] + first * s[n * half + i];
                         }
                         for (std::int64_t i = 2 * half; i < dim; ++i) b[i] = a[i];
                       }
                     }
                   });
  return out;
}

}  // namespace onset
