// Reference tensors and comparisons for tests of the rooms that use torch.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "onset/base/cpu.h"
#include "onset/base/json.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {

// A safetensors file of float32, int32 and int64 tensors.
class ReferenceTensors {
 public:
  explicit ReferenceTensors(const std::filesystem::path& path) : file_(read_safetensors(path)) {}

  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }
  [[nodiscard]] at::Tensor get(const std::string& name) const {
    const TensorInfo* info = find(name);
    if (info == nullptr) throw std::runtime_error("no reference tensor " + name);
    const at::ScalarType type = info->dtype == DType::i64   ? at::kLong
                                : info->dtype == DType::i32 ? at::kInt
                                                            : at::kFloat;
    at::Tensor tensor = at::empty(info->shape, at::TensorOptions().dtype(type));
    const auto bytes = file_.file.bytes().subspan(info->offset, info->bytes);
    std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    return tensor;
  }
  [[nodiscard]] std::vector<std::int64_t> ids(const std::string& name) const {
    const at::Tensor flat = get(name).reshape({-1});
    return {flat.const_data_ptr<std::int64_t>(),
            flat.const_data_ptr<std::int64_t>() + flat.numel()};
  }

 private:
  [[nodiscard]] const TensorInfo* find(const std::string& name) const {
    for (const TensorInfo& info : file_.tensors) {
      if (info.name == name) return &info;
    }
    return nullptr;
  }

  SafetensorsFile file_;
};

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// |found - expected| <= atol + rtol |expected| everywhere; says where it is worst and by how much.
inline ::testing::AssertionResult close(const at::Tensor& found, const at::Tensor& expected,
                                        Tolerance tolerance) {
  if (found.sizes() != expected.sizes()) {
    return ::testing::AssertionFailure()
           << "shape " << found.sizes() << ", expected " << expected.sizes();
  }
  const at::Tensor a = found.to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  const at::Tensor excess = (a - b).abs() - (b.abs() * tolerance.rtol + tolerance.atol);
  const at::Tensor bad = excess.nan_to_num(1e30).reshape({-1});
  if (bad.numel() == 0 || bad.max().item<double>() <= 0) return ::testing::AssertionSuccess();
  const auto at = bad.argmax().item<std::int64_t>();
  return ::testing::AssertionFailure()
         << "at flat index " << at << ": " << a.reshape({-1})[at].item<double>() << ", expected "
         << b.reshape({-1})[at].item<double>() << "; " << bad.gt(0).sum().item<std::int64_t>()
         << " of " << bad.numel() << " are off";
}

// Equal to the last bit where our own kernels compute; close elsewhere, since MKL's products round
// by where a matrix begins in memory.
inline ::testing::AssertionResult same_products(const at::Tensor& found,
                                                const at::Tensor& expected) {
  if (best_cpu_level() != CpuLevel::avx512) {
    return close(found, expected, {.atol = 2e-5, .rtol = 2e-5});
  }
  if (at::equal(found, expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "not the same bits";
}

}  // namespace onset::testing
