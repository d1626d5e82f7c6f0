// The devices that tests of the forward pass and of training run on: the CPU, the far device
// (far_device.h), and a GPU where there is one.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/model/device.h"
#include "support/far_device.h"

namespace onset::testing {

[[nodiscard]] inline bool gpu_found() {
  try {
    require_device({.kind = DeviceKind::cuda});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A test's parameter on one of the devices.
template <typename Case>
struct OnDevice {
  Case value;
  Device device;
};

template <typename Case>
[[nodiscard]] std::vector<OnDevice<Case>> on_all_devices(const std::vector<Case>& values) {
  std::vector<OnDevice<Case>> cases;
  std::vector<Device> devices{{}, far_device()};
  if (gpu_found()) devices.push_back({.kind = DeviceKind::cuda});
  for (const Device& device : devices) {
    for (const Case& value : values) cases.push_back({value, device});
  }
  return cases;
}

// Behind the name of a test: nothing, "_far", "_cuda".
[[nodiscard]] inline std::string suffix_of(const Device& device) {
  if (device.kind == DeviceKind::cpu) return "";
  return device.kind == DeviceKind::cuda ? "_cuda" : "_far";
}

}  // namespace onset::testing
