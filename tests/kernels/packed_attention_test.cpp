// Attention of many sequences in one call against its definition in float64.
#include "onset/kernels/packed_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "onset/kernels/tile_product.h"
#include "support/random_values.h"

namespace onset::testing {
namespace {

constexpr std::int64_t groups = 3;
constexpr std::int64_t heads = 6;  // two share a key-value head
constexpr std::int64_t dim = 24;
constexpr std::int64_t value_dim = 20;
constexpr double scale = 0.3;

at::Tensor random_tensor(std::vector<std::int64_t> shape, unsigned seed) {
  at::Tensor out = at::empty(shape);
  const auto values = normal_values(out.numel(), seed);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<float>());
  return out;
}

// A prefix of 21 positions in a cache, then packed rows: sequences of these lengths, each behind
// another one (-1: behind none) or behind the prefix (-2).
struct Sequence {
  std::int64_t count;
  std::int64_t behind;
};
const std::vector<Sequence> sequences{{5, -1}, {7, -2}, {1, 1}, {40, 1},
                                      {3, 3},  {9, -2}, {2, 5}, {18, -1}};

class PackedAttentionTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  // [S, K] and [S, V] of one key-value head.
  struct Seen {
    std::vector<const float*> keys;
    std::vector<const float*> values;
  };

  std::int64_t row_of(std::int64_t s) const {
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < s; ++i) row += sequences[static_cast<std::size_t>(i)].count;
    return row;
  }
  std::int64_t rows() const { return row_of(std::ssize(sequences)); }

  Seen seen_by(std::int64_t s, std::int64_t group) const {
    Seen seen;
    const Sequence& sequence = sequences[static_cast<std::size_t>(s)];
    if (sequence.behind >= 0) seen = seen_by(sequence.behind, group);
    for (std::int64_t j = 0; sequence.behind == -2 && j < prefix; ++j) {
      seen.keys.push_back(kept_keys_.const_data_ptr<float>() + (group * capacity + j) * dim);
      seen.values.push_back(kept_values_.const_data_ptr<float>() +
                            (group * capacity + j) * value_dim);
    }
    for (std::int64_t j = row_of(s); j < row_of(s) + sequence.count; ++j) {
      seen.keys.push_back(keys_.const_data_ptr<float>() + (j * groups + group) * dim);
      seen.values.push_back(values_.const_data_ptr<float>() + (j * groups + group) * value_dim);
    }
    return seen;
  }

  std::vector<double> expected(std::int64_t s, std::int64_t query, std::int64_t head) const {
    const Seen seen = seen_by(s, head / (heads / groups));
    const std::int64_t count = sequences[static_cast<std::size_t>(s)].count;
    const auto last = static_cast<std::int64_t>(seen.keys.size()) - count + query;
    const std::int64_t first =
        GetParam() > 0 ? std::max<std::int64_t>(0, last - GetParam() + 1) : 0;
    const float* q = q_.const_data_ptr<float>() + ((row_of(s) + query) * heads + head) * dim;
    double total = 0;
    std::vector<double> out(value_dim);
    for (auto j = static_cast<std::size_t>(first); j <= static_cast<std::size_t>(last); ++j) {
      double score = 0;
      for (std::int64_t i = 0; i < dim; ++i) {
        score += static_cast<double>(q[i]) * static_cast<double>(seen.keys[j][i]);
      }
      const double weight = std::exp(scale * score);
      total += weight;
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] += weight * static_cast<double>(seen.values[j][i]);
      }
    }
    for (double& value : out) value /= total;
    return out;
  }

  std::vector<KeySegment> segments_of(std::int64_t s) const {
    std::vector<KeySegment> segments;
    const Sequence& sequence = sequences[static_cast<std::size_t>(s)];
    if (sequence.behind >= 0) segments = segments_of(sequence.behind);
    if (sequence.behind == -2) {
      segments.push_back({.keys = kept_keys_.const_data_ptr<float>(),
                          .values = kept_values_.const_data_ptr<float>(),
                          .count = prefix,
                          .key_step = dim,
                          .value_step = value_dim,
                          .key_group = capacity * dim,
                          .value_group = capacity * value_dim});
    }
    segments.push_back({.keys = keys_.const_data_ptr<float>() + row_of(s) * groups * dim,
                        .values = values_.const_data_ptr<float>() + row_of(s) * groups * value_dim,
                        .count = sequence.count,
                        .key_step = groups * dim,
                        .value_step = groups * value_dim,
                        .key_group = dim,
                        .value_group = value_dim});
    return segments;
  }

  static constexpr std::int64_t prefix = 21;
  static constexpr std::int64_t capacity = 32;
  at::Tensor q_ = random_tensor({rows(), heads, dim}, 1);
  at::Tensor keys_ = random_tensor({rows(), groups, dim}, 2);
  at::Tensor values_ = random_tensor({rows(), groups, value_dim}, 3);
  at::Tensor kept_keys_ = random_tensor({groups, capacity, dim}, 4);
  at::Tensor kept_values_ = random_tensor({groups, capacity, value_dim}, 5);
};

TEST_P(PackedAttentionTest, IsThatOfEachSequenceOnAnyNumberOfThreads) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  std::vector<PackedQueries> packed;
  for (std::int64_t s = 0; s < std::ssize(sequences); ++s) {
    packed.push_back({.row = row_of(s),
                      .count = sequences[static_cast<std::size_t>(s)].count,
                      .seen = segments_of(s)});
  }
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    const at::Tensor out = at::full({rows(), heads, value_dim}, -7.0F);
    attend_packed(q_, packed,
                  {.groups = groups, .value_dim = value_dim, .window = GetParam(), .scale = scale},
                  out);
    const float* at = out.const_data_ptr<float>();
    for (std::int64_t s = 0; s < std::ssize(sequences); ++s) {
      for (std::int64_t i = 0; i < sequences[static_cast<std::size_t>(s)].count; ++i) {
        for (std::int64_t head = 0; head < heads; ++head) {
          for (const double value : expected(s, i, head)) {
            ASSERT_NEAR(static_cast<double>(*at++), value, 1e-5)
                << threads << " threads, sequence " << s << ", query " << i << ", head " << head;
          }
        }
      }
    }
  }
  at::set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Windows, PackedAttentionTest, ::testing::Values(0, 6, 30));

TEST(PackedAttentionShares, OneLongSequenceIsWorkedOnByAllThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const auto sequence = [](std::int64_t count) {
    return PackedQueries{.count = count, .seen = {{.count = count}}};
  };
  const PackedAttention attention{.groups = groups};
  EXPECT_TRUE(suits_packed_attention(std::vector(16, sequence(10)), attention));
  EXPECT_FALSE(
      suits_packed_attention(std::vector{sequence(10), sequence(100), sequence(10)}, attention));
  at::set_num_threads(before);
}

}  // namespace
}  // namespace onset::testing
