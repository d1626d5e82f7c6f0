// The references of training (tensors and curves made with plain PyTorch loops), which lie beside
// the checkout and are too large for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {

// Tests of this fixture are skipped where the references are not there.
class TrainingFixtures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shared_fixture("training/reference.json").empty()) {
      GTEST_SKIP() << "shared/fixtures/training is not beside the checkout";
    }
  }

  [[nodiscard]] static Json read(const std::string& name) {
    return read_json(shared_fixture("training/" + name));
  }
};

}  // namespace onset::testing
