// Products with a stored Q8_0 weight for any number of rows, whichever kernel makes them, against
// sums in float64 over the block's definition: 32 integers times one scale.
#include "onset/kernels/stored_matrix.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "support/random_values.h"

namespace onset::testing {
namespace {

constexpr std::int64_t columns = 96;
constexpr std::int64_t rows = 137;

struct Q8Weight {
  std::vector<std::byte> bytes;
  std::vector<float> values;

  Q8Weight() {
    std::mt19937 random(4);
    std::uniform_int_distribution<int> code(-127, 127);
    for (std::int64_t block = 0; block < rows * columns / 32; ++block) {
      const at::Half scale(0.001F * static_cast<float>(1 + random() % 50));
      const auto* scale_bytes = reinterpret_cast<const std::byte*>(&scale);
      bytes.insert(bytes.end(), scale_bytes, scale_bytes + sizeof scale);
      for (int i = 0; i < 32; ++i) {
        const int q = code(random);
        bytes.push_back(static_cast<std::byte>(q));
        values.push_back(static_cast<float>(q) * static_cast<float>(scale));
      }
    }
  }
  [[nodiscard]] StoredMatrix stored() const { return {bytes, DType::q8_0, rows, columns}; }
};

template <typename Round>
void expect_product(const at::Tensor& out, const at::Tensor& x, const Q8Weight& weight,
                    const Round& round) {
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      double size = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double term = round(x.const_data_ptr<float>()[i * columns + c]) *
                            round(weight.values[static_cast<std::size_t>(r * columns + c)]);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(out.const_data_ptr<float>()[i * rows + r]), sum,
                  2e-6 * size + 1e-6)
          << x.size(0) << " rows, at " << i << ", " << r;
    }
  }
}

TEST(StoredMatrixProducts, AreThoseOfFloat32ForAnyNumberOfRows) {
  const c10::InferenceMode inference;
  const Q8Weight weight;
  for (std::int64_t n = 1; n <= 17; ++n) {
    const at::Tensor x = at::randn({n, columns});
    expect_product(multiply(x, weight.stored()), x, weight,
                   [](float value) { return static_cast<double>(value); });
  }
}

TEST(StoredMatrixProducts, OfBfloat16RoundBothSides) {
  const c10::InferenceMode inference;
  const Q8Weight weight;
  if (!multiplies_bf16_as_stored(1, weight.stored())) GTEST_SKIP() << "not on this CPU";
  for (std::int64_t n = 1; multiplies_bf16_as_stored(n, weight.stored()); ++n) {
    const at::Tensor x = at::randn({n, columns});
    expect_product(multiply_bf16(x, weight.stored()), x, weight,
                   [](float value) { return static_cast<double>(rounded(value)); });
  }
}

TEST(StoredMatrixProducts, OfBfloat16RoundAWeightPanelByPanel) {
  const c10::InferenceMode inference;
  const Q8Weight weight;
  if (!rounds_by_panels(weight.stored())) GTEST_SKIP() << "not on this CPU";
  for (const std::int64_t n : {0, 1, 5, 16, 49, 200}) {
    const at::Tensor x = at::randn({n, columns});
    expect_product(multiply_bf16(x, weight.stored()), x, weight,
                   [](float value) { return static_cast<double>(rounded(value)); });
  }
}

}  // namespace
}  // namespace onset::testing
