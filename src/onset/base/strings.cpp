#include "onset/base/strings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "onset/base/json.h"

namespace onset {
namespace {

// Longer names are no typing mistakes; they would only cost time (quadratic in the length).
constexpr std::size_t max_compared_bytes = 512;

void append_escaped(std::string& result, char c) {
  constexpr char hex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    result += '\\';
    result += c;
  } else if (c == '\n') {
    result += "\\n";
  } else if (byte < 0x20 || byte == 0x7F) {
    result += "\\x";
    result += hex[byte >> 4];
    result += hex[byte & 15];
  } else {
    result += c;
  }
}

}  // namespace

std::string quote(std::string_view text, std::size_t max_bytes) {
  const std::string_view shown = whole_characters(text, max_bytes);
  std::string result = "\"";
  for (const char c : valid_utf8(shown)) append_escaped(result, c);
  if (shown.size() < text.size()) result += "...";
  result += '"';
  return result;
}

std::string_view whole_characters(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  // A character's bytes after the first are 10xxxxxx.
  const auto begins_inside = [text](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t end = max_bytes;
  while (end > 0 && begins_inside(end)) --end;
  return text.substr(0, end);
}

std::string grouped(std::int64_t count) {
  constexpr std::size_t group = 3;
  std::string digits = std::to_string(count);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + group;) digits.insert(at -= group, ",");
  return digits;
}

std::string counted(std::int64_t count, std::string_view singular) {
  return grouped(count).append(" ").append(singular).append(count == 1 ? "" : "s");
}

std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return grouped(count).append(" ").append(count == 1 ? singular : plural);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> nearest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, std::size_t max) {
  if (wanted.size() > max_compared_bytes) return {};
  const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // distance, index
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t size = candidates[i].size();
    const std::size_t least = std::max(size, wanted.size()) - std::min(size, wanted.size());
    if (least > limit) continue;
    const std::size_t distance = edit_distance(wanted, candidates[i]);
    if (distance <= limit) ranked.emplace_back(distance, i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (const auto& [distance, index] : ranked) {
    if (result.size() == max) break;
    result.push_back(candidates[index]);
  }
  return result;
}

std::string did_you_mean(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) {
    result += result.empty() ? "did you mean " : ", ";
    result += quote(name);
  }
  return result.empty() ? result : result + "?";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view white_space = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white_space) - begin + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

}  // namespace onset
