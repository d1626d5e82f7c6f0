#include "onset/tokenizer/regex.h"

#include <algorithm>
#include <array>

#include "onset/base/error.h"
#include "onset/tokenizer/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace onset {
namespace {

constexpr std::size_t jit_stack_start = std::size_t{64} << 10;
constexpr std::size_t jit_stack_limit = std::size_t{16} << 20;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// What one search needs beside the program; a program is shared by threads, this is not.
class Search {
 public:
  explicit Search(const pcre2_code* code)
      : data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(jit_stack_start, jit_stack_limit, nullptr)) {
    pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    pcre2_jit_stack_free(stack_);
    pcre2_match_context_free(context_);
    pcre2_match_data_free(data_);
  }
  [[nodiscard]] int run(const pcre2_code* code, std::string_view text, std::size_t from) const {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK, data_, context_);
  }
  [[nodiscard]] Regex::Match match() const {
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_);
    // \K in a look-ahead may put the start behind the end.
    return {std::min(bounds[0], bounds[1]), bounds[1]};
  }

 private:
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

}  // namespace

struct Regex::Program {
  pcre2_code* code = nullptr;
  std::string where;

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern, const std::string& where) {
  const std::string expanded = expand_classes(pattern, where);
  auto program = std::make_shared<Program>();
  program->where = where;
  int error = 0;
  PCRE2_SIZE error_at = 0;
  program->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()), expanded.size(),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                &error, &error_at, nullptr);
  if (program->code == nullptr) {
    throw input_error(str_cat(where, ": the regex does not compile: ", message_of(error)));
  }
  // Without JIT on this machine the interpreter serves.
  pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE);
  program_ = std::move(program);
}

std::vector<Regex::Match> Regex::find_all(std::string_view text) const {
  const Search search(program_->code);
  std::vector<Match> matches;
  for (std::size_t from = 0; from <= text.size();) {
    const int count = search.run(program_->code, text, from);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) {
      throw input_error(
          str_cat(program_->where, ": the regex failed on a text: ", message_of(count)));
    }
    const Match match = search.match();
    matches.push_back(match);
    from = std::max(match.end, from);
    if (match.end != match.start) continue;
    if (from >= text.size()) break;
    from += decode_char(text, from).length;
  }
  return matches;
}

}  // namespace onset
