#include "onset/eval/math_compare.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "onset/eval/math_unit.h"

namespace onset {
namespace {

// Points at which two expressions with variables must have values that agree.
constexpr std::size_t min_agreeing = 2;

std::set<std::string> all_variables(MathSide& a, MathSide& b) {
  std::set<std::string> names = a.variables(a.root());
  names.insert(b.variables(b.root()).begin(), b.variables(b.root()).end());
  return names;
}

// Of plus and minus infinity 1 and -1; 0 for anything else.
int infinite_sign(const MathSide& side, std::size_t node) {
  if (side.at(node).kind == MathKind::infinity) return 1;
  if (side.at(node).kind == MathKind::negate) return -infinite_sign(side, side.child(node));
  return 0;
}

bool is_collection(const MathSide& side, std::size_t node) {
  const MathKind kind = side.at(node).kind;
  return kind == MathKind::list || kind == MathKind::set || side.has_plus_minus(node);
}

// The product without its last factor, when that is the letter of `unit` ("5 m" for "5 \text{ m}").
std::optional<std::size_t> without_unit_letter(MathSide& side, std::size_t node,
                                               const std::string& unit) {
  const MathNode at = side.at(node);
  if (at.kind != MathKind::multiply) return std::nullopt;
  const MathNode& last = side.at(at.children.back());
  if (last.kind != MathKind::symbol || unit_spelling(last.text) != unit) return std::nullopt;
  return side.make(MathKind::multiply, {at.children.begin(), at.children.end() - 1});
}

}  // namespace

MathComparison::MathComparison(MathSide gold, MathSide answer)
    : gold_(std::move(gold)),
      answer_(std::move(answer)),
      points_(make_math_points(all_variables(gold_, answer_))) {}

bool MathComparison::same(std::size_t gold, std::size_t answer) {
  if (is_region(gold_, gold) || is_region(answer_, answer)) {
    const std::optional<Region> left = region(gold_, gold);
    const std::optional<Region> right = region(answer_, answer);
    if (left && right) return left->same(*right);
    if (left && holds_on(*left, answer_, answer)) return true;
    if (right && holds_on(*right, gold_, gold)) return true;
  }
  const MathKind left = gold_.at(gold).kind;
  const MathKind right = answer_.at(answer).kind;
  if (left == MathKind::relation || right == MathKind::relation) {
    return same_relation(gold, answer);
  }
  if (left == MathKind::words || right == MathKind::words) return same_words(gold, answer);
  if (is_collection(gold_, gold) || is_collection(answer_, answer)) {
    return same_collection(gold, answer);
  }
  return same_quantity(gold, answer);
}

bool MathComparison::same_words(std::size_t gold, std::size_t answer) {
  const std::string words = gold_.words(gold);
  return !words.empty() && words == answer_.words(answer);
}

bool MathComparison::same_collection(std::size_t gold, std::size_t answer) {
  const std::optional<Nodes> left = gold_.items(gold);
  const std::optional<Nodes> right = answer_.items(answer);
  if (!left || !right) return false;
  const bool is_set =
      gold_.at(gold).kind == MathKind::set || answer_.at(answer).kind == MathKind::set;
  if (is_set) return same_items(distinct(gold_, *left), distinct(answer_, *right));
  return same_items(*left, *right);
}

// A set names each element once.
MathComparison::Nodes MathComparison::distinct(MathSide& side, const Nodes& nodes) {
  Nodes kept;
  for (const std::size_t node : nodes) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](std::size_t other) {
      return equal_numbers(side, node, side, other);
    });
    if (!known) kept.push_back(node);
  }
  return kept;
}

// Whether each item has a partner of its own, whatever the order (augmenting paths).
bool MathComparison::same_items(const Nodes& gold, const Nodes& answer) {
  if (gold.size() != answer.size()) return false;
  constexpr auto none = static_cast<std::size_t>(-1);
  std::vector<std::vector<bool>> fits(gold.size(), std::vector<bool>(answer.size()));
  for (std::size_t i = 0; i < gold.size(); ++i) {
    bool any = false;
    for (std::size_t j = 0; j < answer.size(); ++j) {
      fits[i][j] = same(gold[i], answer[j]);
      any = any || fits[i][j];
    }
    if (!any) return false;
  }
  Nodes partner(answer.size(), none);
  std::vector<bool> seen;
  const std::function<bool(std::size_t)> place = [&](std::size_t i) {
    for (std::size_t j = 0; j < answer.size(); ++j) {
      if (!fits[i][j] || seen[j]) continue;
      seen[j] = true;
      if (partner[j] == none || place(partner[j])) {
        partner[j] = i;
        return true;
      }
    }
    return false;
  };
  for (std::size_t i = 0; i < gold.size(); ++i) {
    seen.assign(answer.size(), false);
    if (!place(i)) return false;
  }
  return true;
}

bool MathComparison::same_in_order(const Nodes& gold, const Nodes& answer) {
  if (gold.size() != answer.size()) return false;
  for (std::size_t i = 0; i < gold.size(); ++i) {
    if (!same(gold[i], answer[i])) return false;
  }
  return true;
}

