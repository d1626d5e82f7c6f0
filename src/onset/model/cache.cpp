#include "onset/model/cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace onset {
namespace {

constexpr std::int64_t smallest_capacity = 64;

// Makes room for `needed` positions of heads like those of `fresh` [T, G, K].
void grow(at::Tensor& store, std::int64_t length, std::int64_t needed, const at::Tensor& fresh) {
  const std::int64_t capacity = store.defined() ? store.size(1) : 0;
  if (needed <= capacity) return;
  at::Tensor larger =
      at::empty({fresh.size(1), std::max({needed, 2 * capacity, smallest_capacity}), fresh.size(2)},
                fresh.options());
  if (length > 0) larger.narrow(1, 0, length).copy_(store.narrow(1, 0, length));
  store = std::move(larger);
}

void write_behind(at::Tensor& store, std::int64_t length, const at::Tensor& fresh) {
  grow(store, length, length + fresh.size(0), fresh);
  store.narrow(1, length, fresh.size(0)).copy_(fresh.transpose(0, 1));
}

void write_row_behind(at::Tensor& store, std::int64_t length, const at::Tensor& fresh,
                      std::int64_t row) {
  grow(store, length, length + 1, fresh);
  const std::int64_t heads = fresh.size(1);
  const auto head_bytes = static_cast<std::size_t>(fresh.size(2) * fresh.element_size());
  const auto stride = static_cast<std::size_t>(store.size(1)) * head_bytes;
  const auto* from = static_cast<const std::byte*>(fresh.const_data_ptr()) +
                     static_cast<std::size_t>(row * heads) * head_bytes;
  auto* to = static_cast<std::byte*>(store.mutable_data_ptr()) +
             static_cast<std::size_t>(length) * head_bytes;
  for (std::int64_t head = 0; head < heads; ++head, from += head_bytes, to += stride) {
    std::memcpy(to, from, head_bytes);
  }
}

}  // namespace

void KvCache::truncate(std::int64_t length) {
  if (length < this->length()) ids_.resize(static_cast<std::size_t>(length));
}

KvCache KvCache::prefix_copy(std::int64_t length) const {
  KvCache copy(static_cast<std::int64_t>(layers_.size()));
  const auto copied = [length](const at::Tensor& store) {
    if (!store.defined() || length == 0) return at::Tensor();
    const std::int64_t capacity = length + std::max(smallest_capacity, length / 4);
    at::Tensor part = at::empty({store.size(0), capacity, store.size(2)}, store.options());
    part.narrow(1, 0, length).copy_(store.narrow(1, 0, length));
    return part;
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    copy.layers_[i] = {copied(layers_[i].keys), copied(layers_[i].values)};
  }
  copy.ids_.assign(ids_.begin(), ids_.begin() + length);
  copy.rope_length_ = rope_length_;
  return copy;
}

std::int64_t KvCache::bytes() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers_) {
    for (const at::Tensor& store : {layer.keys, layer.values}) {
      if (store.defined()) sum += static_cast<std::int64_t>(store.nbytes());
    }
  }
  return sum;
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

KvCache::Place KvCache::append_row(std::int64_t layer, const at::Tensor& keys,
                                   const at::Tensor& values, std::int64_t row) {
  Layer& store = layers_.at(static_cast<std::size_t>(layer));
  write_row_behind(store.keys, length(), keys, row);
  write_row_behind(store.values, length(), values, row);
  return {.keys = store.keys.const_data_ptr(),
          .values = store.values.const_data_ptr(),
          .capacity = store.keys.size(1)};
}

}  // namespace onset
