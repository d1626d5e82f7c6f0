#include "onset/eval/math_parser.h"

#include <algorithm>
#include <array>

#include "onset/base/strings.h"
#include "onset/eval/letter_case.h"
#include "onset/eval/math_parser_impl.h"
#include "onset/eval/math_unit.h"

namespace onset {
namespace {

using Node = MathParser::Node;

bool is_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// \frac43: a number behind a fraction's command is its two arguments, a digit each.
std::vector<MathToken> with_digits_apart(std::vector<MathToken> tokens) {
  std::vector<MathToken> apart;
  apart.reserve(tokens.size());
  for (MathToken& token : tokens) {
    const bool is_argument = token.kind == TokenKind::number && token.text.size() > 1 &&
                             is_digits(token.text) && !apart.empty() &&
                             (apart.back().is_command("frac") || apart.back().is_command("binom"));
    if (!is_argument) {
      apart.push_back(std::move(token));
      continue;
    }
    constexpr std::size_t arguments = 2;
    for (std::size_t i = 0; i < arguments; ++i) {
      apart.push_back({TokenKind::number, token.text.substr(i, 1), false});
    }
    if (token.text.size() > arguments) {
      apart.push_back({TokenKind::number, token.text.substr(arguments), true});
    }
  }
  return apart;
}

bool is_closing(const MathToken& token) {
  return token.is(")") || token.is("]") || token.is("\\}") || token.is("}") || token.is("rangle") ||
         token.is_command("end:matrix") || token.is_command("end:determinant");
}

bool is_opening(const MathToken& token) {
  return token.is("(") || token.is("[") || token.is("\\{") || token.is("{") || token.is("langle") ||
         token.is_command("begin:matrix") || token.is_command("begin:determinant");
}

bool is_separator(const MathToken& token) {
  return token.is(",") || token.is(";") || token.is("and") || token.is("or");
}

bool is_relation(const MathToken& token) {
  static constexpr std::array operators = {
      std::string_view("="),  std::string_view("<"),  std::string_view(">"), std::string_view("<="),
      std::string_view(">="), std::string_view("!="), std::string_view("in")};
  return token.kind == TokenKind::symbol &&
         std::find(operators.begin(), operators.end(), token.text) != operators.end();
}

// A word that is an answer by itself rather than a product of variables.
bool is_plain_word(std::string_view word) {
  static constexpr std::array answers = {std::string_view("yes"), std::string_view("no"),
                                         std::string_view("odd"), std::string_view("all"),
                                         std::string_view("red"), std::string_view("none")};
  constexpr std::size_t longest_product = 3;
  return word.size() > longest_product ||
         std::find(answers.begin(), answers.end(), lower_case(word)) != answers.end();
}

bool is_part_of_words(const MathToken& token) {
  static constexpr std::array marks = {
      std::string_view("("), std::string_view(")"), std::string_view("-"), std::string_view("'"),
      std::string_view("."), std::string_view("!"), std::string_view("?"), std::string_view(":"),
      std::string_view("{"), std::string_view("}")};
  switch (token.kind) {
    case TokenKind::text:
    case TokenKind::word:
    case TokenKind::letter:
      return true;
    case TokenKind::symbol:
      return std::find(marks.begin(), marks.end(), token.text) != marks.end();
    default:
      return false;
  }
}

}  // namespace

std::optional<MathTree> parse_math(const std::vector<MathToken>& tokens) {
  return MathParser(with_digits_apart(tokens)).run();
}

std::string words_of(const std::vector<MathToken>& tokens, std::size_t first, std::size_t last) {
  std::string joined;
  for (std::size_t i = first; i < std::min(last, tokens.size()); ++i)
    joined += tokens[i].text + ' ';
  std::string words;
  for (const char c : lower_case(joined)) {
    const bool is_kept =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
    if (is_kept) {
      words += c;
    } else if (!words.empty() && words.back() != ' ' && c != '\'') {
      words += ' ';
    }
  }
  std::string_view result = trim(words);
  for (const std::string_view article : {"the ", "an ", "a "}) {
    if (result.starts_with(article)) {
      result.remove_prefix(article.size());
      break;
    }
  }
  return std::string(result);
}

std::optional<MathTree> MathParser::run() {
  if (tokens_.empty()) return std::nullopt;
  const Node root = list();
  if (!root || !at_end() || tree_.nodes.size() > max_nodes) return std::nullopt;
  tree_.root = *root;
  return std::move(tree_);
}

Node MathParser::make(MathKind kind, std::vector<std::size_t> children, std::string text) {
  if (tree_.nodes.size() > max_nodes) return std::nullopt;
  MathNode node;
  node.kind = kind;
  node.children = std::move(children);
  node.text = std::move(text);
  return tree_.add(std::move(node));
}

bool MathParser::at_separator() const { return !at_end() && is_separator(peek()); }

std::string MathParser::separators() {
  std::string kind = ",";
  while (at_separator()) {
    if (peek().is("and") || peek().is("or")) kind = peek().text;
    ++at_;
  }
  return kind;
}

Node MathParser::list() {
  std::vector<std::size_t> items;
  std::string kind = ",";
  const std::size_t first = at_;
  while (true) {
    const Node next = item();
    if (!next) return std::nullopt;
    items.push_back(*next);
    if (!at_separator()) break;
    const std::string separator = separators();
    if (separator != ",") kind = separator;
  }
  if (items.size() == 1) return items.front();
  const Node node = make(MathKind::list, std::move(items), kind);
  if (node) {
    tree_.nodes[*node].first = first;
    tree_.nodes[*node].last = at_;
  }
  return node;
}

std::size_t MathParser::item_end() const {
  int open = 0;
  std::size_t end = at_;
  for (; end < tokens_.size(); ++end) {
    const MathToken& token = tokens_[end];
    if (is_opening(token)) ++open;
    if (is_closing(token) && --open < 0) break;
    const bool ends = is_separator(token) || token.is("&") || token.is("\\\\") || token.is("mid");
    if (open == 0 && ends) break;
  }
  return end;
}

bool MathParser::is_words(std::size_t end) const {
  bool has_word = false;
  for (std::size_t i = at_; i < end; ++i) {
    if (!is_part_of_words(tokens_[i])) return false;
    has_word = has_word || tokens_[i].kind == TokenKind::text ||
               (tokens_[i].kind == TokenKind::word && is_plain_word(tokens_[i].text));
  }
  // "x \text{ cm}" is a length.
  const bool is_quantity =
      end == at_ + 2 && peek().kind == TokenKind::letter && is_unit_word(peek(1).text);
  return has_word && !is_quantity;
}

Node MathParser::words(std::size_t end) {
  const Node node = make(MathKind::words, {}, words_of(tokens_, at_, end));
  at_ = end;
  return node;
}

Node MathParser::item() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return std::nullopt;
  const std::size_t first = at_;
  const std::size_t end = item_end();
  Node node;
  if (is_words(end)) {
    node = words(end);
  } else {
    node = relation(end);
    if (node && at_ < end && is_unit_here()) node = with_unit_of_value(*node, end);
  }
  if (node) {
    tree_.nodes[*node].first = first;
    tree_.nodes[*node].last = at_;
  }
  return node;
}

