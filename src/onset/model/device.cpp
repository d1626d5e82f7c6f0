#include "onset/model/device.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <charconv>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/placement.h"

namespace onset {
namespace {

constexpr std::string_view cuda_name = "cuda";

// Of one machine; a larger number is a slip of the pen.
constexpr int most_gpus = 127;

std::optional<int> gpu_number(std::string_view digits) {
  int number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, number);
  if (problem != std::errc() || stop != end || digits.front() == '-' || number > most_gpus) {
    return std::nullopt;
  }
  return number;
}

void require_cuda(const Device& device) {
  if (!built_with_cuda()) {
    throw usage_error(str_cat("device ", device_name(device), ": this build has no CUDA"),
                      "build with -DONSET_CUDA=ON (docs/device.md), or leave the device out");
  }
  const bool any = at::globalContext().hasCUDA();
  const int count = any ? at::detail::getCUDAHooks().getNumGPUs() : 0;
  if (count == 0) {
    throw resource_error(
        str_cat("device ", device_name(device), ": no GPU found"),
        "nvidia-smi lists what the driver knows, and CUDA_VISIBLE_DEVICES may hide "
        "it; on the CPU: --device cpu");
  }
  if (device.index >= count) {
    throw resource_error(str_cat("device ", device_name(device), ": there is no such GPU"),
                         count == 1 ? "there is one, cuda:0"
                                    : str_cat("there are ", count, ", cuda:0 to cuda:", count - 1));
  }
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
}

}  // namespace

Device parse_device(std::string_view name) {
  if (name == "cpu") return {};
  if (name == cuda_name) return {.kind = DeviceKind::cuda};
  const std::string prefix = str_cat(cuda_name, ":");
  if (name.starts_with(prefix) && name.size() > prefix.size()) {
    if (const auto number = gpu_number(name.substr(prefix.size()))) {
      return {.kind = DeviceKind::cuda, .index = *number};
    }
  }
  throw usage_error(str_cat("device ", quote(name), " is not known"),
                    "use cpu, cuda, or cuda:N for the GPU of that number");
}

std::string device_name(const Device& device) {
  switch (device.kind) {
    case DeviceKind::cuda:
      return str_cat(cuda_name, ":", device.index);
    case DeviceKind::registered:
      return str_cat("registered:", device.index);
    case DeviceKind::cpu:
      break;
  }
  return "cpu";
}

bool built_with_cuda() {
#ifdef ONSET_CUDA
  return true;
#else
  return false;
#endif
}

void require_device(const Device& device) {
  if (device.kind == DeviceKind::cuda) require_cuda(device);
}

std::optional<std::int64_t> free_device_memory(const Device& device) {
  if (device.kind != DeviceKind::cuda) return std::nullopt;
  const auto [free, total] = at::accelerator::getMemoryInfo(torch_device(device).index());
  return static_cast<std::int64_t>(free);
}

}  // namespace onset
