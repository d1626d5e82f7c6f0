#include <algorithm>
#include <array>

#include "onset/base/strings.h"
#include "onset/tokenizer/json_parts.h"
#include "onset/tokenizer/pipeline_json.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

SplitBehavior behavior_of(const Json& part, const std::string& where) {
  const std::string name = find_string(part, "behavior", where).value_or("Isolated");
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  throw input_error(str_cat(where, ": behavior ", quote(name), " is not known"));
}

PretokenizerStep split_step(const Json& part, const std::string& where, std::string& name) {
  PretokenizerStep step;
  step.behavior = behavior_of(part, where);
  step.invert = find_bool(part, "invert", where).value_or(false);
  const auto [literal, regex] = pattern_of(part, where);
  if (!regex) {
    step.literal = literal;
    name = "fixed string";
    return step;
  }
  const KnownPattern* known = find_pattern(*regex);
  const bool whole =
      step.behavior == SplitBehavior::isolated ||
      (step.behavior == SplitBehavior::removed && step.invert && known != nullptr && known->covers);
  name = known != nullptr ? known->name : "own regex";
  if (known != nullptr && whole) {
    step.known = known;
  } else {
    step.regex.emplace(*regex, where);
  }
  return step;
}

PretokenizerStep known_step(std::string_view name) {
  PretokenizerStep step;
  step.known = &pattern_named(name);
  return step;
}

void append_name(std::string& names, std::string_view name) {
  names += names.empty() ? "" : " + ";
  names += name;
}

// Parts without settings that go by the class of each character.
struct RuleRow {
  std::string_view type;
  std::string_view label;
  Finder finder;
  SplitBehavior behavior;
  bool invert = false;
};
constexpr std::array<RuleRow, 3> rule_rows = {{
    {"Whitespace", "words", find_words_and_signs, SplitBehavior::removed, /*invert=*/true},
    {"WhitespaceSplit", "white space", find_white_space, SplitBehavior::removed},
    {"Punctuation", "punctuation", find_punctuation, SplitBehavior::isolated},
}};

const RuleRow* rule_row(std::string_view type) {
  const auto* row = std::find_if(rule_rows.begin(), rule_rows.end(),
                                 [&](const RuleRow& r) { return r.type == type; });
  return row == rule_rows.end() ? nullptr : row;
}

PretokenizerStep rule_step(Finder finder, SplitBehavior behavior) {
  PretokenizerStep step;
  step.finder = finder;
  step.behavior = behavior;
  return step;
}

void read_metaspace(const Json& part, TokenizerData& data, const std::string& where) {
  PretokenizerStep step;
  step.metaspace = metaspace_of(part, where);
  step.prefix = prefix_scheme_of(part, where);
  data.pretokenizer.steps.push_back(step);
  append_name(data.pretokenizer_name, "metaspace");
  if (!find_bool(part, "split", where).value_or(true)) return;
  PretokenizerStep split;
  split.literal = step.metaspace;
  split.behavior = SplitBehavior::merged_with_next;
  data.pretokenizer.steps.push_back(split);
}

void read_pretokenizer_part(const Json& part, const std::string& type, TokenizerData& data,
                            const std::string& where) {
  auto& steps = data.pretokenizer.steps;
  if (type == "Split") {
    std::string name;
    steps.push_back(split_step(part, where, name));
    append_name(data.pretokenizer_name, name);
  } else if (type == "Digits") {
    const bool single = find_bool(part, "individual_digits", where).value_or(false);
    if (single) {
      steps.push_back(known_step("digits"));
    } else {
      steps.push_back(rule_step(find_numbers, SplitBehavior::contiguous));
    }
    append_name(data.pretokenizer_name, single ? "digits" : "numbers");
  } else if (type == "ByteLevel") {
    if (find_bool(part, "add_prefix_space", where).value_or(true)) {
      PretokenizerStep step;
      step.add_prefix_space = true;
      steps.push_back(step);
    }
    if (find_bool(part, "use_regex", where).value_or(true)) {
      steps.push_back(known_step("gpt2"));
      append_name(data.pretokenizer_name, "gpt2");
    }
  } else if (type == "Metaspace") {
    read_metaspace(part, data, where);
  } else if (const RuleRow* row = rule_row(type)) {
    PretokenizerStep step = rule_step(row->finder, row->behavior);
    step.invert = row->invert;
    if (type == "Punctuation") step.behavior = behavior_of(part, where);
    steps.push_back(step);
    append_name(data.pretokenizer_name, row->label);
  } else if (type == "CharDelimiterSplit") {
    PretokenizerStep step;
    const auto delimiter = find_string(part, "delimiter", where);
    require_input(delimiter && !delimiter->empty(), where, ": has no \"delimiter\"");
    step.literal = *delimiter;
    step.behavior = SplitBehavior::removed;
    steps.push_back(step);
    append_name(data.pretokenizer_name, "delimiter");
  } else {
    throw unknown_part(where, type,
                       "Split, Digits, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, "
                       "Punctuation, CharDelimiterSplit and Sequence");
  }
}

}  // namespace

std::string metaspace_of(const Json& part, const std::string& where) {
  std::string text = find_string(part, "replacement", where).value_or(std::string(space_symbol));
  require_input(!text.empty() && decode_char(text, 0).length == text.size(), where,
                ": \"replacement\" should be one character, is ", quote(text));
  return text;
}

PrefixScheme prefix_scheme_of(const Json& part, const std::string& where) {
  const auto scheme = find_string(part, "prepend_scheme", where);
  // Files from before the scheme have a flag.
  if (!scheme) {
    const bool prefix = find_bool(part, "add_prefix_space", where).value_or(true);
    return prefix ? PrefixScheme::always : PrefixScheme::never;
  }
  if (*scheme == "always") return PrefixScheme::always;
  if (*scheme == "first") return PrefixScheme::first;
  if (*scheme == "never") return PrefixScheme::never;
  throw input_error(str_cat(where, ": prepend_scheme ", quote(*scheme), " is not known"));
}

void read_pretokenizer(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": pre_tokenizer";
  const Json* part = part_of(document, "pre_tokenizer", where);
  if (part == nullptr) return;
  bool byte_level = false;
  for_each_part(*part, "pretokenizers", here, [&](const Json& member, const std::string& type) {
    require_input(!byte_level, here, ": ", quote(type), " behind ByteLevel is not known");
    read_pretokenizer_part(member, type, data, here);
    byte_level = type == "ByteLevel";
  });
}

Spelling spelling_of_file(const Json& document, const std::string& where) {
  Spelling spelling = Spelling::plain;
  const Json* part = part_of(document, "pre_tokenizer", where);
  if (part == nullptr) return spelling;
  for_each_part(*part, "pretokenizers", where + ": pre_tokenizer",
                [&](const Json&, const std::string& type) {
                  if (type == "ByteLevel") spelling = Spelling::byte_level;
                });
  return spelling;
}

}  // namespace onset
