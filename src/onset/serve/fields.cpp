#include "onset/serve/fields.h"

#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/serve/api_error.h"

namespace onset {
namespace {

ApiError wrong_kind(const std::string& path, const std::string& expected, const Json& value) {
  return {str_cat(path, ": should be ", expected, ", is ", kind_of(value)),
          {.param = path, .code = "invalid_type"}};
}

}  // namespace

std::string kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    default:
      return "a number";
  }
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  const std::string what = path_.empty() ? "the request" : path_;
  throw ApiError(str_cat(what, ": should be an object, is ", kind_of(object)),
                 {.param = path_, .code = "invalid_type"});
}

std::string Fields::path_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

const Json* Fields::find(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> Fields::integer(const std::string& key, std::int64_t min,
                                            std::int64_t max) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string path = path_of(key);
  // 5.0 is an integer to clients whose language has one kind of numbers.
  const bool whole = value->is_number_float() && std::abs(value->get<double>()) < 1e15 &&
                     value->get<double>() == std::floor(value->get<double>());
  if (!value->is_number_integer() && !whole) throw wrong_kind(path, "an integer", *value);
  const bool too_large = value->is_number_unsigned() &&
                         value->get<std::uint64_t>() >
                             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto number =
      too_large ? std::numeric_limits<std::int64_t>::max() : value->get<std::int64_t>();
  if (too_large || number < min || number > max) {
    throw bad_field(path, str_cat(path, ": ", value->dump(), " is not from ", min, " to ", max));
  }
  return number;
}

std::optional<double> Fields::number(const std::string& key, double min, double max) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string path = path_of(key);
  if (!value->is_number()) throw wrong_kind(path, "a number", *value);
  const auto number = value->get<double>();
  if (!(number >= min && number <= max)) {
    throw bad_field(path, str_cat(path, ": ", value->dump(), " is not from ", min, " to ", max));
  }
  return number;
}

std::optional<bool> Fields::boolean(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw wrong_kind(path_of(key), "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> Fields::text(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw wrong_kind(path_of(key), "a string", *value);
  return value->get<std::string>();
}

void Fields::ignore(const std::vector<std::string>& keys) {
  known_.insert(keys.begin(), keys.end());
}

void Fields::refuse_others() const {
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    const auto near = did_you_mean(nearest(key, {known_.begin(), known_.end()}, 1));
    throw ApiError(str_cat("unknown field ", quote(path_of(key)), near.empty() ? "" : ": ", near),
                   {.param = path_of(key), .code = "unknown_parameter"});
  }
}

}  // namespace onset
