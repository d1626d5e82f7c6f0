// Attention by tiles against its definition in float64.
#include "onset/kernels/tile_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "onset/kernels/tile_product.h"
#include "support/random_values.h"

namespace onset::testing {
namespace {

struct Case {
  std::int64_t queries, heads, dim, value_dim, seen, window;
};

struct Inputs {
  std::vector<float> q;       // [queries, heads, dim]
  std::vector<float> keys;    // [seen, dim]
  std::vector<float> values;  // [value_dim, seen]
};

Inputs inputs_of(const Case& c) {
  std::mt19937 random(5);
  return {.q = normal_values(c.queries * c.heads * c.dim, random),
          .keys = normal_values(c.seen * c.dim, random),
          .values = normal_values(c.value_dim * c.seen, random)};
}

std::vector<float> by_tiles(const Case& c, const Inputs& inputs, float scale) {
  std::vector<float> out(static_cast<std::size_t>(c.queries * c.heads * c.value_dim), -7.0F);
  const TileAttention attention{.q = inputs.q.data(),
                                .keys = inputs.keys.data(),
                                .values = inputs.values.data(),
                                .out = out.data(),
                                .queries = c.queries,
                                .heads = c.heads,
                                .dim = c.dim,
                                .value_dim = c.value_dim,
                                .query_stride = c.heads * c.dim,
                                .out_stride = c.heads * c.value_dim,
                                .seen = c.seen,
                                .window = c.window,
                                .scale = scale};
  for (std::int64_t b = 0; b < blocks_of(attention); ++b) attend_tile(attention, b);
  return out;
}

double at(const std::vector<float>& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}

// softmax_j(scale q . k_j) v_j over the keys that query t sees.
std::vector<double> by_definition(const Case& c, const Inputs& inputs, double scale,
                                  std::int64_t query, std::int64_t head) {
  const std::int64_t last = c.seen - c.queries + query;
  const std::int64_t first = c.window > 0 ? std::max<std::int64_t>(0, last - c.window + 1) : 0;
  std::vector<double> scores;
  for (std::int64_t key = first; key <= last; ++key) {
    double score = 0;
    for (std::int64_t d = 0; d < c.dim; ++d) {
      score +=
          at(inputs.q, (query * c.heads + head) * c.dim + d) * at(inputs.keys, key * c.dim + d);
    }
    scores.push_back(score * scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  std::vector<double> out(static_cast<std::size_t>(c.value_dim));
  for (std::int64_t d = 0; d < c.value_dim; ++d) {
    for (std::int64_t key = first; key <= last; ++key) {
      out[static_cast<std::size_t>(d)] += scores[static_cast<std::size_t>(key - first)] / total *
                                          at(inputs.values, d * c.seen + key);
    }
  }
  return out;
}

TEST(TileAttention, EqualsTheDefinition) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const Case& c : std::vector<Case>{{2, 1, 8, 8, 2, 0},
                                         {70, 3, 64, 64, 70, 0},
                                         {33, 4, 24, 16, 450, 0},
                                         {200, 2, 16, 40, 200, 17},
                                         {5, 7, 6, 10, 300, 250},
                                         {40, 1, 128, 128, 41, 1}}) {
    const Inputs inputs = inputs_of(c);
    for (const float scale : {0.125F, 3.0F}) {
      const std::vector<float> out = by_tiles(c, inputs, scale);
      for (std::int64_t query = 0; query < c.queries; ++query) {
        for (std::int64_t head = 0; head < c.heads; ++head) {
          const auto expected = by_definition(c, inputs, static_cast<double>(scale), query, head);
          for (std::int64_t d = 0; d < c.value_dim; ++d) {
            ASSERT_NEAR(at(out, (query * c.heads + head) * c.value_dim + d),
                        expected[static_cast<std::size_t>(d)], 2e-5)
                << c.queries << " queries of " << c.heads << " heads, " << c.seen
                << " keys, window " << c.window << ": query " << query << " head " << head
                << " dim " << d;
          }
        }
      }
    }
  }
}

TEST(TileAttention, AScoreThatIsNotANumberReachesTheQueriesThatSeeItAlone) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  const Case c{10, 2, 8, 8, 10, 0};
  Inputs inputs = inputs_of(c);
  inputs.keys[4 * 8] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> out = by_tiles(c, inputs, 0.3F);
  for (std::int64_t query = 0; query < c.queries; ++query) {
    EXPECT_EQ(std::isnan(at(out, query * c.heads * c.value_dim)), query >= 4) << query;
  }
}

// A massive score leaves the others no weight, and nothing overflows.
TEST(TileAttention, ScoresFarApartAreExact) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  const Case c{3, 1, 1, 1, 3, 0};
  const Inputs inputs{.q = {1.0F, 1.0F, 1.0F}, .keys = {1e4F, -1e4F, 2e4F}, .values = {3, 5, 7}};
  EXPECT_EQ(by_tiles(c, inputs, 1.0F), (std::vector<float>{3, 3, 7}));
}

}  // namespace
}  // namespace onset::testing
