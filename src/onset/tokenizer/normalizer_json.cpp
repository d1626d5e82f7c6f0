#include <algorithm>
#include <array>

#include "onset/base/strings.h"
#include "onset/tokenizer/json_parts.h"
#include "onset/tokenizer/pipeline_json.h"

namespace onset {
namespace {

using Kind = NormalizerStep::Kind;

struct KindRow {
  std::string_view type;
  Kind kind;
};
constexpr std::array<KindRow, 10> kind_rows = {{
    {"NFC", Kind::nfc},
    {"NFD", Kind::nfd},
    {"NFKC", Kind::nfkc},
    {"NFKD", Kind::nfkd},
    {"Lowercase", Kind::lowercase},
    {"StripAccents", Kind::strip_accents},
    {"Strip", Kind::strip},
    {"Prepend", Kind::prepend},
    {"Append", Kind::append},
    {"Replace", Kind::replace},
}};

std::string required_string(const Json& part, const std::string& key, const std::string& where) {
  const auto text = find_string(part, key, where);
  require_input(text.has_value(), where, ": has no \"", key, "\"");
  return *text;
}

NormalizerStep step_of(const Json& part, const std::string& type, const std::string& where) {
  const auto* row = std::find_if(kind_rows.begin(), kind_rows.end(),
                                 [&](const KindRow& r) { return r.type == type; });
  if (row == kind_rows.end()) {
    throw unknown_part(where, type,
                       "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Append, "
                       "Replace and Sequence");
  }
  NormalizerStep step;
  step.kind = row->kind;
  if (step.kind == Kind::strip) {
    step.left = find_bool(part, "strip_left", where).value_or(true);
    step.right = find_bool(part, "strip_right", where).value_or(true);
  }
  if (step.kind == Kind::prepend) step.text = required_string(part, "prepend", where);
  if (step.kind == Kind::append) step.text = required_string(part, "append", where);
  if (step.kind == Kind::replace) {
    const PartPattern pattern = pattern_of(part, where);
    step.pattern = pattern.text;
    if (pattern.regex) step.regex.emplace(*pattern.regex, where);
    step.text = required_string(part, "content", where);
  }
  return step;
}

}  // namespace

PartPattern pattern_of(const Json& part, const std::string& where) {
  const Json* pattern = part_of(part, "pattern", where);
  require_input(pattern != nullptr, where, ": has no \"pattern\"");
  PartPattern result;
  result.regex = find_string(*pattern, "Regex", where);
  const auto text = find_string(*pattern, "String", where);
  require_input(text.has_value() != result.regex.has_value(), where,
                ": the pattern should be a String or a Regex");
  result.text = text.value_or("");
  return result;
}

void read_normalizer(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": normalizer";
  const Json* part = part_of(document, "normalizer", where);
  if (part == nullptr) return;
  for_each_part(*part, "normalizers", here, [&](const Json& member, const std::string& type) {
    data.normalizer.steps.push_back(step_of(member, type, here));
  });
}

}  // namespace onset
