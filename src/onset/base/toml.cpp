#include "onset/base/toml.h"

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>

#include "onset/base/file.h"
#include "onset/base/strings.h"

namespace onset {

struct TomlTable::File {
  std::string where;
  Json root;
  std::map<std::string, std::int64_t> lines;  // by JSON pointer
};

namespace {

// "/" and "~" in a key, as JSON pointers spell them.
std::string pointer_to(const std::string& parent, std::string_view key) {
  std::string pointer = parent + "/";
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

// "/metrics/0/name" as messages show it: "metrics[0].name".
std::string shown(const std::string& pointer) {
  std::string text;
  for (const auto& part : split(pointer.empty() ? pointer : pointer.substr(1), '/')) {
    const bool is_index = !part.empty() && std::all_of(part.begin(), part.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
    if (is_index && !text.empty()) {
      text += str_cat("[", part, "]");
    } else {
      text += str_cat(text.empty() ? "" : ".", part);
    }
  }
  return text;
}

// Turns toml++'s tree into JSON and notes where each value stands.
class Converter {
 public:
  Converter(std::string where, std::map<std::string, std::int64_t>& lines)
      : where_(std::move(where)), lines_(lines) {}

  Json convert(const toml::node& node, const std::string& pointer) {
    const std::int64_t line = node.source().begin.line;
    lines_[pointer] = line;
    if (const auto* table = node.as_table()) {
      Json object = Json::object();
      for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        const std::string inner = pointer_to(pointer, name);
        object[name] = convert(value, inner);
        lines_[inner] = key.source().begin.line;
      }
      return object;
    }
    if (const auto* array = node.as_array()) {
      Json list = Json::array();
      for (const auto& value : *array) {
        list.push_back(convert(value, pointer_to(pointer, std::to_string(list.size()))));
      }
      return list;
    }
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto integer = node.value_exact<std::int64_t>()) return *integer;
    if (const auto boolean = node.value_exact<bool>()) return *boolean;
    if (const auto number = node.value_exact<double>(); number && std::isfinite(*number)) {
      return *number;
    }
    throw input_error(str_cat(where_, ":", line, ": key ", quote(shown(pointer)),
                              " is a date, a time or not finite; text, numbers, true and false, "
                              "lists and tables are read"));
  }

 private:
  std::string where_;
  std::map<std::string, std::int64_t>& lines_;
};

}  // namespace

TomlTable::TomlTable(std::shared_ptr<const File> file, std::string pointer)
    : file_(std::move(file)), pointer_(std::move(pointer)) {}

TomlTable TomlTable::parse(std::string_view text, const std::string& where) {
  auto file = std::make_shared<File>();
  file->where = where;
  try {
    const toml::table table = toml::parse(text);
    file->root = Converter(where, file->lines).convert(table, "");
  } catch (const toml::parse_error& error) {
    throw input_error(str_cat(where, ":", error.source().begin.line,
                              ": not valid TOML: ", std::string(error.description())));
  }
  return {std::move(file), ""};
}

TomlTable TomlTable::read(const std::filesystem::path& path) {
  return parse(read_file(path, std::size_t{1} << 24), path.string());
}

const Json& TomlTable::object() const { return file_->root.at(Json::json_pointer(pointer_)); }

const Json* TomlTable::find(const std::string& key) {
  known_.insert(key);
  const Json& table = object();
  const auto found = table.find(key);
  return found == table.end() ? nullptr : &*found;
}

bool TomlTable::has(const std::string& key) { return find(key) != nullptr; }

Json TomlTable::value(const std::string& key) {
  const Json* found = find(key);
  return found == nullptr ? Json() : *found;
}

std::vector<std::string> TomlTable::keys() {
  std::vector<std::string> names;
  for (const auto& [key, value] : object().items()) {
    known_.insert(key);
    names.push_back(key);
  }
  return names;
}

std::optional<std::string> TomlTable::find_text(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) throw wrong_type(key, "text");
  return found->get<std::string>();
}

std::optional<std::int64_t> TomlTable::find_integer(const std::string& key, std::int64_t min,
                                                    std::int64_t max) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer()) throw wrong_type(key, "an integer");
  const auto value = found->get<std::int64_t>();
  if (value < min || value > max) {
    throw error(key, str_cat("is ", value, ", should be ", min, " to ", max));
  }
  return value;
}

std::optional<bool> TomlTable::find_boolean(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) throw wrong_type(key, "true or false");
  return found->get<bool>();
}

std::optional<TomlTable> TomlTable::find_table(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) throw wrong_type(key, "a table");
  return TomlTable(file_, pointer_to(pointer_, key));
}

std::vector<std::string> TomlTable::texts(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return {};
  if (!found->is_array()) throw wrong_type(key, "a list of texts");
  std::vector<std::string> list;
  for (const Json& value : *found) {
    if (!value.is_string())
      throw error(key, str_cat("should be a list of texts, holds ", value.type_name()));
    list.push_back(value.get<std::string>());
  }
  return list;
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return {};
  if (!found->is_array()) throw wrong_type(key, "a list of tables");
  std::vector<TomlTable> list;
  for (std::size_t i = 0; i < found->size(); ++i) {
    if (!(*found)[i].is_object()) throw error(key, "should be a list of tables");
    list.push_back(TomlTable(file_, pointer_to(pointer_to(pointer_, key), std::to_string(i))));
  }
  return list;
}

std::string TomlTable::text(const std::string& key) {
  auto found = find_text(key);
  if (!found)
    throw error("", str_cat("key ", quote(shown(pointer_to(pointer_, key))), " is missing"));
  return std::move(*found);
}

TomlTable TomlTable::table(const std::string& key) {
  auto found = find_table(key);
  if (!found)
    throw error("", str_cat("table ", quote(shown(pointer_to(pointer_, key))), " is missing"));
  return std::move(*found);
}

std::string TomlTable::place(const std::string& key) const {
  const std::string pointer = key.empty() ? pointer_ : pointer_to(pointer_, key);
  const auto line = file_->lines.find(pointer);
  std::string place = file_->where;
  if (line != file_->lines.end() && !pointer.empty()) place += str_cat(":", line->second);
  return key.empty() ? place : str_cat(place, ": key ", quote(shown(pointer)));
}

Error TomlTable::error(const std::string& key, const std::string& message, std::string hint) const {
  return input_error(str_cat(place(key), key.empty() ? ": " : " ", message), std::move(hint));
}

Error TomlTable::wrong_type(const std::string& key, std::string_view expected) const {
  return error(key, str_cat("should be ", expected, ", is ", object().at(key).type_name()));
}

void TomlTable::refuse_others() const {
  for (const auto& [key, value] : object().items()) {
    if (known_.contains(key)) continue;
    throw error(key, "is not known", did_you_mean(nearest(key, {known_.begin(), known_.end()})));
  }
}

}  // namespace onset
