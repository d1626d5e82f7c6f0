#include "onset/eval/math_token.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "onset/base/strings.h"
#include "onset/eval/math_names.h"

namespace onset {
namespace {

constexpr auto npos = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // False when the text cannot be read.
  bool run(int depth = 0) {
    while (at_ < text_.size()) {
      if (tokens_.size() > max_tokens || !next(depth)) return false;
    }
    return true;
  }

  std::vector<MathToken> take() { return std::move(tokens_); }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool starts(std::string_view prefix, std::size_t from) const {
    return text_.substr(std::min(from, text_.size())).starts_with(prefix);
  }
  [[nodiscard]] std::size_t digits_end(std::size_t from) const {
    while (from < text_.size() && is_digit(text_[from])) ++from;
    return from;
  }
  [[nodiscard]] std::size_t spaces_end(std::size_t from) const {
    while (from < text_.size() && is_space(text_[from])) ++from;
    return from;
  }

  void push(MathToken token) {
    token.spaced = std::exchange(spaced_, false);
    tokens_.push_back(std::move(token));
  }
  void push(TokenKind kind, std::string_view text) { push({kind, std::string(text), false}); }
  void push_symbol(std::string_view text) {
    if (text == "(" || text == "[" || text == "\\{") ++brackets_;
    if ((text == ")" || text == "]" || text == "\\}") && brackets_ > 0) --brackets_;
    push(TokenKind::symbol, text);
  }

