#include "onset/eval/math_side.h"

#include <algorithm>

#include "onset/eval/math_parser.h"
#include "onset/eval/math_unit.h"

namespace onset {
namespace {

// Items of a list or set that are compared; longer ones are not answers of any task.
constexpr std::size_t max_items = 100;
constexpr std::size_t max_signs = 4;
constexpr std::size_t max_nodes = 65536;
// Values at points have 33 digits, of which an expression may lose some.
constexpr std::size_t max_digits = 20;

// The fractional part of (index + 1) . golden ratio: spread over [0, 1) without a pattern.
Quad spread(std::size_t index) {
  // Fibonacci hashing, in whole numbers so that the value is exact.
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15U;
  const std::uint64_t hash = (static_cast<std::uint64_t>(index) + 1) * golden;
  return Quad(hash >> 32) / Quad(std::uint64_t{1} << 32);
}

bool is_long(const std::string& digits) {
  const std::size_t first = std::min(digits.find_first_not_of("0."), digits.size());
  return digits.size() - first > max_digits;
}

}  // namespace

std::array<MathPoint, math_points> make_math_points(const std::set<std::string>& variables) {
  std::array<MathPoint, math_points> points;
  std::size_t index = 0;
  for (const std::string& name : variables) {
    const auto between = [&](std::size_t point, int low, int high) {
      return low + spread(index * math_points + point) * (high - low);
    };
    const bool even = index % 2 == 0;
    const int order = static_cast<int>(index);
    const std::array<Quad, math_points> values = {between(0, 0, 2),
                                                  between(1, 2, 7),
                                                  between(2, 1, 3) * (even ? -1 : 1),
                                                  between(3, 0, 2) * (even ? 1 : -1),
                                                  between(4, 10, 30),
                                                  Quad(7 + 2 * order),
                                                  Quad(12 - order),
                                                  Quad(5 + 3 * order)};
    for (std::size_t point = 0; point < math_points; ++point) {
      points[point][name] = exact_value(values[point]);
    }
    ++index;
  }
  return points;
}

std::size_t MathSide::make(MathKind kind, std::vector<std::size_t> children, std::string text) {
  MathNode node;
  node.kind = kind;
  node.children = std::move(children);
  node.text = std::move(text);
  return tree_.add(std::move(node));
}

void MathSide::gather(std::size_t node, Facts& facts) const {
  const MathNode& at = tree_.at(node);
  if (at.kind == MathKind::symbol) {
    facts.is_complex = facts.is_complex || at.text == "i";
    if (!is_constant_name(at.text)) facts.variables.insert(at.text);
  }
  if (at.kind == MathKind::number && is_long(at.text)) facts.has_long_literal = true;
  for (const std::size_t child : at.children) gather(child, facts);
}

MathSide::Facts& MathSide::facts(std::size_t node) {
  const auto found = facts_.find(node);
  if (found != facts_.end()) return found->second;
  Facts& made = facts_[node];
  gather(node, made);
  return made;
}

const std::set<std::string>& MathSide::variables(std::size_t node) { return facts(node).variables; }
bool MathSide::is_complex(std::size_t node) { return facts(node).is_complex; }
bool MathSide::has_long_literal(std::size_t node) { return facts(node).has_long_literal; }

const std::optional<Fraction>& MathSide::exact(std::size_t node) {
  Facts& known = facts(node);
  if (!known.exact) known.exact = exact_value_of(tree_, node, steps_);
  return *known.exact;
}

const MathValue& MathSide::value(std::size_t node, std::size_t index, const MathPoint& point) {
  std::map<std::size_t, MathValue>& values = facts(node).values;
  const auto found = values.find(index);
  if (found != values.end()) return found->second;
  return values.emplace(index, value_at(tree_, node, point, steps_)).first->second;
}

MathValue MathSide::value_with(std::size_t node, const std::string& variable, const MathValue& x) {
  return value_at(tree_, node, {{variable, x}}, steps_);
}

std::string MathSide::words(std::size_t node) const {
  const MathNode& at = tree_.at(node);
  if (at.kind == MathKind::words) return at.text;
  return at.last > at.first ? words_of(tokens_, at.first, at.last) : std::string();
}

MathSide::Quantity MathSide::quantity(std::size_t node) {
  const auto found = quantities_.find(node);
  if (found != quantities_.end()) return found->second;
  Quantity made = split(node);
  quantities_.emplace(node, made);
  return made;
}

MathSide::Quantity MathSide::split(std::size_t node) {
  const MathKind kind = tree_.at(node).kind;
  if (kind == MathKind::unit || kind == MathKind::percent || kind == MathKind::degree) {
    const std::string unit = tree_.at(node).text;
    Quantity inner = split(tree_.child(node));
    inner.unit = inner.unit.empty() || inner.unit == unit ? unit : inner.unit + " " + unit;
    return inner;
  }
  if (kind == MathKind::negate) {
    const Quantity inner = split(tree_.child(node));
    if (inner.unit.empty()) return {node, {}};
    return {make(MathKind::negate, {inner.value}), inner.unit};
  }
  if (kind == MathKind::multiply) {
    std::vector<std::size_t> factors = tree_.at(node).children;
    const Quantity last = split(factors.back());
    if (last.unit.empty()) return {node, {}};
    factors.back() = last.value;
    return {make(MathKind::multiply, std::move(factors)), last.unit};
  }
  return {node, {}};
}

void MathSide::count_signs(std::size_t node, std::size_t& plus_minus,
                           std::size_t& minus_plus) const {
  const MathNode& at = tree_.at(node);
  if (at.kind == MathKind::plus_minus) ++plus_minus;
  if (at.kind == MathKind::minus_plus) ++minus_plus;
  for (const std::size_t child : at.children) count_signs(child, plus_minus, minus_plus);
}

bool MathSide::has_plus_minus(std::size_t node) const {
  std::size_t plus_minus = 0;
  std::size_t minus_plus = 0;
  count_signs(node, plus_minus, minus_plus);
  return plus_minus + minus_plus > 0;
}

// A copy in which sign number n is minus where bit n of `signs` is set; all have the first's sign
// when they go `together`.
std::size_t MathSide::with_signs(std::size_t node, unsigned signs, std::size_t& next,
                                 bool together) {
  MathNode copy = tree_.at(node);
  const bool is_sign = copy.kind == MathKind::plus_minus || copy.kind == MathKind::minus_plus;
  bool minus = false;
  if (is_sign) {
    minus = ((signs >> (together ? 0 : next)) & 1U) != 0;
    if (copy.kind == MathKind::minus_plus) minus = !minus;
    ++next;
  }
  for (std::size_t& child : copy.children) child = with_signs(child, signs, next, together);
  if (is_sign && !minus) return copy.children.front();
  if (is_sign) copy.kind = MathKind::negate;
  return tree_.add(std::move(copy));
}

std::optional<std::vector<std::size_t>> MathSide::items(std::size_t node) {
  std::vector<std::size_t> found;
  const MathKind kind = tree_.at(node).kind;
  if (kind == MathKind::list || kind == MathKind::set) {
    const std::vector<std::size_t> children = tree_.at(node).children;
    for (const std::size_t child : children) {
      const auto inner = items(child);
      if (!inner || found.size() + inner->size() > max_items) return std::nullopt;
      found.insert(found.end(), inner->begin(), inner->end());
    }
    return found;
  }
  std::size_t plus_minus = 0;
  std::size_t minus_plus = 0;
  count_signs(node, plus_minus, minus_plus);
  const std::size_t signs = plus_minus + minus_plus;
  if (signs == 0) return std::vector<std::size_t>{node};
  if (signs > max_signs || tree_.nodes.size() > max_nodes) return std::nullopt;
  const bool together = minus_plus > 0;
  const unsigned variants = together ? 2U : 1U << signs;
  for (unsigned variant = 0; variant < variants; ++variant) {
    std::size_t next = 0;
    found.push_back(with_signs(node, variant, next, together));
  }
  return found;
}

std::optional<std::size_t> MathSide::matrix(std::size_t node) {
  const MathNode at = tree_.at(node);
  if (at.kind == MathKind::matrix) return node;
  std::optional<std::size_t> found;
  std::vector<std::size_t> others;
  if (at.kind != MathKind::multiply && at.kind != MathKind::divide && at.kind != MathKind::negate) {
    return std::nullopt;
  }
  for (const std::size_t child : at.children) {
    if (tree_.at(child).kind != MathKind::matrix) {
      others.push_back(child);
    } else if (found) {
      return std::nullopt;
    } else {
      found = child;
    }
  }
  if (!found || (at.kind == MathKind::divide && at.children.front() != *found)) return std::nullopt;
  MathNode product = tree_.at(*found);
  for (std::size_t& cell : product.children) {
    std::vector<std::size_t> factors = {cell};
    factors.insert(factors.end(), others.begin(), others.end());
    cell = make(at.kind, std::move(factors));
  }
  return tree_.add(std::move(product));
}

}  // namespace onset
