#include "onset/eval/released_grader.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "onset/base/strings.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr auto npos = std::string::npos;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string replaced;
  std::size_t start = 0;
  for (std::size_t at = text.find(from); at != npos; at = text.find(from, start)) {
    replaced.append(text, start, at - start).append(to);
    start = at + from.size();
  }
  text = replaced.append(text, start);
}

std::vector<std::string> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t at = text.find(separator); at != npos; at = text.find(separator, start)) {
    parts.emplace_back(text.substr(start, at - start));
    start = at + separator.size();
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string braced(std::string_view text) { return std::string("{").append(text).append("}"); }

// The first code point of a text that is not empty.
std::string_view first_char(std::string_view text) {
  return text.substr(0, decode_char(text, 0).length);
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// \sqrt3 becomes \sqrt{3}.
std::optional<std::string> with_root_braces(std::string_view text) {
  const std::vector<std::string> parts = split_at(text, "\\sqrt");
  std::string fixed = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    fixed += "\\sqrt";
    if (part.front() == '{') {
      fixed += part;
    } else {
      const std::string_view radicand = first_char(part);
      fixed.append(braced(radicand)).append(part.substr(radicand.size()));
    }
  }
  return fixed;
}

// \frac12 becomes \frac{1}{2}, \frac1{72} becomes \frac{1}{72}; all stays as it was when one of
// them is too short.
std::optional<std::string> with_fraction_braces(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, "\\frac");
  std::string fixed = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    fixed += "\\frac";
    if (part.front() == '{') {
      fixed += part;
      continue;
    }
    const std::string_view above = first_char(part);
    const std::string_view rest = part.substr(above.size());
    if (rest.empty()) return text;
    fixed += braced(above);
    if (rest.front() == '{') {
      fixed += rest;
    } else {
      const std::string_view below = first_char(rest);
      fixed.append(braced(below)).append(rest.substr(below.size()));
    }
  }
  return fixed;
}

// An integer as Python prints it: no sign but -, no needless zeros.
bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (text == "0") return false;
  }
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  return digits && (text.size() == 1 || text.front() != '0');
}

std::string with_fraction_of_slash(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, "/");
  if (parts.size() != 2 || !is_plain_integer(parts[0]) || !is_plain_integer(parts[1])) return text;
  return "\\frac" + braced(parts[0]) + braced(parts[1]);
}

}  // namespace

std::optional<std::string> released_prediction(std::string_view prompt,
                                               std::string_view completion) {
  constexpr std::string_view command = "\\boxed{";
  const std::string text = std::string(prompt).append(completion);
  const std::size_t start = text.rfind("\\boxed");
  if (start == npos || text.compare(start, command.size(), command) != 0) return std::nullopt;
  int open = 0;
  for (std::size_t at = start; at < text.size(); ++at) {
    if (text[at] == '{') ++open;
    if (text[at] == '}' && --open == 0) {
      const std::size_t inside = start + command.size();
      return text.substr(inside, at - inside);
    }
  }
  return std::nullopt;
}

std::optional<std::string> released_form(std::string_view text) {
  std::string form = lossy_utf8(text);
  replace_all(form, "\n", "");
  replace_all(form, "\\!", "");
  replace_all(form, "\\\\", "\\");
  replace_all(form, "tfrac", "frac");
  replace_all(form, "dfrac", "frac");
  for (const std::string_view dropped : {"\\left", "\\right", "^{\\circ}", "^\\circ", "\\$"}) {
    replace_all(form, dropped, "");
  }
  form = form.substr(0, form.find("\\text{ "));
  replace_all(form, "\\%", "");
  replace_all(form, " .", " 0.");
  replace_all(form, "{.", "{0.");
  if (form.empty()) return form;
  if (form.front() == '.') form.insert(form.begin(), '0');
  const std::vector<std::string> sides = split_at(form, "=");
  constexpr std::size_t longest_name = 2;
  if (sides.size() == 2 && characters(sides[0]) <= longest_name) form = sides[1];
  const std::optional<std::string> roots = with_root_braces(form);
  if (!roots) return std::nullopt;
  form = *roots;
  replace_all(form, " ", "");
  const std::optional<std::string> fractions = with_fraction_braces(form);
  if (!fractions) return std::nullopt;
  if (*fractions == "0.5") return "\\frac{1}{2}";
  return with_fraction_of_slash(*fractions);
}

bool released_math_correct(std::string_view gold, std::string_view prompt,
                           std::string_view completion) {
  constexpr std::string_view mark = "####";
  const std::optional<std::string> prediction = released_prediction(prompt, completion);
  if (!prediction) return false;
  if (const std::size_t at = gold.rfind(mark); at != npos) {
    gold = python_strip(gold.substr(at + mark.size()));
  }
  const std::optional<std::string> left = released_form(*prediction);
  const std::optional<std::string> right = released_form(gold);
  return left && right && right->find(*left) != npos;
}

}  // namespace onset
