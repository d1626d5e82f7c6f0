// What a router must not hold.
#include <gtest/gtest.h>

#include <limits>

#include "onset/model/model.h"
#include "support/fixture_copy.h"
#include "support/support.h"

namespace onset::testing {
namespace {

TEST(CorrectionBias, ThatIsNotFiniteIsRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Toy toy = copy_of_fixture("deepseek_v3");
    toy.values.at("model.layers.1.mlp.gate.e_score_correction_bias")[2] = bad;
    const TemporaryFolder folder;
    toy.write(folder.path());
    const std::string error = error_of([&] { static_cast<void>(Model::open(folder.path())); });
    EXPECT_NE(error.find("layer 1 has a correction bias that holds NaN or infinity"),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace onset::testing