// In "x = 5 cm" the unit is that of 5.
Node MathParser::with_unit_of_value(std::size_t node, std::size_t end) {
  if (tree_.at(node).kind != MathKind::relation) return with_unit(node, end);
  const Node quantity = with_unit(tree_.at(node).children.back(), end);
  if (quantity) tree_.nodes[node].children.back() = *quantity;
  return quantity ? Node(node) : std::nullopt;
}

// "5 million": the words of a scale are factors.
Node MathParser::with_scale(std::size_t node) {
  Node scaled = node;
  while (scaled && (peek().kind == TokenKind::text || peek().kind == TokenKind::word)) {
    const std::string& text = peek().text;
    const std::string first = text.substr(0, text.find(' '));
    const std::string digits = scale_digits(lower_case(first));
    if (digits.empty()) break;
    const Node scale = make(MathKind::number, {}, digits);
    scaled = scale ? make(MathKind::multiply, {*scaled, *scale}) : scale;
    if (first.size() == text.size()) {
      ++at_;
    } else {
      tokens_[at_].text = trim(text.substr(first.size()));
    }
  }
  return scaled;
}

// What stands behind an expression up to the item's end, as its unit.
Node MathParser::with_unit(std::size_t expression, std::size_t end) {
  const Node scaled = with_scale(expression);
  if (!scaled || at_ >= end) return scaled;
  const std::size_t node = *scaled;
  std::string text;
  for (; at_ < end; ++at_) {
    const MathToken& token = peek();
    // A number is an exponent, or the text is no unit: "3 times 4".
    const MathToken& before = tokens_[at_ - 1];
    if (token.kind == TokenKind::number && !before.is("^") && !before.is("{")) return std::nullopt;
    const bool is_mark = token.is("^") || token.is("/") || token.is(".") || token.is("{") ||
                         token.is("}") || token.is("-");
    const bool is_name = token.kind == TokenKind::text || token.kind == TokenKind::word ||
                         token.kind == TokenKind::letter;
    if (!is_mark && !is_name && token.kind != TokenKind::number) return std::nullopt;
    text += (token.spaced || is_name ? " " : "") + token.text;
  }
  const std::string unit = unit_spelling(text);
  MathKind kind = MathKind::unit;
  if (unit == "percent") kind = MathKind::percent;
  if (unit == "degree") kind = MathKind::degree;
  return make(kind, {node}, unit);
}

// Words that name what an equation states: "Area = 5".
Node MathParser::label(std::size_t end) {
  const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto equals = std::find_if(from, tokens_.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](const MathToken& token) { return token.is("="); });
  const auto label_end = static_cast<std::size_t>(equals - tokens_.begin());
  return label_end < end && is_words(label_end) ? words(label_end) : Node();
}

