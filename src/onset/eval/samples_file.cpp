#include "onset/eval/samples_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Members of a line that are numbers or booleans and no metrics.
constexpr std::array<std::string_view, 6> layout_members{"doc_id",    "target", "skipped",
                                                         "truncated", "cut",    "metrics"};

// Nothing for what is no score at all, such as a list of words.
std::optional<SampleScore> score_of(const Json& value) {
  if (value.is_null()) return SampleScore{.value = not_a_number};
  if (value.is_boolean()) return SampleScore{.value = value.get<bool>() ? 1.0 : 0.0};
  if (value.is_number()) return SampleScore{.value = value.get<double>()};
  if (!value.is_array() || value.size() != 2) return std::nullopt;
  if (!value[1].is_number() || !(value[0].is_number() || value[0].is_null())) return std::nullopt;
  return SampleScore{.value = value[0].is_null() ? not_a_number : value[0].get<double>(),
                     .weight = value[1].get<double>(),
                     .is_pair = true};
}

// Nothing unless all of them are numbers.
std::vector<double> windows_of(const Json& line) {
  const auto found = line.find("nll_per_window");
  if (found == line.end() || !found->is_array()) return {};
  std::vector<double> windows;
  for (const Json& value : *found) {
    if (!value.is_number()) return {};
    windows.push_back(value.get<double>());
  }
  return windows;
}

std::vector<std::string> metric_names(const Json& line) {
  std::vector<std::string> names;
  const auto listed = line.find("metrics");
  if (listed != line.end() && listed->is_array()) {
    for (const Json& name : *listed) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
    return names;
  }
  for (const auto& [name, value] : line.items()) {
    const bool layout =
        std::find(layout_members.begin(), layout_members.end(), name) != layout_members.end();
    if (!layout && (value.is_number() || value.is_boolean())) names.push_back(name);
  }
  return names;
}

Sample sample_of(const Json& line, const std::string& where) {
  require_input(line.is_object(), where, ": a line of samples should be an object, is ",
                line.type_name());
  Sample sample;
  const auto doc = find_int(line, "doc_id", where);
  require_input(doc.has_value(), where, ": no \"doc_id\"");
  sample.doc = *doc;
  sample.filter = find_string(line, "filter", where).value_or("none");
  sample.doc_hash = find_string(line, "doc_hash", where).value_or("");
  sample.prompt_hash = find_string(line, "prompt_hash", where).value_or("");
  sample.windows = windows_of(line);
  const auto listed = line.find("metrics");
  require_input(listed == line.end() || listed->is_null() || listed->is_array(), where,
                ": \"metrics\" should be a list of names, is ",
                listed == line.end() ? "" : listed->type_name());
  for (const std::string& name : metric_names(line)) {
    const auto found = line.find(name);
    if (found == line.end()) continue;
    const auto score = score_of(*found);
    if (score) sample.scores[name] = *score;
  }
  return sample;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The bytes that the literal at `at` takes; 0 where there is none.
std::size_t literal_at(std::string_view text, std::size_t at) {
  for (const std::string_view literal : {"NaN", "Infinity", "-Infinity"}) {
    const std::size_t end = at + literal.size();
    if (text.substr(at, literal.size()) == literal &&
        (end == text.size() || !is_name_byte(text[end]))) {
      return literal.size();
    }
  }
  return 0;
}

std::string with_nulls(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t literal = in_string ? 0 : literal_at(text, i);
    if (literal > 0) {
      result += "null";
      i += literal;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) result += text[i++];
    result += text[i++];
  }
  return result;
}

}  // namespace

Json parse_python_json(std::string_view text, const std::string& where) {
  const bool literals =
      text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
  return literals ? parse_json(with_nulls(text), where) : parse_json(text, where);
}

SamplesFile read_samples(const std::filesystem::path& path, const std::string& task) {
  SamplesFile result{
      .path = path, .task = task, .samples = {}, .metrics = {}, .file = MappedFile::open(path)};
  const auto bytes = result.file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::set<std::pair<std::int64_t, std::string>> seen;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t offset = std::exchange(begin, end + 1);
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = str_cat(path.string(), ", line ", number);
    const Json json = parse_python_json(line, where);
    Sample sample = sample_of(json, where);
    std::tie(sample.line, sample.offset, sample.length) = std::tuple(number, offset, line.size());
    require_input(seen.emplace(sample.doc, sample.filter).second, where, ": document ", sample.doc,
                  " is there twice with the filter ", quote(sample.filter));
    for (const std::string& name : metric_names(json)) {
      const bool known =
          std::find(result.metrics.begin(), result.metrics.end(), name) != result.metrics.end();
      if (!known && sample.scores.count(name) > 0) result.metrics.push_back(name);
    }
    result.samples.push_back(std::move(sample));
  }
  require_input(!result.samples.empty(), path.string(), ": no samples in it");
  return result;
}

Json sample_line(const SamplesFile& file, const Sample& sample) {
  const auto bytes = file.file.bytes().subspan(sample.offset, sample.length);
  return parse_python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           str_cat(file.path.string(), ", line ", sample.line));
}

}  // namespace onset