bool MathComparison::same_quantity(std::size_t gold, std::size_t answer) {
  const MathSide::Quantity left = gold_.quantity(gold);
  const MathSide::Quantity right = answer_.quantity(answer);
  if (units_fit(left.unit, right.unit)) {
    if (same_tuple(left.value, right.value)) return true;
    // 15% is 15 with its sign left out, and 0.15.
    if (left.unit == "percent" && right.unit.empty()) return same_scalar(gold, right.value);
    if (right.unit == "percent" && left.unit.empty()) return same_scalar(left.value, answer);
  }
  if (!left.unit.empty() && right.unit.empty()) {
    const auto value = without_unit_letter(answer_, right.value, left.unit);
    return value && same_tuple(left.value, *value);
  }
  if (!right.unit.empty() && left.unit.empty()) {
    const auto value = without_unit_letter(gold_, left.value, right.unit);
    return value && same_tuple(*value, right.value);
  }
  return false;
}

bool MathComparison::same_tuple(std::size_t gold, std::size_t answer) {
  const MathNode& left = gold_.at(gold);
  const MathNode& right = answer_.at(answer);
  if (left.kind == MathKind::tuple && right.kind == MathKind::tuple) {
    const Nodes first = left.children;
    const Nodes second = right.children;
    return left.text == right.text && same_in_order(first, second);
  }
  return same_matrix(gold, answer);
}

bool MathComparison::same_matrix(std::size_t gold, std::size_t answer) {
  const std::optional<std::size_t> left = gold_.matrix(gold);
  const std::optional<std::size_t> right = answer_.matrix(answer);
  if (!left && !right) return same_base(gold, answer);
  // A column vector may be written as a point.
  const auto cells = [](const MathSide& side, std::size_t node, std::optional<std::size_t> matrix,
                        std::size_t columns) -> std::optional<Nodes> {
    if (matrix) {
      const MathNode& at = side.at(*matrix);
      return at.columns == columns ? std::optional<Nodes>(at.children) : std::nullopt;
    }
    const MathNode& at = side.at(node);
    const bool is_point = columns == 1 && at.kind == MathKind::tuple && at.text == "()";
    return is_point ? std::optional<Nodes>(at.children) : std::nullopt;
  };
  const std::size_t columns = left ? gold_.at(*left).columns : answer_.at(*right).columns;
  if (left && right && gold_.at(*left).text != answer_.at(*right).text) return false;
  const std::optional<Nodes> first = cells(gold_, gold, left, columns);
  const std::optional<Nodes> second = cells(answer_, answer, right, columns);
  return first && second && same_in_order(*first, *second);
}

// A number's base is part of the answer: 52_8 is neither 52 nor 42.
bool MathComparison::same_base(std::size_t gold, std::size_t answer) {
  const MathNode& left = gold_.at(gold);
  const MathNode& right = answer_.at(answer);
  const bool both = left.kind == MathKind::based && right.kind == MathKind::based;
  if (both) {
    const std::size_t left_base = left.children.front();
    const std::size_t right_base = right.children.front();
    return same_scalar(gold, answer) && same_scalar(left_base, right_base);
  }
  if (left.kind == MathKind::based || right.kind == MathKind::based) return false;
  if (left.kind == MathKind::ratio && right.kind == MathKind::ratio && left.children.size() != 2) {
    const Nodes first = left.children;
    const Nodes second = right.children;
    return same_in_order(first, second);
  }
  return same_scalar(gold, answer);
}

bool MathComparison::same_scalar(std::size_t gold, std::size_t answer) {
  return equal_numbers(gold_, gold, answer_, answer);
}

bool MathComparison::equal_numbers(MathSide& a, std::size_t left, MathSide& b, std::size_t right) {
  const int sign = infinite_sign(a, left);
  if (sign != 0) return sign == infinite_sign(b, right);
  const std::optional<Fraction>& first = a.exact(left);
  const std::optional<Fraction>& second = b.exact(right);
  if (first && second) {
    if (const std::optional<bool> same = same_value(*first, *second)) return *same;
  }
  // What is no fraction has no decimal value, however many digits are given.
  if (a.has_long_literal(left) || b.has_long_literal(right)) return false;
  const bool is_constant = a.variables(left).empty() && b.variables(right).empty();
  const bool is_complex = a.is_complex(left) || b.is_complex(right);
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < (is_constant ? 1 : math_points); ++i) {
    const MathValue& x = a.value(left, i, points_[i]);
    const MathValue& y = b.value(right, i, points_[i]);
    // Real variables at a place where a root or logarithm is not real: out of the domain.
    if (!is_constant && !is_complex && !(is_real(x) && is_real(y))) continue;
    const Agreement found = agreement(x, y);
    if (found == Agreement::differ) return false;
    if (found == Agreement::agree) ++agreeing;
  }
  return agreeing >= (is_constant ? 1 : min_agreeing);
}

}  // namespace onset
