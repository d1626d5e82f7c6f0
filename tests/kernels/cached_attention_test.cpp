// Attention to caches against the formula, written with whole matrices.
#include "onset/kernels/cached_attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <random>

#include "support/tensors.h"

namespace onset::testing {
namespace {

struct Sizes {
  std::int64_t groups;
  std::int64_t heads;
  std::int64_t key_dim;
  std::int64_t value_dim;
  std::int64_t window;
  double softcap;
};

class CachedAttentionFormula : public ::testing::TestWithParam<Sizes> {};

TEST_P(CachedAttentionFormula, EqualsTheFormula) {
  const Sizes sizes = GetParam();
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto options = at::TensorOptions().dtype(type);
    const std::int64_t rows = 7;
    const at::Tensor q = at::randn({rows, sizes.heads, sizes.key_dim}, options);
    const at::Tensor untouched = at::full({rows, sizes.heads, sizes.value_dim}, 7.0, options);
    const at::Tensor out = untouched.clone();
    at::Tensor expected = untouched.clone();
    std::vector<at::Tensor> stores;
    std::vector<CachedQuery> queries;
    const double scale = 1.0 / std::sqrt(static_cast<double>(sizes.key_dim));
    for (const auto& [row, length] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 5}, {3, 130}, {6, 64}}) {
      const std::int64_t capacity = length + 3;
      const at::Tensor keys = at::randn({sizes.groups, capacity, sizes.key_dim}, options);
      const at::Tensor values = at::randn({sizes.groups, capacity, sizes.value_dim}, options);
      stores.push_back(keys);
      stores.push_back(values);
      queries.push_back({.row = row,
                         .keys = keys.const_data_ptr(),
                         .values = values.const_data_ptr(),
                         .capacity = capacity,
                         .length = length});
      const std::int64_t seen = sizes.window > 0 ? std::min(sizes.window, length) : length;
      const auto visible = [&](const at::Tensor& store) {
        return store.narrow(1, length - seen, seen)
            .repeat_interleave(sizes.heads / sizes.groups, 0)
            .to(at::kDouble);  // [H, seen, ..]
      };
      at::Tensor scores =
          at::matmul(visible(keys), q[row].to(at::kDouble).unsqueeze(2)).squeeze(2) * scale;
      if (sizes.softcap > 0) scores = at::tanh(scores / sizes.softcap) * sizes.softcap;
      expected[row].copy_(
          at::matmul(at::softmax(scores, -1).unsqueeze(1), visible(values)).squeeze(1));
    }
    attend_cached(q, queries,
                  {.groups = sizes.groups,
                   .value_dim = sizes.value_dim,
                   .window = sizes.window,
                   .scale = scale,
                   .softcap = sizes.softcap},
                  out);
    const double tolerance = type == at::kFloat ? 2e-6 : 1e-13;
    EXPECT_TRUE(close(out, expected, {.atol = tolerance, .rtol = tolerance}));
    EXPECT_TRUE(out[2].equal(untouched[2]));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CachedAttentionFormula,
                         ::testing::Values(Sizes{3, 9, 64, 64, 0, 0}, Sizes{1, 1, 5, 3, 0, 0},
                                           Sizes{2, 8, 16, 16, 6, 0}, Sizes{4, 4, 33, 17, 0, 2.5},
                                           Sizes{2, 4, 128, 128, 8, 50}));

}  // namespace
}  // namespace onset::testing
