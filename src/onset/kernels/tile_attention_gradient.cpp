#include "onset/kernels/tile_attention_gradient.h"

#include <algorithm>
#include <array>
#include <utility>

#include "onset/kernels/tile_kernels.h"

namespace onset {
namespace {

constexpr std::int64_t lanes = 32;
constexpr std::int64_t vector_lanes = 16;

std::int64_t whole_vectors(std::int64_t values) {
  return (values + vector_lanes - 1) / vector_lanes * vector_lanes;
}

using Values = std::vector<float>;

Values copied_rows(const float* from, std::int64_t stride, std::int64_t rows,
                   std::int64_t columns) {
  Values to(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * stride, columns, to.data() + r * columns);
  }
  return to;
}

class Work {
 public:
  explicit Work(const TileAttentionGradient& attention)
      : attention_(attention),
        keys_(copied_rows(attention.keys, attention.key_stride, attention.queries, attention.dim)),
        values_(copied_rows(attention.values, attention.value_stride, attention.queries,
                            attention.value_dim)),
        turned_keys_(keys_.size()),
        scores_(static_cast<std::size_t>(attention.queries * lanes)),
        changes_(scores_.size()),
        packed_(static_cast<std::size_t>(std::max(attention.dim, attention.value_dim) * lanes)),
        sums_(static_cast<std::size_t>(attention.dim * lanes)),
        dq_(sums_.size()) {
    tiles::turn_f32({.values = keys_.data(),
                     .stride = attention.dim,
                     .rows = attention.queries,
                     .columns = attention.dim},
                    attention.queries, turned_keys_.data());
    found_.key_stride = whole_vectors(attention.dim);
    found_.value_stride = whole_vectors(attention.value_dim);
    found_.keys.resize(static_cast<std::size_t>(attention.queries * found_.key_stride));
    found_.values.resize(static_cast<std::size_t>(attention.queries * found_.value_stride));
    q_.resize(static_cast<std::size_t>(lanes * found_.key_stride));
    dout_.resize(static_cast<std::size_t>(lanes * found_.value_stride));
  }

  // The pairs of query and head [first, first + lanes), as far as there are any.
  void add_block(std::int64_t first) {
    const std::int64_t count = std::min(lanes, attention_.queries * attention_.heads - first);
    std::array<std::int32_t, lanes> first_key{};
    std::array<std::int32_t, lanes> last_key{};
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t pair = first + std::min(lane, count - 1);
      take_pair(lane, pair, lane < count);
      const std::int64_t query = pair / attention_.heads;
      const auto at = static_cast<std::size_t>(lane);
      last_key[at] = static_cast<std::int32_t>(query);
      first_key[at] = static_cast<std::int32_t>(
          attention_.window > 0 ? std::max<std::int64_t>(0, query - attention_.window + 1) : 0);
    }
    const std::int64_t begin = first_key.front();
    const std::int64_t keys = last_key.back() + 1 - begin;
    for (std::size_t lane = 0; lane < first_key.size(); ++lane) {
      first_key[lane] -= static_cast<std::int32_t>(begin);
      last_key[lane] -= static_cast<std::int32_t>(begin);
    }
    tiles::attend_gradient({.queries = q_.data(),
                            .dout = dout_.data(),
                            .packed = packed_.data(),
                            .weights = scores_.data(),
                            .changes = changes_.data(),
                            .sums = sums_.data(),
                            .keys = keys_.data() + begin * attention_.dim,
                            .turned_keys = turned_keys_.data() + begin,
                            .turned_stride = attention_.queries,
                            .values = values_.data() + begin * attention_.value_dim,
                            .key_count = keys,
                            .dim = attention_.dim,
                            .value_dim = attention_.value_dim,
                            .dim_stride = found_.key_stride,
                            .value_stride = found_.value_stride,
                            .dqueries = dq_.data(),
                            .dkeys = found_.keys.data() + begin * found_.key_stride,
                            .dvalues = found_.values.data() + begin * found_.value_stride,
                            .first_key = first_key.data(),
                            .last_key = last_key.data()});
    for (std::int64_t lane = 0; lane < count; ++lane) give_pair(lane, first + lane);
  }

  KeyGradients take() { return std::move(found_); }

 private:
  [[nodiscard]] std::int64_t offset(std::int64_t pair, std::int64_t stride,
                                    std::int64_t dim) const {
    return pair / attention_.heads * stride + pair % attention_.heads * dim;
  }

  // Lanes past the last pair have no gradient to hand on.
  void take_pair(std::int64_t lane, std::int64_t pair, bool counts) {
    const float* q = attention_.q + offset(pair, attention_.query_stride, attention_.dim);
    std::transform(q, q + attention_.dim, q_.data() + lane * found_.key_stride,
                   [&](float value) { return value * attention_.scale; });
    float* dout = dout_.data() + lane * found_.value_stride;
    if (counts) {
      std::copy_n(attention_.dout + offset(pair, attention_.out_stride, attention_.value_dim),
                  attention_.value_dim, dout);
    } else {
      std::fill_n(dout, attention_.value_dim, 0.0F);
    }
  }

  void give_pair(std::int64_t lane, std::int64_t pair) {
    const float* from = dq_.data() + lane * attention_.dim;
    std::transform(from, from + attention_.dim,
                   attention_.dq + offset(pair, attention_.query_stride, attention_.dim),
                   [&](float value) { return value * attention_.scale; });
  }

  const TileAttentionGradient& attention_;
  Values keys_;
  Values values_;
  Values turned_keys_;
  Values scores_;
  Values changes_;
  Values packed_;
  Values sums_;
  Values dq_;
  Values q_ = {};
  Values dout_ = {};
  KeyGradients found_ = {};
};

}  // namespace

KeyGradients attend_gradient(const TileAttentionGradient& attention) {
  Work work(attention);
  const std::int64_t pairs = attention.queries * attention.heads;
  for (std::int64_t first = attention.first_query * attention.heads; first < pairs;
       first += lanes) {
    work.add_block(first);
  }
  return work.take();
}

}  // namespace onset
