#include "onset/model/cache.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace onset {
namespace {

constexpr std::int64_t smallest_capacity = 64;

void write_behind(at::Tensor& store, std::int64_t length, const at::Tensor& fresh) {
  const std::int64_t needed = length + fresh.size(0);
  const std::int64_t capacity = store.defined() ? store.size(1) : 0;
  if (needed > capacity) {
    at::Tensor larger = at::empty(
        {fresh.size(1), std::max({needed, 2 * capacity, smallest_capacity}), fresh.size(2)},
        fresh.options());
    if (length > 0) larger.narrow(1, 0, length).copy_(store.narrow(1, 0, length));
    store = std::move(larger);
  }
  store.narrow(1, length, fresh.size(0)).copy_(fresh.transpose(0, 1));
}

}  // namespace

void KvCache::truncate(std::int64_t length) {
  if (length < this->length()) ids_.resize(static_cast<std::size_t>(length));
}

KvCache::View KvCache::append(std::int64_t layer, const at::Tensor& keys,
                              const at::Tensor& values) {
  Layer& store = layers_.at(static_cast<std::size_t>(layer));
  write_behind(store.keys, length(), keys);
  const std::int64_t total = length() + keys.size(0);
  if (!values.defined()) return {store.keys.narrow(1, 0, total), {}};
  write_behind(store.values, length(), values);
  return {store.keys.narrow(1, 0, total), store.values.narrow(1, 0, total)};
}

KvCache::View KvCache::kept(std::int64_t layer) const {
  const Layer& store = layers_.at(static_cast<std::size_t>(layer));
  View view;
  if (store.keys.defined()) view.keys = store.keys.narrow(1, 0, length());
  if (store.values.defined()) view.values = store.values.narrow(1, 0, length());
  return view;
}

}  // namespace onset
