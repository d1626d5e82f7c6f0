// Texts with places for the fields of a row: "Question: {question}\nA. {choices[0]}". Torch-free.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onset/base/json.h"

namespace onset {

// Names that stand for texts in every row (docs/tasks.md: "part").
using TemplateNames = std::map<std::string, std::string>;

// Parsed once, rendered for each row. Grammar (docs/tasks.md):
//   {name}  {name.member}  {name[0]}  {name|filter|filter}  {{ for {  }} for }
// Filters: strip (Python's str.strip), words ("_" becomes " "), lower, upper (ASCII).
class PromptTemplate {
 public:
  PromptTemplate() = default;
  // Throws an input error "WHERE: .." for what does not follow the grammar.
  PromptTemplate(std::string_view text, const std::string& where);

  // A number as JSON writes it, true and false in lower case, null as nothing. Throws an input
  // error that begins with `row_where` where the row has no such field, or a list or an object in
  // its place. `names` go before the row's fields.
  [[nodiscard]] std::string render(const OrderedJson& row, const std::string& row_where,
                                   const TemplateNames& names = {}) const;
  // What stands in its first place, with nothing around it; empty where it has none.
  [[nodiscard]] std::string render_first(const OrderedJson& row, const std::string& row_where,
                                         const TemplateNames& names = {}) const;
  // For a template that is one place alone: its value, a list, as texts. Input errors as render().
  [[nodiscard]] std::vector<std::string> render_list(const OrderedJson& row,
                                                     const std::string& row_where) const;
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  // Whether it is one place and nothing else.
  [[nodiscard]] bool is_one_place() const;
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  using Step = std::variant<std::string, std::size_t>;  // a member's name, or an index
  enum class Filter { strip, words, lower, upper };
  struct Place {
    std::string text;  // as it was written, for messages
    std::vector<Step> path;
    std::vector<Filter> filters;
  };
  using Part = std::variant<std::string, Place>;

  static Place parse_place(std::string_view text, const std::string& where);
  static std::string render(const Place& place, const OrderedJson& row,
                            const std::string& row_where, const TemplateNames& names);
  static std::string apply(const Place& place, std::string text);
  static const OrderedJson& find(const Place& place, const OrderedJson& row,
                                 const std::string& row_where);
  static std::string text_of(const OrderedJson& value, const Place& place,
                             const std::string& row_where);

  std::string source_;
  std::vector<Part> parts_;
};

}  // namespace onset
