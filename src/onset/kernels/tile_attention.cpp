#include "onset/kernels/tile_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "onset/kernels/tile_kernels.h"

namespace onset {
namespace {

constexpr std::int64_t lanes = tile_attention_lanes;

// What a thread keeps between blocks.
struct Scratch {
  std::vector<float> rows;    // [lanes, dim], then [lanes, value_dim]
  std::vector<float> packed;  // [dim, lanes]
  std::vector<float> scores;  // [keys, lanes]
  std::vector<float> sums;    // [value_dim, lanes]
};

}  // namespace

void attend_tile(const TileAttention& attention, std::int64_t b) {
  thread_local Scratch scratch;
  const std::int64_t pairs = attention.queries * attention.heads;
  const std::int64_t first = b * lanes;
  const std::int64_t count = std::min(lanes, pairs - first);
  const std::int64_t before = attention.seen - attention.queries;
  std::array<std::int32_t, lanes> last_key{};
  std::array<std::int32_t, lanes> first_key{};
  scratch.rows.resize(
      static_cast<std::size_t>(lanes * std::max(attention.dim, attention.value_dim)));
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t pair = first + std::min(lane, count - 1);
    const std::int64_t query = pair / attention.heads;
    const auto at = static_cast<std::size_t>(lane);
    const std::int64_t last = before + query;
    last_key[at] = static_cast<std::int32_t>(last);
    first_key[at] = static_cast<std::int32_t>(
        attention.window > 0 ? std::max<std::int64_t>(0, last - attention.window + 1) : 0);
    const float* from =
        attention.q + query * attention.query_stride + pair % attention.heads * attention.dim;
    std::transform(from, from + attention.dim, scratch.rows.data() + lane * attention.dim,
                   [&](float v) { return v * attention.scale; });
  }
  const std::int64_t begin = first_key.front();
  const std::int64_t keys = last_key.back() + 1 - begin;
  for (std::size_t lane = 0; lane < first_key.size(); ++lane) {
    first_key[lane] -= static_cast<std::int32_t>(begin);
    last_key[lane] -= static_cast<std::int32_t>(begin);
  }
  scratch.packed.resize(static_cast<std::size_t>(attention.dim * lanes));
  scratch.scores.resize(static_cast<std::size_t>(keys * lanes));
  scratch.sums.resize(static_cast<std::size_t>(attention.value_dim * lanes));
  tiles::attend(
      {.rows = scratch.rows.data(),
       .packed = scratch.packed.data(),
       .scores = scratch.scores.data(),
       .sums = scratch.sums.data(),
       .keys = attention.keys + begin * attention.dim,
       .values = attention.values + begin,
       .value_stride = attention.value_stride > 0 ? attention.value_stride : attention.seen,
       .key_count = keys,
       .dim = attention.dim,
       .value_dim = attention.value_dim,
       .first_key = first_key.data(),
       .last_key = last_key.data()});
  for (std::int64_t lane = 0; lane < count; ++lane) {
    const std::int64_t pair = first + lane;
    std::copy_n(scratch.rows.data() + lane * attention.value_dim, attention.value_dim,
                attention.out + pair / attention.heads * attention.out_stride +
                    pair % attention.heads * attention.value_dim);
  }
}

}  // namespace onset
