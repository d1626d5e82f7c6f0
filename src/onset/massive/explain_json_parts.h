// Small pieces of explain's JSON. Inside the massive room.
#pragma once

#include <optional>
#include <vector>

#include "onset/base/json.h"

namespace onset {

// A number that is not finite becomes null.
inline OrderedJson numbers_json(const std::vector<double>& values) {
  OrderedJson array = OrderedJson::array();
  for (const double value : values) array.push_back(finite_or_null(value));
  return array;
}

inline OrderedJson floats_json(const std::vector<float>& values) {
  OrderedJson array = OrderedJson::array();
  for (const float value : values) array.push_back(float_or_null(value));
  return array;
}

inline OrderedJson number_or_null(const std::optional<double>& value) {
  return value ? finite_or_null(*value) : OrderedJson(nullptr);
}

inline OrderedJson integer_or_null(const std::optional<std::int64_t>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// An array of what `make` gives for each.
template <typename Items, typename Make>
OrderedJson array_json(const Items& items, const Make& make) {
  OrderedJson array = OrderedJson::array();
  for (const auto& item : items) array.push_back(make(item));
  return array;
}

}  // namespace onset