  bool next(int depth) {
    const char c = peek();
    if (is_space(c) || c == '~' || c == '"') {
      spaced_ = true;
      ++at_;
      return true;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (is_letter(c)) return letters();
    if (c == '\\') return command(depth);
    return symbol();
  }

  // Where the three digits of a further group of thousands begin, when one follows at `end`.
  [[nodiscard]] std::size_t next_group(std::size_t end) const {
    std::size_t group = npos;
    if (starts("{,}", end)) {
      group = end + 3;
    } else if (starts(",\\!", end)) {
      group = spaces_end(end + 3);
    } else if (starts("\\,", end) || starts("\\;", end)) {
      group = end + 2;
    } else if (brackets_ == 0 && (starts(",", end) || starts(" ", end))) {
      group = end + 1;
    }
    if (group == npos || digits_end(group) != group + 3) return npos;
    // "1 234/5" is a mixed number.
    if (text_[end] == ' ' && starts("/", spaces_end(group + 3))) return npos;
    return group;
  }

  bool number() {
    std::size_t end = digits_end(at_);
    std::string digits(text_.substr(at_, end - at_));
    if (!digits.empty() && digits.size() <= 3 && digits.front() != '0') {
      for (std::size_t group = next_group(end); group != npos; group = next_group(end)) {
        digits += text_.substr(group, 3);
        end = group + 3;
      }
    }
    at_ = end;
    fraction(digits);
    exponent(digits);
    push(TokenKind::number, digits);
    return true;
  }

  // ".25", and ".1\overline{6}" as ".1(6)".
  void fraction(std::string& digits) {
    if (peek() != '.') return;
    const std::size_t end = digits_end(at_ + 1);
    std::size_t bar = end;
    for (const std::string_view name : {"\\overline{", "\\bar{", "\\dot{"}) {
      if (starts(name, end)) bar = end + name.size();
    }
    const std::size_t bar_end = digits_end(bar);
    const bool repeats = bar > end && bar_end > bar && starts("}", bar_end);
    if (end == at_ + 1 && !repeats) return;  // a full stop
    digits += text_.substr(at_, end - at_);
    at_ = end;
    if (!repeats) return;
    digits += '(';
    digits += text_.substr(bar, bar_end - bar);
    digits += ')';
    at_ = bar_end + 1;
  }

  // "6.7e-5": only behind a decimal point or with a capital E, since 2e is 2 times Euler's number.
  void exponent(std::string& digits) {
    const bool small = peek() == 'e' && digits.find('.') != npos;
    if (!small && peek() != 'E') return;
    std::size_t from = at_ + 1;
    if (from < text_.size() && (text_[from] == '-' || text_[from] == '+')) ++from;
    const std::size_t end = digits_end(from);
    constexpr std::size_t longest = 5;
    if (end == from || end > from + longest || digits.back() == ')') return;
    const std::string power(text_.substr(at_ + 1, end - at_ - 1));
    push(TokenKind::number, digits);
    push_symbol("*");
    push(TokenKind::number, "10");
    push_symbol("^");
    if (power.front() == '-') push_symbol("-");
    digits = text_.substr(from, end - from);
    at_ = end;
  }

  bool letters() {
    std::size_t end = at_;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string_view run = text_.substr(at_, end - at_);
    at_ = end;
    if (std::optional<MathToken> known = token_of_word(run)) {
      push(std::move(*known));
    } else if (run.size() == 1) {
      push(TokenKind::letter, run);
    } else if (is_function(run.substr(0, run.size() - 1)) && run.size() > 2) {  // "sinx"
      push(TokenKind::command, run.substr(0, run.size() - 1));
      push(TokenKind::letter, run.substr(run.size() - 1));
    } else {
      push(TokenKind::word, run);
    }
    return true;
  }

  bool symbol() {
    static constexpr std::string_view single = "+-*/^_()[]{}|,;:=<>!%'&$?.";
    using Spelling = std::pair<std::string_view, std::string_view>;
    for (const auto& [written, meant] :
         {Spelling("<=", "<="), Spelling(">=", ">="), Spelling("!=", "!="), Spelling("==", "="),
          Spelling("**", "^"), Spelling("{:}", ":"), Spelling("{,}", ","), Spelling("{=}", "=")}) {
      if (!starts(written, at_)) continue;
      at_ += written.size();
      push_symbol(meant);
      return true;
    }
    if (single.find(peek()) == npos) return false;
    if (peek() == '^' && degree_end() != npos) {
      at_ = degree_end();
      push_symbol("deg");
      return true;
    }
    push_symbol(text_.substr(at_, 1));
    ++at_;
    return true;
  }

  // Behind "^\circ" or "^{\circ}" at the present place, else npos.
  [[nodiscard]] std::size_t degree_end() const {
    std::size_t from = spaces_end(at_ + 1);
    const bool braced = starts("{", from);
    if (braced) from = spaces_end(from + 1);
    std::size_t end = npos;
    for (const std::string_view name : {"\\circ", "\\degree", "\\degrees"}) {
      if (starts(name, from) &&
          !is_letter(from + name.size() < text_.size() ? text_[from + name.size()] : ' ')) {
        end = from + name.size();
      }
    }
    if (end == npos || !braced) return end;
    end = spaces_end(end);
    return starts("}", end) ? end + 1 : npos;
  }

  bool command(int depth) {
    const char c = peek(1);
    if (!is_letter(c)) return escaped(c);
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    if (is_layout(name)) {
      // \left. and \right. stand for no bracket.
      const std::size_t dot = spaces_end(at_);
      if ((name == "left" || name == "right") && starts(".", dot)) at_ = dot + 1;
      spaced_ = spaced_ || name == "quad" || name == "qquad" || name == "space";
      return true;
    }
    if (name == "begin" || name == "end") return environment(name);
    if (takes_text(name)) return text_argument(name, depth);
    std::optional<MathToken> known = token_of_command(name);
    if (!known) return false;
    if (known->kind == TokenKind::symbol) {
      push_symbol(known->text);
    } else {
      push(std::move(*known));
    }
    return true;
  }

  bool escaped(char c) {
    static constexpr std::string_view spaces = ",;:!> ()[]";
    at_ += std::min<std::size_t>(2, text_.size() - at_);
    if (c == '\0') return true;
    if (is_space(c) || spaces.find(c) != npos) {
      spaced_ = spaced_ || c != '!';
      return true;
    }
    switch (c) {
      case '{':
        push_symbol("\\{");
        return true;
      case '}':
        push_symbol("\\}");
        return true;
      case '$':
        push_symbol("$");
        return true;
      case '%':
        push_symbol("%");
        return true;
      case '|':
        push_symbol("|");
        return true;
      case '\\':
        push_symbol("\\\\");
        return true;
      default:
        return false;
    }
  }

  bool environment(std::string_view name) {
    const std::size_t open = spaces_end(at_);
    const std::size_t close = text_.find('}', open);
    if (!starts("{", open) || close == npos) return false;
    const std::string_view kind = text_.substr(open + 1, close - open - 1);
    at_ = close + 1;
    if (kind == "array" && name == "begin") {  // its column layout
      const std::size_t columns = spaces_end(at_);
      const std::size_t end = text_.find('}', columns);
      if (!starts("{", columns) || end == npos) return false;
      at_ = end + 1;
    }
    for (const std::string_view matrix :
         {"pmatrix", "bmatrix", "matrix", "smallmatrix", "array", "vmatrix", "Bmatrix"}) {
      if (kind != matrix) continue;
      // A determinant is no matrix; all else differs in its brackets alone.
      push(TokenKind::command,
           std::string(name) + (kind == "vmatrix" ? ":determinant" : ":matrix"));
      return true;
    }
    return false;
  }

  bool text_argument(std::string_view name, int depth) {
    const std::size_t open = spaces_end(at_);
    if (!starts("{", open)) return true;  // \bf without braces
    std::size_t end = open;
    for (int level = 0; end < text_.size(); ++end) {
      if (text_[end] == '{') ++level;
      if (text_[end] == '}' && --level == 0) break;
    }
    if (end >= text_.size()) return false;
    const std::string_view inside = text_.substr(open + 1, end - open - 1);
    at_ = end + 1;
    return text_content(name, inside, depth);
  }

  bool text_content(std::string_view name, std::string_view inside, int depth) {
    const std::string_view content = trim(inside);
    spaced_ = spaced_ || content.empty() || is_space(inside.front());
    if (content.empty()) return true;
    std::string_view word = content;
    while (!word.empty() && word.front() == ',') word = trim(word.substr(1));
    if (word == "and" || word == "or" || word == "and " || word == "or ") {
      push_symbol(word);
      return true;
    }
    const bool has_word = content.find_first_of("0123456789\\") == npos;
    if (has_word) {
      if (name.starts_with("math") || name == "operatorname") {
        if (std::optional<MathToken> known = token_of_word(content)) {
          push(std::move(*known));
          return true;
        }
      }
      const bool is_symbol = content.size() == 1 && !name.starts_with("text") && name != "mbox";
      push(is_symbol ? TokenKind::letter : TokenKind::text, content);
      return true;
    }
    // Numbers and formulas within text, once: "\text{5 cm}".
    if (depth > 0) return false;
    Lexer inner(content);
    if (!inner.run(depth + 1)) return false;
    for (MathToken& token : inner.tokens_) tokens_.push_back(std::move(token));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool spaced_ = false;
  int brackets_ = 0;  // open (, [ and \{: a comma in them separates
  std::vector<MathToken> tokens_;
};

// Without the $ that sets formulas off. A $ too many is a currency sign.
std::string without_math_marks(std::string_view text) {
  std::vector<std::size_t> marks;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '$') {
      marks.push_back(at);
    }
  }
  std::string result(text);
  if (marks.size() % 2 == 0) {
    for (const std::size_t at : marks) result[at] = ' ';
  }
  return result;
}

}  // namespace

std::optional<std::vector<MathToken>> math_tokens(std::string_view text) {
  const std::string plain = without_math_marks(trim(ascii_math(text)));
  Lexer lexer(plain);
  if (!lexer.run()) return std::nullopt;
  std::vector<MathToken> tokens = lexer.take();
  const auto ends_a_sentence = [](const MathToken& token) {
    return token.is(".") || token.is(",") || token.is(";") || token.is(":") || token.is("\\\\");
  };
  while (!tokens.empty() && ends_a_sentence(tokens.back())) tokens.pop_back();
  return tokens;
}

std::string spelling(const std::vector<MathToken>& tokens) {
  std::string joined;
  for (const MathToken& token : tokens) {
    joined += token.kind == TokenKind::text ? "\\text " : "";
    joined += token.text;
    joined += ' ';
  }
  return joined;
}

}  // namespace onset
