// Blocked attention against the definition, one query at a time in float64.
#include "onset/kernels/blocked_attention.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <vector>

namespace onset::testing {
namespace {

struct Case {
  std::int64_t queries, keys, heads, groups, key_dim, value_dim;
  BlockedAttention options;
};

at::Tensor by_definition(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const BlockedAttention& options) {
  const std::int64_t queries = q.size(0);
  const std::int64_t heads = q.size(1);
  const std::int64_t shared = heads / k.size(0);
  at::Tensor out = at::empty({queries, heads, v.size(2)}, at::TensorOptions().dtype(at::kDouble));
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t position = k.size(1) - queries + i;
    const std::int64_t begin =
        options.window > 0 ? std::max<std::int64_t>(0, position - options.window + 1) : 0;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto seen = [&](const at::Tensor& rows) {
        return rows[h / shared].narrow(0, begin, position + 1 - begin).to(at::kDouble);
      };
      at::Tensor scores = at::mv(seen(k), q[i][h].to(at::kDouble)) * options.scale;
      if (options.softcap > 0) scores = at::tanh(scores / options.softcap) * options.softcap;
      out[i][h].copy_(at::mv(seen(v).t(), at::softmax(scores, 0)));
    }
  }
  return out;
}

TEST(BlockedAttention, IsTheSoftmaxOverTheKeysThatAQuerySees) {
  const c10::InferenceMode inference;
  at::manual_seed(5);
  const std::vector<Case> cases{
      {2, 2, 1, 1, 4, 4, {.scale = 0.5}},
      {70, 70, 9, 3, 16, 16, {.scale = 0.25}},
      {300, 300, 4, 1, 8, 8, {.scale = 0.3}},
      {33, 150, 6, 2, 16, 16, {.scale = 0.25}},                                 // behind a cache
      {200, 200, 4, 4, 24, 16, {.scale = 0.2}},                                 // V below K
      {257, 257, 4, 2, 16, 16, {.scale = 0.25, .window = 20}},                  //
      {90, 400, 4, 2, 16, 16, {.scale = 0.25, .window = 33}},                   //
      {130, 130, 4, 2, 16, 16, {.scale = 1.5, .window = 0, .softcap = 5.0}},    //
      {130, 190, 4, 2, 16, 16, {.scale = 1.5, .window = 64, .softcap = 30.0}},  //
      {5, 5, 2, 1, 8, 8, {.scale = 40.0}},                                      // large scores
  };
  for (const Case& c : cases) {
    const at::Tensor q = at::randn({c.queries, c.heads, c.key_dim});
    const at::Tensor k = at::randn({c.keys, c.groups, c.key_dim}).transpose(0, 1);
    const at::Tensor v = at::randn({c.keys, c.groups, c.value_dim}).transpose(0, 1);
    const at::Tensor got = blocked_attention(q, k, v, c.options);
    const at::Tensor wanted = by_definition(q, k, v, c.options);
    ASSERT_EQ(got.sizes(), wanted.sizes());
    EXPECT_LT((got.to(at::kDouble) - wanted).abs().max().item<double>(), 2e-5)
        << c.queries << " queries, " << c.keys << " keys, window " << c.options.window;
  }
}

}  // namespace
}  // namespace onset::testing
