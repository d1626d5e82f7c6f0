#include "onset/kernels/cached_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "onset/base/cpu.h"

namespace onset {
namespace {

// Multiplications that are worth a thread.
constexpr std::int64_t least_products = 250'000;

// One key-value head of one sequence, and the query heads that share it.
template <typename T>
struct Task {
  const T* q;       // [heads, K]
  const T* keys;    // [count, K]
  const T* values;  // [count, V]
  T* out;           // [heads, V]
  std::int64_t heads;
  std::int64_t count;
  std::int64_t key_dim;
  std::int64_t value_dim;
  T scale;
  T softcap;
};

template <typename T>
[[gnu::always_inline]] inline void softmax_row(T* scores, std::int64_t count) {
  T largest = scores[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t s = 0; s < count; ++s) largest = std::max(largest, scores[s]);
  T sum = 0;
  for (std::int64_t s = 0; s < count; ++s) {
    scores[s] = std::exp(scores[s] - largest);
    sum += scores[s];
  }
  const T inverse = 1 / sum;
#pragma omp simd
  for (std::int64_t s = 0; s < count; ++s) scores[s] *= inverse;
}

// `scores`: room for heads * count.
template <typename T>
[[gnu::always_inline]] inline void attend_head(const Task<T>& task, T* scores) {
  for (std::int64_t s = 0; s < task.count; ++s) {
    const T* key = task.keys + s * task.key_dim;
    for (std::int64_t h = 0; h < task.heads; ++h) {
      const T* query = task.q + h * task.key_dim;
      T dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < task.key_dim; ++i) dot += query[i] * key[i];
      scores[h * task.count + s] = dot * task.scale;
    }
  }
  if (task.softcap > 0) {
    for (std::int64_t i = 0; i < task.heads * task.count; ++i) {
      scores[i] = task.softcap * std::tanh(scores[i] / task.softcap);
    }
  }
  for (std::int64_t h = 0; h < task.heads; ++h) softmax_row(scores + h * task.count, task.count);
  std::fill_n(task.out, task.heads * task.value_dim, T(0));
  for (std::int64_t s = 0; s < task.count; ++s) {
    const T* value = task.values + s * task.value_dim;
    for (std::int64_t h = 0; h < task.heads; ++h) {
      const T weight = scores[h * task.count + s];
      T* out = task.out + h * task.value_dim;
#pragma omp simd
      for (std::int64_t i = 0; i < task.value_dim; ++i) out[i] += weight * value[i];
    }
  }
}

// The same code for three instruction sets, chosen when it runs.
template <typename T>
[[gnu::target("avx512f,avx512vl,avx512dq,fma")]] void attend_avx512(const Task<T>& task,
                                                                    T* scores) {
  attend_head(task, scores);
}
template <typename T>
[[gnu::target("avx2,fma")]] void attend_avx2(const Task<T>& task, T* scores) {
  attend_head(task, scores);
}
template <typename T>
void attend_baseline(const Task<T>& task, T* scores) {
  attend_head(task, scores);
}

template <typename T>
auto chosen_kernel() {
  const CpuLevel level = best_cpu_level();
  if (level == CpuLevel::avx512) return &attend_avx512<T>;
  return level == CpuLevel::avx2 ? &attend_avx2<T> : &attend_baseline<T>;
}

template <typename T>
void attend_all(const at::Tensor& q, std::span<const CachedQuery> queries,
                const CachedAttention& attention, const at::Tensor& out) {
  const std::int64_t heads = q.size(1) / attention.groups;
  const std::int64_t key_dim = q.size(2);
  const T* q_data = q.const_data_ptr<T>();
  T* out_data = out.mutable_data_ptr<T>();
  const auto kernel = chosen_kernel<T>();
  const auto tasks = static_cast<std::int64_t>(queries.size()) * attention.groups;
  std::int64_t seen = 0;
  for (const CachedQuery& query : queries) {
    seen += attention.window > 0 ? std::min(attention.window, query.length) : query.length;
  }
  const std::int64_t products =
      std::max<std::int64_t>(1, seen * q.size(1) * (key_dim + attention.value_dim));
  const std::int64_t grain = std::max<std::int64_t>(1, least_products * tasks / products);
  at::parallel_for(0, tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> scores;
    for (std::int64_t index = begin; index < end; ++index) {
      const CachedQuery& query = queries[static_cast<std::size_t>(index / attention.groups)];
      const std::int64_t group = index % attention.groups;
      const std::int64_t count =
          attention.window > 0 ? std::min(attention.window, query.length) : query.length;
      const std::int64_t first = group * query.capacity + query.length - count;
      const std::int64_t head = (query.row * attention.groups + group) * heads;
      scores.resize(static_cast<std::size_t>(heads * count));
      kernel({.q = q_data + head * key_dim,
              .keys = static_cast<const T*>(query.keys) + first * key_dim,
              .values = static_cast<const T*>(query.values) + first * attention.value_dim,
              .out = out_data + head * attention.value_dim,
              .heads = heads,
              .count = count,
              .key_dim = key_dim,
              .value_dim = attention.value_dim,
              .scale = static_cast<T>(attention.scale),
              .softcap = static_cast<T>(attention.softcap)},
             scores.data());
    }
  });
}

}  // namespace

void attend_cached(const at::Tensor& q, std::span<const CachedQuery> queries,
                   const CachedAttention& attention, const at::Tensor& out) {
  if (q.scalar_type() == at::kDouble) {
    attend_all<double>(q, queries, attention, out);
  } else {
    attend_all<float>(q, queries, attention, out);
  }
}

}  // namespace onset
