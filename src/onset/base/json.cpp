#include "onset/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/lenient_json.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

const Json* member(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Error wrong_type(const std::string& where, const std::string& key, std::string_view expected,
                 const Json& found) {
  return input_error(
      str_cat(where, ": key \"", key, "\" should be ", expected, ", is ", found.type_name()));
}

// Length of the well-formed UTF-8 sequence at `at`, or 0 (Unicode 16, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || at + length > text.size()) return 0;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (byte(at + 1) < low || byte(at + 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(at + i) < 0x80 || byte(at + i) > 0xBF) return 0;
  }
  return length;
}

// Where the text stops being UTF-8; its size where all of it is.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

// What nlohmann's parser does not see: how deep the text is nested, and a NUL byte, which ends the
// text for it, so that what stands behind it would be lost without a word.
void check_json_text(std::string_view text, const std::string& where) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    require_input(c != '\0', where, ": not valid JSON at byte ", i + 1, ": a NUL byte");
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    require_input(depth <= max_json_depth, where, ": nested more than ", max_json_depth,
                  " deep at byte ", i + 1);
  }
}

// Follows the text while it is parsed, since a tree has no place for a key that is there twice.
template <typename Tree>
class RepeatedKeyFinder {
 public:
  explicit RepeatedKeyFinder(std::string where) : where_(std::move(where)) {}

  bool operator()(int /*depth*/, typename Tree::parse_event_t event, const Tree& parsed) {
    if (event == Tree::parse_event_t::object_start) objects_.emplace_back();
    if (event == Tree::parse_event_t::object_end) objects_.pop_back();
    if (event == Tree::parse_event_t::key) {
      const auto& key = parsed.template get_ref<const std::string&>();
      require_input(objects_.back().insert(key).second, where_, ": key ", quote(key, 80),
                    " is there twice in one object");
    }
    return true;
  }

 private:
  std::string where_;
  std::vector<std::set<std::string>> objects_;  // the keys of each that is open
};

// The parser's words for escapes that are no text, of which the place alone says little.
std::string_view escape_fault(std::string_view message) {
  const bool is_surrogate = message.find("surrogate") != std::string_view::npos;
  return is_surrogate ? ": half of a surrogate pair (\\ud800 to \\udfff)" : "";
}

template <typename Tree>
Tree parse_as(std::string_view text, const std::string& where,
              const typename Tree::parser_callback_t& callback) {
  check_json_text(text, where);
  try {
    return Tree::parse(text, callback);
  } catch (const Json::parse_error& error) {
    const std::size_t bad = first_bad_byte(text);
    require_input(bad >= std::min(text.size(), error.byte), where, ": not valid UTF-8 at byte ",
                  bad + 1);
    throw input_error(
        str_cat(where, ": not valid JSON at byte ", error.byte, escape_fault(error.what())));
  } catch (const Json::out_of_range&) {
    throw input_error(str_cat(where, ": not valid JSON: holds a number that is out of range"));
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where,
                const Json::parser_callback_t& callback) {
  return parse_as<Json>(text, where, callback ? callback : RepeatedKeyFinder<Json>(where));
}

OrderedJson parse_ordered_json(std::string_view text, const std::string& where) {
  return parse_as<OrderedJson>(text, where, RepeatedKeyFinder<OrderedJson>(where));
}

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

Json parse_lenient_json(std::string_view text, const std::string& where) {
  return parse_as<Json>(text, where, nullptr);
}

Json read_lenient_json(const std::filesystem::path& path) {
  return parse_lenient_json(read_file(path), path.string());
}

std::optional<std::int64_t> find_int(const Json& object, const std::string& key,
                                     const std::string& where) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    throw wrong_type(where, key, "an integer below 2^63", *value);
  }
  if (!value->is_number_integer()) throw wrong_type(where, key, "an integer", *value);
  return value->get<std::int64_t>();
}

std::optional<double> find_number(const Json& object, const std::string& key,
                                  const std::string& where) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) throw wrong_type(where, key, "a number", *value);
  return value->get<double>();
}

std::optional<bool> find_bool(const Json& object, const std::string& key,
                              const std::string& where) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw wrong_type(where, key, "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> find_string(const Json& object, const std::string& key,
                                       const std::string& where) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw wrong_type(where, key, "a string", *value);
  return value->get<std::string>();
}

OrderedJson finite_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson float_or_null(float value) {
  if (!std::isfinite(value)) return nullptr;
  char digits[64];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  double shortest = 0;
  std::from_chars(std::begin(digits), end, shortest);
  return shortest;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length > 0) {
      result.append(text.substr(at, length));
      at += length;
      continue;
    }
    result += "\xEF\xBF\xBD";  // U+FFFD
    ++at;
  }
  return result;
}

}  // namespace onset
