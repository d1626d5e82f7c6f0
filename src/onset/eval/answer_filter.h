// Filters: from a completion to the text that a metric compares, as tasks/*.toml describe it.
// Torch-free.
//
// A filter is a list of steps with a name; each step takes the text of the one before. A task may
// have several, whose scores stand side by side ("strict-match", "flexible-extract").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/text_pattern.h"

namespace onset {

enum class FilterFunction {
  regex,              // lm-eval's: one match of `pattern`
  take_first,         // lm-eval's: the first of several completions; onset has one
  remove_whitespace,  // lm-eval's: without white space at both ends
  after_thinking,     // what follows the last </think> (answer_text.h)
  without_code,       // without fenced code
  boxed,              // the last box
  boxed_or_formula,   // the last box; where no box was begun, the last formula
};

// "regex", "take_first", ...
[[nodiscard]] std::string_view name_of(FilterFunction function);
// Throws an input error "WHERE: ..." with the nearest name.
[[nodiscard]] FilterFunction filter_function(std::string_view name, const std::string& where);

struct FilterStep {
  FilterFunction function = FilterFunction::take_first;
  // Of regex alone. The match number `group_select` (-1: the last) of re.findall counts; in it the
  // first capture group that is not empty, or the whole match where the pattern has no group.
  std::optional<TextPattern> pattern = std::nullopt;
  int group_select = 0;
};

struct AnswerFilter {
  std::string name;
  std::vector<FilterStep> steps;
  std::string fallback = "[invalid]";  // the text where a step finds nothing
};

struct FilteredAnswer {
  std::string text;   // the fallback when nothing was found
  bool found = true;  // otherwise the answer counts as none
};

struct GivenAnswer {
  std::string_view text;
  bool thinking_opened = false;  // the prompt ended inside a thinking block
};

[[nodiscard]] FilteredAnswer apply_filter(const AnswerFilter& filter,
                                          const GivenAnswer& completion);

}  // namespace onset
