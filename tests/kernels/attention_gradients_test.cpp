// Gradients of attention against libtorch's autograd on its definition in float64.
#include "onset/kernels/attention_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "onset/kernels/tile_product.h"
#include "support/random_values.h"

namespace onset::testing {
namespace {

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t groups, heads, dim, value_dim, window;  // `heads` to each group
};

at::Tensor normal(at::IntArrayRef shape, unsigned seed) {
  return at::tensor(normal_values(c10::multiply_integers(shape), seed)).view(shape);
}

// Of one sequence: softmax over the keys that each query sees, [T, H, V].
at::Tensor by_definition(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         double scale, std::int64_t window) {
  const std::int64_t tokens = q.size(0);
  const std::int64_t heads = q.size(1) / k.size(1);
  const auto for_heads = [&](const at::Tensor& t) {
    return t.repeat_interleave(heads, 1).transpose(0, 1);  // [H, T, ..]
  };
  const at::Tensor position = at::arange(tokens);
  const at::Tensor distance = position.unsqueeze(1).sub(position.unsqueeze(0));
  at::Tensor hidden = distance.lt(0);
  if (window > 0) hidden = hidden.logical_or(distance.ge(window));
  const at::Tensor scores = at::matmul(q.transpose(0, 1), for_heads(k).transpose(1, 2)).mul(scale);
  const at::Tensor weights =
      at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(weights, for_heads(v)).transpose(0, 1);
}

void expect_near(const at::Tensor& got, const at::Tensor& expected, const char* name) {
  const at::Tensor error = got.to(at::kDouble).sub(expected).abs();
  EXPECT_LT(error.max().item<double>(), 2e-6 * (1 + expected.abs().max().item<double>())) << name;
}

void check(const Case& c) {
  constexpr double scale = 0.3;
  std::vector<AttendedRows> sequences;
  std::int64_t rows = 0;
  for (const std::int64_t length : c.lengths) {
    sequences.push_back({rows, length});
    rows += length;
  }
  const AttentionStates states{.q = normal({rows, c.groups * c.heads, c.dim}, 1),
                               .k = normal({rows, c.groups, c.dim}, 2),
                               .v = normal({rows, c.groups, c.value_dim}, 3)};
  const at::Tensor dout = normal({rows, c.groups * c.heads, c.value_dim}, 4);
  const auto exact = [](const at::Tensor& t) { return t.to(at::kDouble).requires_grad_(true); };
  const at::Tensor q = exact(states.q);
  const at::Tensor k = exact(states.k);
  const at::Tensor v = exact(states.v);
  for (const AttendedRows& own : sequences) {
    const auto part = [&](const at::Tensor& t) { return t.narrow(0, own.first, own.count); };
    by_definition(part(q), part(k), part(v), scale, c.window).backward(part(dout).to(at::kDouble));
  }
  const AttentionStates found = attention_gradients(dout, states, sequences, scale, c.window);
  expect_near(found.q, q.grad(), "q");
  expect_near(found.k, k.grad(), "k");
  expect_near(found.v, v.grad(), "v");
}

TEST(AttentionGradients, EqualAutogradOfTheDefinition) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  // Sequences of one token, groups of heads, dims that fill no vector, windows, and queries in
  // more than one part.
  check({.lengths = {1}, .groups = 1, .heads = 1, .dim = 16, .value_dim = 16, .window = 0});
  check({.lengths = {7, 40, 1}, .groups = 3, .heads = 3, .dim = 64, .value_dim = 64, .window = 0});
  check({.lengths = {33, 20}, .groups = 2, .heads = 1, .dim = 24, .value_dim = 40, .window = 0});
  check({.lengths = {70, 5}, .groups = 1, .heads = 4, .dim = 6, .value_dim = 3, .window = 9});
  check({.lengths = {600}, .groups = 1, .heads = 2, .dim = 16, .value_dim = 20, .window = 0});
  check({.lengths = {600}, .groups = 2, .heads = 1, .dim = 8, .value_dim = 8, .window = 100});
}

}  // namespace
}  // namespace onset::testing