Node MathParser::relation(std::size_t end) {
  Node left = label(end);
  if (!left) left = join();
  if (!left) return std::nullopt;
  std::vector<std::size_t> sides = {*left};
  std::vector<std::string> operators;
  while (is_relation(peek())) {
    operators.push_back(peek().text);
    ++at_;
    const Node side = join();
    if (!side) return std::nullopt;
    sides.push_back(*side);
  }
  // "x = 1/3 \approx 0.333": the exact value is the answer.
  if (peek().is("~")) at_ = end;
  if (operators.empty()) return left;
  const Node node = make(MathKind::relation, std::move(sides));
  if (node) tree_.nodes[*node].operators = std::move(operators);
  return node;
}

Node MathParser::join() {
  Node left = ratio();
  for (int chain = 0; left && chain < max_chain; ++chain) {
    MathKind kind = MathKind::join;
    if (peek().is("cap")) {
      kind = MathKind::meet;
    } else if (peek().is("setminus")) {
      kind = MathKind::without;
    } else if (!peek().is("cup")) {
      return left;
    }
    ++at_;
    const Node right = ratio();
    if (!right) return std::nullopt;
    left = make(kind, {*left, *right});
  }
  return std::nullopt;
}

Node MathParser::ratio() {
  const Node left = sum();
  if (!left || in_builder_ || !peek().is(":")) return left;
  std::vector<std::size_t> parts = {*left};
  while (accept(":")) {
    const Node part = sum();
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return make(MathKind::ratio, std::move(parts));
}

Node MathParser::sum() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return std::nullopt;
  std::vector<std::size_t> terms;
  do {
    const Node term = signed_product();
    if (!term) return std::nullopt;
    terms.push_back(*term);
  } while (peek().is("+") || peek().is("-") || peek().is("pm") || peek().is("mp"));
  if (terms.size() == 1) return terms.front();
  return make(MathKind::add, std::move(terms));
}

Node MathParser::signed_product() {
  if (accept("+")) return product();
  MathKind kind = MathKind::negate;
  if (accept("pm")) {
    kind = MathKind::plus_minus;
  } else if (accept("mp")) {
    kind = MathKind::minus_plus;
  } else if (!accept("-")) {
    return product();
  }
  const Node inner = product();
  return inner ? make(kind, {*inner}) : inner;
}

Node MathParser::product() {
  const Node first = power();
  if (!first) return std::nullopt;
  std::vector<std::size_t> factors = {*first};
  const auto closed = [&] {
    return factors.size() == 1 ? Node(factors.front()) : make(MathKind::multiply, factors);
  };
  int divisions = 0;
  while (true) {
    if (accept("/")) {
      const Node above = closed();
      const Node below = signed_power();
      if (!above || !below || ++divisions > max_chain) return std::nullopt;
      const Node quotient = make(MathKind::divide, {*above, *below});
      if (!quotient) return std::nullopt;
      factors = {*quotient};
      continue;
    }
    const bool times = accept("*");
    if (!times && !starts_factor()) return closed();
    const Node factor = times ? signed_power() : power();
    if (!factor) return std::nullopt;
    factors.push_back(*factor);
  }
}

// 2 * -3, and exponents: a sign may stand before the factor.
Node MathParser::signed_power() {
  const bool negative = accept("-");
  if (!negative) (void)accept("+");
  const Node inner = power();
  return inner && negative ? make(MathKind::negate, {*inner}) : inner;
}

Node MathParser::power() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return std::nullopt;
  const Node base = postfix();
  if (!base || !accept("^")) return base;
  const Node exponent = signed_power();
  return exponent ? make(MathKind::power, {*base, *exponent}) : exponent;
}

Node MathParser::postfix() {
  Node node = primary();
  constexpr int longest = 8;
  for (int i = 0; node && i < longest; ++i) {
    if (accept("!")) {
      node = make(MathKind::factorial, {*node});
    } else if (accept("%")) {
      node = make(MathKind::percent, {*node}, "percent");
    } else if (accept("deg") || accept("circ")) {
      node = make(MathKind::degree, {*node}, "degree");
    } else {
      return node;
    }
  }
  return std::nullopt;
}

bool MathParser::is_unit_here() const {
  const MathToken& token = peek();
  if (token.kind == TokenKind::text) return true;
  if (token.kind != TokenKind::word) return false;
  constexpr std::size_t sure = 4;
  return is_unit_word(token.text) || token.text.size() >= sure ||
         (token.spaced && token.text.size() + 1 >= sure);
}

bool MathParser::starts_factor() const {
  const MathToken& token = peek();
  switch (token.kind) {
    case TokenKind::number:
      return at_ > 0 && tokens_[at_ - 1].kind != TokenKind::number;
    case TokenKind::letter:
    case TokenKind::accent:
      return true;
    case TokenKind::word:
      return !is_unit_here();
    case TokenKind::command:
      return !token.text.starts_with("end:");
    case TokenKind::text:
      return false;
    case TokenKind::symbol:
      return token.is("(") || token.is("[") || token.is("{") || token.is("lfloor") ||
             token.is("lceil") || token.is("infty") || (token.is("|") && bars_ == 0);
  }
  return false;
}

}  // namespace onset
