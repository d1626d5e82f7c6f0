#include "onset/model/placement.h"

#include <ATen/ATen.h>

namespace onset {

at::Device torch_device(const Device& device) {
  const auto index = static_cast<at::DeviceIndex>(device.index);
  switch (device.kind) {
    case DeviceKind::cuda:
      return {at::kCUDA, index};
    case DeviceKind::registered:
      return {at::kPrivateUse1, index};
    case DeviceKind::cpu:
      break;
  }
  return at::kCPU;
}

at::Tensor indices(std::span<const std::int64_t> values, const at::Tensor& beside) {
  const at::IntArrayRef all(values.data(), values.size());
  return at::tensor(all, at::kLong).to(beside.device());
}

}  // namespace onset
