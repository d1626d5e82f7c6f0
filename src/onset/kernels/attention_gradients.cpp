#include "onset/kernels/attention_gradients.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "onset/kernels/tile_attention_gradient.h"

namespace onset {
namespace {

// Queries whose shares of the gradients of keys and values are summed by themselves.
constexpr std::int64_t queries_per_part = 512;

struct Part {
  AttendedRows rows;
  std::int64_t group = 0;
  std::int64_t first_query = 0;
  std::int64_t queries = 0;  // up to this one
  KeyGradients found = {};
};

std::vector<Part> parts_of(std::span<const AttendedRows> sequences, std::int64_t groups) {
  std::vector<Part> parts;
  for (const AttendedRows& rows : sequences) {
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t first = 0; first < rows.count; first += queries_per_part) {
        parts.push_back({.rows = rows,
                         .group = group,
                         .first_query = first,
                         .queries = std::min(first + queries_per_part, rows.count)});
      }
    }
  }
  // The long ones first: they are dealt out one by one.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.queries > b.queries; });
  return parts;
}

void add_rows(const std::vector<float>& from, std::int64_t stride, std::int64_t rows,
              std::int64_t columns, float* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = from.data() + r * stride;
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_stride + c] += row[c];
  }
}

}  // namespace

AttentionStates attention_gradients(const at::Tensor& dout, const AttentionStates& states,
                                    std::span<const AttendedRows> sequences, double scale,
                                    std::int64_t window) {
  const std::int64_t groups = states.k.size(1);
  const std::int64_t heads = states.q.size(1) / groups;
  const std::int64_t dim = states.q.size(2);
  const std::int64_t value_dim = states.v.size(2);
  AttentionStates result{
      .q = at::empty_like(states.q), .k = at::zeros_like(states.k), .v = at::zeros_like(states.v)};
  const float* q = states.q.const_data_ptr<float>();
  const float* k = states.k.const_data_ptr<float>();
  const float* v = states.v.const_data_ptr<float>();
  const float* dout_data = dout.const_data_ptr<float>();
  float* dq = result.q.mutable_data_ptr<float>();
  float* dk = result.k.mutable_data_ptr<float>();
  float* dv = result.v.mutable_data_ptr<float>();
  std::vector<Part> parts = parts_of(sequences, groups);
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t p = next++; p < parts.size(); p = next++) {
      Part& part = parts[p];
      const std::int64_t row = part.rows.first;
      const std::int64_t head = part.group * heads;
      part.found = attend_gradient({.q = q + (row * groups * heads + head) * dim,
                                    .dout = dout_data + (row * groups * heads + head) * value_dim,
                                    .dq = dq + (row * groups * heads + head) * dim,
                                    .query_stride = groups * heads * dim,
                                    .out_stride = groups * heads * value_dim,
                                    .keys = k + (row * groups + part.group) * dim,
                                    .values = v + (row * groups + part.group) * value_dim,
                                    .key_stride = groups * dim,
                                    .value_stride = groups * value_dim,
                                    .first_query = part.first_query,
                                    .queries = part.queries,
                                    .heads = heads,
                                    .dim = dim,
                                    .value_dim = value_dim,
                                    .window = window,
                                    .scale = static_cast<float>(scale)});
    }
  });
  // The shares of a group in their order, whichever thread found them.
  at::parallel_for(0, groups, 1, [&](std::int64_t begin, std::int64_t end) {
    for (const Part& part : parts) {
      if (part.group < begin || part.group >= end) continue;
      const std::int64_t at = part.rows.first * groups + part.group;
      add_rows(part.found.keys, part.found.key_stride, part.queries, dim, dk + at * dim,
               groups * dim);
      add_rows(part.found.values, part.found.value_stride, part.queries, value_dim,
               dv + at * value_dim, groups * value_dim);
    }
  });
  return result;
}

}  // namespace onset
