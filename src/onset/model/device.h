// Where a model is computed: a value of its options. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onset {

enum class DeviceKind {
  cpu,
  cuda,
  // A backend that the program itself registered with libtorch (PrivateUse1); no option names it.
  registered,
};

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;  // which of several GPUs

  [[nodiscard]] bool operator==(const Device&) const = default;
};

// "cpu", "cuda" (the first GPU) or "cuda:N"; throws a usage error for others.
[[nodiscard]] Device parse_device(std::string_view name);
// "cpu", "cuda:0".
[[nodiscard]] std::string device_name(const Device& device);

// Whether the program was linked with libtorch's CUDA libraries (-DONSET_CUDA=ON).
[[nodiscard]] bool built_with_cuda();

// Throws where this program cannot compute there: a usage error in a build without CUDA, a resource
// error where no such GPU is found. Sets up libtorch for the device: sums of bfloat16 products stay
// in float32.
void require_device(const Device& device);

// Bytes that are free on a GPU; none for the CPU (base/memory.h says that) and where the device
// does not tell.
[[nodiscard]] std::optional<std::int64_t> free_device_memory(const Device& device);

}  // namespace onset
