// The references of training: tensors and curves made with plain PyTorch loops.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {

class TrainingFixtures : public ::testing::Test {
 protected:
  [[nodiscard]] static Json read(const std::string& name) {
    return read_json(onset::testing::data("training/" + name));
  }
};

}  // namespace onset::testing
