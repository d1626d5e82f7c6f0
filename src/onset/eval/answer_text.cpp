#include "onset/eval/answer_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view think_open = "<think>";
constexpr std::string_view think_close = "</think>";
constexpr auto npos = std::string_view::npos;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// The length of a box command at `at`, else 0. A doubled backslash is forgiven: models that were
// trained on JSON write it.
std::size_t box_command(std::string_view text, std::size_t at) {
  for (const std::string_view name : {"\\boxed", "\\fbox", "\\\\boxed", "\\\\fbox"}) {
    if (!text.substr(at).starts_with(name)) continue;
    const std::size_t end = at + name.size();
    if (end >= text.size() || !is_letter(text[end])) return name.size();
  }
  return 0;
}

struct Span {
  std::size_t start = 0;
  std::size_t end = npos;  // npos: never closed
  bool bare = false;       // without braces: its end is looked for where it matters

  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(start, end - start);
  }
};

std::size_t end_of_bare(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_space(text[at]) && text[at] != '$') ++at;
  return at;
}

// All boxes in the order in which they begin.
std::vector<Span> find_boxes(std::string_view text) {
  constexpr std::size_t no_box = npos;
  std::vector<Span> boxes;
  std::vector<std::size_t> open;  // for every open brace, the box it opens
  std::size_t at = text.find_first_of("\\{}");
  for (; at < text.size(); at = text.find_first_of("\\{}", at)) {
    if (const std::size_t length = text[at] == '\\' ? box_command(text, at) : 0; length > 0) {
      const std::size_t begin = skip_spaces(text, at + length);
      if (begin < text.size() && text[begin] == '{') {
        open.push_back(boxes.size());
        boxes.push_back({begin + 1});
        at = begin + 1;
      } else {
        boxes.push_back({begin, npos, /*bare=*/true});
        at += length;
      }
      continue;
    }
    const char c = text[at];
    if (c == '\\') {
      at += 2;
      continue;
    }
    if (c == '{') open.push_back(no_box);
    if (c == '}' && !open.empty()) {
      if (open.back() != no_box) boxes[open.back()].end = at;
      open.pop_back();
    }
    ++at;
  }
  return boxes;
}

// Whether the text of a box holds anything but boxes, braces and white space.
bool holds_something(std::string_view content) {
  for (std::size_t at = 0; at < content.size();) {
    const char c = content[at];
    const std::size_t command = c == '\\' ? box_command(content, at) : 0;
    if (command == 0 && !is_space(c) && c != '{' && c != '}') return true;
    at += std::max<std::size_t>(command, 1);
  }
  return false;
}

struct Delimiters {
  std::string_view open;
  std::string_view close;
};

}  // namespace

std::string_view cut_at_stop(std::string_view text, std::span<const std::string> stop) {
  std::size_t end = text.size();
  for (const std::string& one : stop) {
    if (!one.empty()) end = std::min(end, text.substr(0, end).find(one));
  }
  return text.substr(0, end);
}

std::optional<std::string_view> after_thinking(std::string_view completion, bool opened) {
  const std::size_t closed = completion.rfind(think_close);
  if (closed != npos) completion.remove_prefix(closed + think_close.size());
  const bool open = (opened && closed == npos) || completion.find(think_open) != npos;
  if (open) return std::nullopt;
  return completion;
}

std::string without_code_blocks(std::string_view text) {
  std::string kept;
  std::string_view fence;  // of the block we are in
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t end = newline == npos ? text.size() : newline + 1;
    const std::string_view line = text.substr(at, end - at);
    at = end;
    const std::string_view content = trim(line);
    const char mark = content.empty() ? ' ' : content.front();
    const std::size_t run =
        mark == '`' || mark == '~' ? std::min(content.find_first_not_of(mark), content.size()) : 0;
    if (fence.empty()) {
      // A line such as ```x``` is code within a line, no fence.
      const bool opens = run >= 3 && content.substr(run).find(mark) == npos;
      if (opens) {
        fence = content.substr(0, run);
      } else {
        kept += line;
      }
    } else if (mark == fence.front() && run >= fence.size() && run == content.size()) {
      fence = {};
    }
  }
  return kept;
}

std::optional<std::string_view> last_box(std::string_view text) {
  const std::vector<Span> boxes = find_boxes(text);
  if (boxes.empty()) return std::nullopt;
  Span last = boxes.back();
  if (last.bare) last.end = end_of_bare(text, last.start);
  if (last.end == npos) return std::nullopt;
  for (const Span& box : boxes) {
    if (!box.bare && box.end != npos && box.start <= last.start && box.end >= last.end) {
      last = box;
      break;
    }
  }
  const std::string_view content = trim(last.of(text));
  if (!holds_something(content)) return std::nullopt;
  return content;
}

std::optional<std::string_view> last_formula(std::string_view text) {
  constexpr std::array<Delimiters, 4> kinds = {
      {{"\\[", "\\]"}, {"\\(", "\\)"}, {"$$", "$$"}, {"$", "$"}}};
  std::optional<std::string_view> last;
  // Once a delimiter is not closed, no later one of its kind is: each kind is searched to the end
  // at most once.
  std::array<bool, kinds.size()> exhausted{};
  for (std::size_t at = text.find_first_of("\\$"); at < text.size();
       at = text.find_first_of("\\$", at)) {
    std::size_t next = at + 1;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const Delimiters& marks = kinds[kind];
      if (exhausted[kind] || !text.substr(at).starts_with(marks.open)) continue;
      const std::size_t start = at + marks.open.size();
      const std::size_t end = text.find(marks.close, start);
      if (end == npos) {
        exhausted[kind] = true;
        continue;
      }
      const std::string_view content = trim(text.substr(start, end - start));
      if (!content.empty()) last = content;
      next = end + marks.close.size();
      break;
    }
    if (next == at + 1 && text[at] == '\\') ++next;  // \$ is a dollar
    at = next;
  }
  return last;
}

}  // namespace onset
