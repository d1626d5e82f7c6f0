#include "onset/eval/prompt_template.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/python_text.h"

namespace onset {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The names of an object's members, for a message.
std::vector<std::string> names_of(const OrderedJson& object) {
  std::vector<std::string> names;
  if (!object.is_object()) return names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

}  // namespace

PromptTemplate::PromptTemplate(std::string_view text, const std::string& where) : source_(text) {
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) parts_.emplace_back(std::move(literal));
    literal.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      literal += c;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      literal += c;
      ++at;
      continue;
    }
    const auto end = c == '{' ? text.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      throw input_error(str_cat(where, ": ", quote(std::string(1, c)), " at byte ", at + 1, " of ",
                                quote(text), " stands alone"),
                        "a brace in the text itself is written twice: {{ or }}");
    }
    end_literal();
    parts_.emplace_back(parse_place(text.substr(at + 1, end - at - 1), where));
    at = end;
  }
  end_literal();
}

PromptTemplate::Place PromptTemplate::parse_place(std::string_view text, const std::string& where) {
  Place place{.text = std::string(text), .path = {}, .filters = {}};
  const auto fail = [&] {
    throw input_error(str_cat(where, ": the place ", quote("{" + place.text + "}"),
                              " is not read; write {name}, {name.member}, {name[0]} or "
                              "{name|strip}"));
  };
  auto parts = split(text, '|');
  static const std::vector<std::string> filters{"strip", "words", "lower", "upper"};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto found = std::find(filters.begin(), filters.end(), parts[i]);
    if (found == filters.end()) {
      throw input_error(str_cat(where, ": the filter ", quote(parts[i]), " in ",
                                quote("{" + place.text + "}"), " is not known"),
                        str_cat("known are ", join(filters, ", ")));
    }
    place.filters.push_back(static_cast<Filter>(found - filters.begin()));
  }
  const std::string& path = parts.front();
  for (std::size_t at = 0; at < path.size();) {
    if (path[at] == '[') {
      const auto end = path.find(']', at);
      constexpr std::size_t most_digits = 6;
      if (place.path.empty() || end == std::string::npos || end == at + 1 ||
          end - at - 1 > most_digits) {
        fail();
      }
      std::size_t index = 0;
      for (std::size_t i = at + 1; i < end; ++i) {
        if (path[i] < '0' || path[i] > '9') fail();
        index = index * 10 + static_cast<std::size_t>(path[i] - '0');
      }
      place.path.emplace_back(index);
      at = end + 1;
      continue;
    }
    if (!place.path.empty()) {
      if (path[at] != '.') fail();
      ++at;
    }
    std::size_t end = at;
    while (end < path.size() && is_name_char(path[end])) ++end;
    if (end == at) fail();
    place.path.emplace_back(path.substr(at, end - at));
    at = end;
  }
  if (place.path.empty()) fail();
  return place;
}

std::string PromptTemplate::apply(const Place& place, std::string text) {
  for (const Filter filter : place.filters) {
    switch (filter) {
      case Filter::strip:
        text = python_strip(text);
        break;
      case Filter::words:
        std::replace(text.begin(), text.end(), '_', ' ');
        break;
      case Filter::lower:
        for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        break;
      case Filter::upper:
        for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        break;
    }
  }
  return text;
}

const OrderedJson& PromptTemplate::find(const Place& place, const OrderedJson& row,
                                        const std::string& row_where) {
  const OrderedJson* at = &row;
  for (const Step& step : place.path) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      const auto found = at->is_object() ? at->find(*name) : at->end();
      if (!at->is_object() || found == at->end()) {
        const auto known = names_of(*at);
        throw input_error(str_cat(row_where, ": no field ", quote(place.text)),
                          known.empty() ? "" : str_cat("it has ", join(known, ", ")));
      }
      at = &*found;
    } else {
      const std::size_t index = std::get<std::size_t>(step);
      require_input(at->is_array() && index < at->size(), row_where, ": no field ",
                    quote(place.text),
                    at->is_array() ? str_cat(", the list has ", at->size(), " values")
                                   : std::string(", there is no list"));
      at = &(*at)[index];
    }
  }
  return *at;
}

std::string PromptTemplate::text_of(const OrderedJson& value, const Place& place,
                                    const std::string& row_where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  require_input(value.is_primitive(), row_where, ": field ", quote(place.text),
                " should be text or a number, is ", value.type_name());
  return value.dump();
}

std::string PromptTemplate::render(const Place& place, const OrderedJson& row,
                                   const std::string& row_where, const TemplateNames& names) {
  const auto name =
      place.path.size() == 1 ? names.find(std::get<std::string>(place.path.front())) : names.end();
  return apply(place, name != names.end() ? name->second
                                          : text_of(find(place, row, row_where), place, row_where));
}

std::string PromptTemplate::render(const OrderedJson& row, const std::string& row_where,
                                   const TemplateNames& names) const {
  std::string text;
  for (const Part& part : parts_) {
    const auto* const literal = std::get_if<std::string>(&part);
    text += literal != nullptr ? *literal : render(std::get<Place>(part), row, row_where, names);
  }
  return text;
}

std::string PromptTemplate::render_first(const OrderedJson& row, const std::string& row_where,
                                         const TemplateNames& names) const {
  for (const Part& part : parts_) {
    const auto* const place = std::get_if<Place>(&part);
    if (place != nullptr) return render(*place, row, row_where, names);
  }
  return {};
}

std::vector<std::string> PromptTemplate::render_list(const OrderedJson& row,
                                                     const std::string& row_where) const {
  const auto& place = std::get<Place>(parts_.at(0));
  const OrderedJson& value = find(place, row, row_where);
  require_input(value.is_array() && !value.empty(), row_where, ": field ", quote(place.text),
                " should be a list with something in it");
  std::vector<std::string> texts;
  for (const OrderedJson& entry : value) {
    texts.push_back(apply(place, text_of(entry, place, row_where)));
  }
  return texts;
}

bool PromptTemplate::is_one_place() const {
  return parts_.size() == 1 && std::holds_alternative<Place>(parts_.front());
}

}  // namespace onset
