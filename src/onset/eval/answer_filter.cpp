#include "onset/eval/answer_filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/answer_text.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

using Named = std::pair<std::string_view, FilterFunction>;
constexpr std::array<Named, 7> functions = {{
    {"regex", FilterFunction::regex},
    {"take_first", FilterFunction::take_first},
    {"remove_whitespace", FilterFunction::remove_whitespace},
    {"after_thinking", FilterFunction::after_thinking},
    {"without_code", FilterFunction::without_code},
    {"boxed", FilterFunction::boxed},
    {"boxed_or_formula", FilterFunction::boxed_or_formula},
}};

std::optional<std::string> owned(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  return std::string(*text);
}

bool has_box(std::string_view text) {
  return text.find("\\boxed") != std::string_view::npos ||
         text.find("\\fbox") != std::string_view::npos;
}

std::optional<std::string> select_match(const FilterStep& step, std::string_view text) {
  const std::vector<TextPattern::Match> matches = step.pattern->find_all(text);
  const auto count = static_cast<std::ptrdiff_t>(matches.size());
  const std::ptrdiff_t index = step.group_select + (step.group_select < 0 ? count : 0);
  if (index < 0 || index >= count) return std::nullopt;
  const TextPattern::Match& match = matches[static_cast<std::size_t>(index)];
  std::string_view chosen = match.text;
  if (match.groups.size() == 1) chosen = match.groups[0];
  if (match.groups.size() > 1) {
    const auto first = std::find_if(match.groups.begin(), match.groups.end(),
                                    [](std::string_view group) { return !group.empty(); });
    if (first == match.groups.end()) return std::nullopt;
    chosen = *first;
  }
  return std::string(python_strip(chosen));
}

std::optional<std::string> apply_step(const FilterStep& step, const std::string& text,
                                      bool thinking_opened) {
  switch (step.function) {
    case FilterFunction::regex:
      return select_match(step, text);
    case FilterFunction::take_first:
      return text;
    case FilterFunction::remove_whitespace:
      return std::string(python_strip(text));
    case FilterFunction::after_thinking:
      return owned(after_thinking(text, thinking_opened));
    case FilterFunction::without_code:
      return without_code_blocks(text);
    case FilterFunction::boxed:
      return owned(last_box(text));
    case FilterFunction::boxed_or_formula:
      return owned(has_box(text) ? last_box(text) : last_formula(text));
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(FilterFunction function) {
  const auto* const found = std::find_if(functions.begin(), functions.end(),
                                         [&](const Named& one) { return one.second == function; });
  return found->first;
}

FilterFunction filter_function(std::string_view name, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& [known, function] : functions) {
    if (known == name) return function;
    names.emplace_back(known);
  }
  const std::vector<std::string> near = nearest(name, names);
  throw input_error(str_cat(where, ": no filter function is called ", quote(name)),
                    near.empty() ? "there are " + join(names, ", ") : did_you_mean(near));
}

FilteredAnswer apply_filter(const AnswerFilter& filter, const GivenAnswer& completion) {
  std::string text = lossy_utf8(completion.text);
  for (const FilterStep& step : filter.steps) {
    if (step.function == FilterFunction::regex && !step.pattern) {
      throw input_error("the filter " + quote(filter.name) + " has a regex step without a pattern");
    }
    std::optional<std::string> next = apply_step(step, text, completion.thinking_opened);
    if (!next) return {filter.fallback, false};
    text = std::move(*next);
  }
  return {std::move(text), true};
}

}  // namespace onset
