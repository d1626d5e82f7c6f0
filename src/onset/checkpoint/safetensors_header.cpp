#include "onset/checkpoint/safetensors_header.h"

#include <cstddef>
#include <optional>
#include <unordered_set>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view metadata_key = "__metadata__";
// Far more than any tensor has; bounds what one entry may cost.
constexpr std::size_t max_dimensions = 64;

// Receives the events of the JSON parser; `place_` says where in the structure the next one stands.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(std::string where, SafetensorsHeader& header)
      : where_(std::move(where)), header_(header) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_float(double /*value*/, const std::string& text) override { unexpected(text); }
  bool binary(Json::binary_t& /*value*/) override { unexpected("binary data"); }

  bool number_integer(std::int64_t value) override {
    unexpected(std::to_string(value));  // negative: the parser sends the others as unsigned
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::shape) {
      if (value > std::uint64_t{INT64_MAX}) unexpected(std::to_string(value));
      if (entry_.shape.size() == max_dimensions)
        fail(" has more than ", max_dimensions, " dimensions");
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::offsets && offsets_ < 2) {
      entry_.data_offsets[offsets_++] = value;
    } else {
      unexpected(std::to_string(value));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      header_.metadata[key_] = std::move(value);
    } else if (place_ == Place::entry && key_ == "dtype") {
      entry_.dtype = std::move(value);
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (place_ == Place::start) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      place_ = key_ == metadata_key ? Place::metadata : Place::entry;
      keys_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::header) {
      if (!names_.insert(name).second) fail_at(name, " is there twice");
      entry_ = {};
      entry_.name = name;
    } else if (!keys_.insert(name).second) {
      fail(" has the key ", quote(name), " twice");
    } else if (place_ == Place::entry && name != "dtype" && name != "shape" &&
               name != "data_offsets") {
      fail(" has the unknown key ", quote(name), ", expected dtype, shape and data_offsets");
    }
    key_ = std::move(name);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      for (const char* wanted : {"dtype", "shape", "data_offsets"}) {
        if (keys_.count(wanted) == 0) fail(" has no ", wanted);
      }
      header_.entries.push_back(std::move(entry_));
    }
    place_ = Place::header;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ == Place::entry && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::entry && key_ == "data_offsets") {
      place_ = Place::offsets;
      offsets_ = 0;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) {
      fail(": data_offsets should be two numbers, found ", offsets_);
    }
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    throw input_error(
        str_cat(where_, ": the header is not valid JSON at byte ", position, " of the header"));
  }

 private:
  enum class Place { start, header, metadata, entry, shape, offsets };

  template <typename... Parts>
  [[noreturn]] void fail_at(const std::string& name, const Parts&... parts) const {
    throw input_error(str_cat(where_, ": header: ", quote(name), parts...));
  }

  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_at(place_ == Place::metadata ? std::string(metadata_key) : entry_.name, parts...);
  }

  [[noreturn]] void unexpected(std::string_view found) const {
    switch (place_) {
      case Place::start:
        throw input_error(str_cat(where_, ": the header should be an object, is ", found));
      case Place::header:
        fail(" should be an object, is ", found);
      case Place::metadata:
        fail(": ", quote(key_), " should be a string, is ", found);
      case Place::shape:
        fail(": shape should hold whole numbers from 0 to 2^63 - 1, found ", found);
      case Place::offsets:
        fail(": data_offsets should be two whole numbers, found ", found);
      case Place::entry:
        break;
    }
    fail(": ", key_, " should be ", key_ == "dtype" ? "a string" : "an array", ", is ", found);
  }

  std::string where_;
  SafetensorsHeader& header_;
  Place place_ = Place::start;
  std::string key_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> keys_;  // of the object at hand
  SafetensorsEntry entry_;
  std::size_t offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& where) {
  SafetensorsHeader header;
  HeaderHandler handler(where, header);
  Json::sax_parse(json, &handler);
  return header;
}

}  // namespace onset
