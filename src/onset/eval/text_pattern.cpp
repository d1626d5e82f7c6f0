#include "onset/eval/text_pattern.h"

#include <array>
#include <cstdint>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace onset {
namespace {

// Steps of one search; an ordinary one takes a few for every character.
constexpr std::uint32_t match_limit = 2'000'000;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

bool has_capital_z(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    if (pattern[i + 1] == 'Z') return true;
    ++i;
  }
  return false;
}

}  // namespace

struct TextPattern::Program {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  std::uint32_t groups = 0;

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

TextPattern::TextPattern(std::string_view pattern, const std::string& where) {
  if (has_capital_z(pattern)) {
    throw input_error(str_cat(where, ": the regex ", quote(pattern), " has \\Z"),
                      "write \\z for the very end of the text");
  }
  auto program = std::make_shared<Program>();
  int error = 0;
  PCRE2_SIZE error_at = 0;
  program->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &error_at, nullptr);
  if (program->code == nullptr) {
    throw input_error(str_cat(where, ": the regex ", quote(pattern), " does not compile: ",
                              message_of(error), " (at byte ", error_at, ")"));
  }
  program->context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(program->context, match_limit);
  pcre2_pattern_info(program->code, PCRE2_INFO_CAPTURECOUNT, &program->groups);
  // Without JIT on this machine the interpreter serves.
  pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE);
  program_ = std::move(program);
}

std::vector<TextPattern::Match> TextPattern::find_all(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(program_->code, nullptr), &pcre2_match_data_free);
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
  // The part between two bounds; none for a group that took no part, or that \K turned around.
  const auto part = [&](std::size_t group) -> std::string_view {
    const PCRE2_SIZE start = bounds[2 * group];
    const PCRE2_SIZE end = bounds[2 * group + 1];
    return start == PCRE2_UNSET || end < start ? std::string_view()
                                               : text.substr(start, end - start);
  };
  std::vector<Match> matches;
  // As in Python, the match behind an empty one begins at the same place or later, but is not that
  // empty one again.
  std::uint32_t options = PCRE2_NO_UTF_CHECK;
  for (std::size_t from = 0; from <= text.size();) {
    const auto match_with = [&](std::uint32_t how) {
      return pcre2_match(program_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         from, options | how, data.get(), program_->context);
    };
    int count = match_with(0);
    // Compiled code has a small stack of its own; the interpreter has the heap.
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match_with(PCRE2_NO_JIT);
    if (count < 0) break;
    Match match{part(0), {}};
    for (std::uint32_t group = 1; group <= program_->groups; ++group) {
      match.groups.push_back(group < static_cast<std::uint32_t>(count) ? part(group)
                                                                       : std::string_view());
    }
    matches.push_back(std::move(match));
    options = PCRE2_NO_UTF_CHECK;
    if (bounds[1] <= bounds[0]) options |= PCRE2_NOTEMPTY_ATSTART;
    if (bounds[1] < from) break;
    from = bounds[1];
  }
  return matches;
}

std::string TextPattern::remove_from(std::string_view text) const {
  std::string kept;
  std::size_t from = 0;
  for (const Match& match : find_all(text)) {
    if (match.text.empty()) continue;
    const auto at = static_cast<std::size_t>(match.text.data() - text.data());
    kept += text.substr(from, at - from);
    from = at + match.text.size();
  }
  kept += text.substr(from);
  return kept;
}

}  // namespace onset
