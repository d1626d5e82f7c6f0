// A device whose memory the host cannot touch, for tests of what runs on a GPU where there is none:
// libtorch's place for other backends (PrivateUse1), filled with kernels that compute on the CPU.
//
// Its tensors hold addresses that no instruction may read, so that code that works on the numbers
// of a tensor without asking where they lie ends at once; and an operation whose tensors lie partly
// on the CPU throws, as on a GPU. Link far_device.cpp into the test's program. Torch-free.
#pragma once

#include <cstdint>

#include "onset/model/device.h"

namespace onset::testing {

[[nodiscard]] Device far_device();

// Operations that were computed on the device so far.
[[nodiscard]] std::int64_t far_operations();

}  // namespace onset::testing
