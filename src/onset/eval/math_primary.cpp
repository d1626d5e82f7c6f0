#include <algorithm>
#include <array>
#include <utility>

#include "onset/eval/exact_number.h"
#include "onset/eval/math_names.h"
#include "onset/eval/math_parser_impl.h"

namespace onset {
namespace {

using Node = MathParser::Node;

bool is_integer(const MathNode& node) {
  return node.kind == MathKind::number && node.text.find('.') == std::string::npos;
}

// a < b for integers without a sign.
bool is_less(std::string_view a, std::string_view b) {
  const auto without_zeros = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  a = without_zeros(a);
  b = without_zeros(b);
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// The bases that are written as words.
std::optional<std::string> base_of_word(std::string_view word) {
  static constexpr std::array words = {
      std::string_view("two"),    std::string_view("three"), std::string_view("four"),
      std::string_view("five"),   std::string_view("six"),   std::string_view("seven"),
      std::string_view("eight"),  std::string_view("nine"),  std::string_view("ten"),
      std::string_view("eleven"), std::string_view("twelve")};
  const auto* const found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return std::to_string(found - words.begin() + 2);
}

}  // namespace

Node MathParser::primary() {
  const Nesting nesting(depth_);
  if (nesting.too_deep() || at_end()) return std::nullopt;
  switch (peek().kind) {
    case TokenKind::number:
      return number();
    case TokenKind::letter:
      return letter();
    case TokenKind::word:
      return word();
    case TokenKind::accent:
      return accent();
    case TokenKind::command:
      return command();
    case TokenKind::symbol:
      return symbol();
    case TokenKind::text:
      break;
  }
  // A currency written before its number.
  if (peek().text != "euros" && peek().text != "sterling") return std::nullopt;
  std::string unit = peek().text == "euros" ? "euro" : "sterling";
  ++at_;
  const Node value = power();
  return value ? make(MathKind::unit, {*value}, std::move(unit)) : value;
}

Node MathParser::number() {
  const std::string digits = peek().text;
  ++at_;
  if (accept("_")) return based(digits);
  const Node whole = make(MathKind::number, {}, digits);
  return whole && is_integer(tree_.at(*whole)) ? mixed_number(*whole) : whole;
}

// Whether the command here has two arguments that are numbers: what is read twice must be short.
bool MathParser::plain_arguments() const {
  std::size_t ahead = 1;
  for (int i = 0; i < 2; ++i) {
    const bool braced = peek(ahead).is("{");
    if (braced) ++ahead;
    if (peek(ahead++).kind != TokenKind::number) return false;
    if (braced && !peek(ahead++).is("}")) return false;
  }
  return true;
}

// "1\frac{4}{5}" and "1 4/5" are 9/5; an improper fraction behind a number is a factor.
Node MathParser::mixed_number(std::size_t whole) {
  const std::size_t start = at_;
  Node part;
  if (peek().is_command("frac") && plain_arguments()) {
    ++at_;
    part = fraction();
  } else if (peek().kind == TokenKind::number && peek().spaced && peek(1).is("/") &&
             peek(2).kind == TokenKind::number) {
    const Node above = make(MathKind::number, {}, peek().text);
    const Node below = make(MathKind::number, {}, peek(2).text);
    if (!above || !below) return std::nullopt;
    at_ += 3;
    part = make(MathKind::divide, {*above, *below});
  }
  if (part) {
    const MathNode& above = tree_.at(tree_.child(*part, 0));
    const MathNode& below = tree_.at(tree_.child(*part, 1));
    if (is_integer(above) && is_integer(below) && is_less(above.text, below.text)) {
      return make(MathKind::add, {whole, *part});
    }
  }
  at_ = start;
  return whole;
}

Node MathParser::based(const std::string& digits) {
  const bool braced = accept("{");
  std::optional<std::string> base;
  if (peek().kind == TokenKind::number) base = peek().text;
  if (peek().kind == TokenKind::text || peek().kind == TokenKind::word) {
    base = base_of_word(peek().text);
  }
  if (!base) return std::nullopt;
  ++at_;
  if (braced && !accept("}")) return std::nullopt;
  const Node node = make(MathKind::number, {}, *base);
  return node ? make(MathKind::based, {*node}, digits) : node;
}

std::optional<std::string> MathParser::name_part() {
  if (at_end()) return std::nullopt;
  if (!accept("{")) return tokens_[at_++].text;
  std::string name;
  for (int open = 1; !at_end(); ++at_) {
    if (peek().is("{")) ++open;
    if (peek().is("}") && --open == 0) {
      ++at_;
      return name;
    }
    name += (name.empty() ? "" : " ") + peek().text;
  }
  return std::nullopt;
}

Node MathParser::letter() {
  std::string name = peek().text;
  ++at_;
  while (accept("'")) name += '\'';
  if (accept("_")) {
    const std::optional<std::string> index = name_part();
    if (!index) return std::nullopt;
    name += "_" + *index;
  }
  return make(MathKind::symbol, {}, std::move(name));
}

// A word that is neither an answer nor a unit is a product of variables, "xy".
Node MathParser::word() {
  const std::string letters = peek().text;
  ++at_;
  std::vector<std::size_t> factors;
  for (const char c : letters) {
    const Node factor = make(MathKind::symbol, {}, std::string(1, c));
    if (!factor) return std::nullopt;
    factors.push_back(*factor);
  }
  if (accept("_")) {
    const std::optional<std::string> index = name_part();
    if (!index) return std::nullopt;
    tree_.nodes[factors.back()].text += "_" + *index;
  }
  // xy^2 is x y^2.
  if (accept("^")) {
    const Node exponent = signed_power();
    if (!exponent) return std::nullopt;
    const Node last = make(MathKind::power, {factors.back(), *exponent});
    if (!last) return std::nullopt;
    factors.back() = *last;
  }
  return make(MathKind::multiply, std::move(factors));
}

Node MathParser::accent() {
  const std::string name = peek().text;
  ++at_;
  if (name == "angle" || name == "triangle") return make(MathKind::symbol, {}, name);
  const std::optional<std::string> of = name_part();
  if (!of) return std::nullopt;
  if (name == "mathbb" && *of == "R") return make(MathKind::reals);
  return make(MathKind::symbol, {}, name + " " + *of);
}

Node MathParser::command() {
  const std::string name = peek().text;
  ++at_;
  if (name == "frac") return fraction();
  if (name == "sqrt") return square_root();
  if (name == "binom") {
    const Node n = argument();
    const Node k = n ? argument() : n;
    return k ? make(MathKind::binomial, {*n, *k}) : k;
  }
  if (name == "begin:matrix" || name == "begin:determinant") {
    return matrix(name == "begin:determinant");
  }
  return is_function(name) ? function(name) : std::nullopt;
}

Node MathParser::argument() { return peek().is("{") ? group() : primary(); }

Node MathParser::fraction() {
  const Node above = argument();
  const Node below = above ? argument() : above;
  return below ? make(MathKind::divide, {*above, *below}) : below;
}

Node MathParser::square_root() {
  Node index;
  if (accept("[")) {
    index = sum();
    if (!index || !accept("]")) return std::nullopt;
  } else {
    index = make(MathKind::number, {}, "2");
  }
  const Node radicand = argument();
  return index && radicand ? make(MathKind::root, {*index, *radicand}) : std::nullopt;
}

Node MathParser::function(const std::string& name) {
  Node base;
  Node exponent;
  for (int i = 0; i < 2; ++i) {
    if (name == "log" && !base && accept("_")) {
      base = argument();
      if (!base) return std::nullopt;
    } else if (!exponent && accept("^")) {
      exponent = peek().is("{") ? group() : signed_power();
      if (!exponent) return std::nullopt;
    }
  }
  const Node inner = function_argument();
  if (!inner) return std::nullopt;
  std::vector<std::size_t> arguments = {*inner};
  if (base) arguments.insert(arguments.begin(), *base);
  const bool is_inverse = exponent && tree_.at(*exponent).kind == MathKind::negate &&
                          tree_.at(tree_.child(*exponent)).text == "1";
  if (is_inverse) return make(MathKind::function, std::move(arguments), "arc" + name);
  const Node node = make(MathKind::function, std::move(arguments), name);
  return node && exponent ? make(MathKind::power, {*node, *exponent}) : node;
}

// "\sin(x)", "\sin{x}", or the factors that follow: "\sin 2x".
Node MathParser::function_argument() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return std::nullopt;
  if (peek().is("(") || peek().is("[") || peek().is("{")) return primary();
  if (accept("-")) {
    const Node inner = function_argument();
    return inner ? make(MathKind::negate, {*inner}) : inner;
  }
  std::vector<std::size_t> factors;
  do {
    const Node factor = power();
    if (!factor) return std::nullopt;
    factors.push_back(*factor);
  } while (starts_factor() && !(peek().kind == TokenKind::command && is_function(peek().text)));
  return factors.size() == 1 ? Node(factors.front()) : make(MathKind::multiply, std::move(factors));
}

Node MathParser::matrix(bool is_determinant) {
  const std::string_view end = is_determinant ? "end:determinant" : "end:matrix";
  std::vector<std::size_t> cells;
  std::size_t columns = 0;
  std::size_t in_row = 0;
  while (true) {
    const Node cell = item();
    if (!cell) return std::nullopt;
    cells.push_back(*cell);
    ++in_row;
    if (accept("&")) continue;
    const bool more = accept("\\\\");
    if (columns == 0) columns = in_row;
    if (in_row != columns) return std::nullopt;
    in_row = 0;
    if (peek().is_command(end)) break;
    if (!more) return std::nullopt;
  }
  ++at_;
  const Node node = make(MathKind::matrix, std::move(cells), is_determinant ? "determinant" : "");
  if (node) tree_.nodes[*node].columns = columns;
  return node;
}

Node MathParser::symbol() {
  if (peek().is("(") || peek().is("[") || peek().is("langle")) return brackets();
  if (peek().is("{")) return group();
  if (peek().is("\\{")) return set();
  if (accept("|")) {
    ++bars_;
    const Node node = between("|", "abs");
    --bars_;
    return node;
  }
  if (accept("lfloor")) return between("rfloor", "floor");
  if (accept("lceil")) return between("rceil", "ceil");
  if (accept("infty")) return make(MathKind::infinity);
  if (accept("emptyset")) return make(MathKind::empty_set);
  if (accept("$")) {
    const Node value = power();
    return value ? make(MathKind::unit, {*value}, "dollar") : value;
  }
  return std::nullopt;
}

Node MathParser::between(std::string_view close, std::string_view function) {
  const Node inner = sum();
  if (!inner || !accept(close)) return std::nullopt;
  return make(MathKind::function, {*inner}, std::string(function));
}

// (x) is x; (a, b), [a, b) and their kin are tuples.
Node MathParser::brackets() {
  const bool is_angle = peek().is("langle");
  std::string around = is_angle ? "(" : peek().text;
  ++at_;
  const int bars = std::exchange(bars_, 0);
  const bool in_builder = std::exchange(in_builder_, false);
  const Node inside = list();
  bars_ = bars;
  in_builder_ = in_builder;
  if (!inside) return std::nullopt;
  if (is_angle ? !peek().is("rangle") : !(peek().is(")") || peek().is("]"))) return std::nullopt;
  around += is_angle ? ")" : peek().text;
  ++at_;
  if (tree_.at(*inside).kind == MathKind::list && tree_.at(*inside).text == ",") {
    tree_.nodes[*inside].kind = MathKind::tuple;
    tree_.nodes[*inside].text = around;
    return inside;
  }
  return around == "()" || around == "[]" ? inside : std::nullopt;
}

Node MathParser::set() {
  ++at_;
  if (accept("\\}")) return make(MathKind::empty_set);
  const int bars = std::exchange(bars_, 1);  // a | divides, it opens nothing
  const bool in_builder = std::exchange(in_builder_, true);
  const Node inside = list();
  in_builder_ = in_builder;
  bars_ = bars;
  if (!inside) return std::nullopt;
  if (accept("mid") || accept(":") || accept("|")) {  // {x : condition} is its condition
    const Node condition = list();
    return accept("\\}") ? condition : std::nullopt;
  }
  if (!accept("\\}")) return std::nullopt;
  const MathNode& node = tree_.at(*inside);
  if (node.kind == MathKind::list) {
    tree_.nodes[*inside].kind = MathKind::set;
    return inside;
  }
  return make(MathKind::set, {*inside});
}

// {..} holds an argument together; {1, 2} is a set all the same.
Node MathParser::group() {
  ++at_;
  const int bars = std::exchange(bars_, 0);
  Node inside = list();
  if (inside && (peek().is("choose") || peek().is("over"))) {
    const MathKind kind = peek().is("choose") ? MathKind::binomial : MathKind::divide;
    ++at_;
    const Node below = list();
    inside = below ? make(kind, {*inside, *below}) : below;
  }
  bars_ = bars;
  if (!inside || !accept("}")) return std::nullopt;
  if (tree_.at(*inside).kind == MathKind::list) tree_.nodes[*inside].kind = MathKind::set;
  return inside;
}

}  // namespace onset
