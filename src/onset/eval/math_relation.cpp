#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "onset/eval/math_compare.h"

namespace onset {
namespace {

// Inequalities in a list or chain whose numbers are worked out.
constexpr std::size_t max_parts = 64;

bool is_inequality(const std::string& sign) {
  return sign == "<" || sign == "<=" || sign == ">" || sign == ">=" || sign == "!=";
}

bool is_inequality(const MathNode& node) {
  return node.kind == MathKind::relation &&
         std::all_of(node.operators.begin(), node.operators.end(),
                     [](const std::string& sign) { return is_inequality(sign); });
}

bool says_all_numbers(std::string_view words) {
  static constexpr std::array phrases = {std::string_view("all real numbers"),
                                         std::string_view("all reals"),
                                         std::string_view("real numbers")};
  return std::find(phrases.begin(), phrases.end(), words) != phrases.end();
}

bool says_no_number(std::string_view words) {
  static constexpr std::array phrases = {
      std::string_view("no solution"), std::string_view("no solutions"),
      std::string_view("no real solution"), std::string_view("no real solutions"),
      std::string_view("empty set")};
  return std::find(phrases.begin(), phrases.end(), words) != phrases.end();
}

// Whether "left sign right" is true; it is not where a side has no real value.
bool compares(const MathValue& left, const std::string& sign, const MathValue& right) {
  const MathValue difference = subtract(left, right);
  if (!difference.defined || !is_real(difference)) return false;
  const bool equal = quad_abs(difference.re) <= difference.error;
  if (equal) return sign == "<=" || sign == ">=";
  if (sign == "!=") return true;
  return (difference.re < 0) == (sign.front() == '<');
}

// A variable under a function, power or divisor: the expression is no line in it.
bool bends(MathSide& side, std::size_t node) {
  const MathNode at = side.at(node);
  switch (at.kind) {
    case MathKind::add:
    case MathKind::negate:
    case MathKind::multiply:
      return std::any_of(at.children.begin(), at.children.end(),
                         [&](std::size_t child) { return bends(side, child); });
    case MathKind::divide:
      return bends(side, at.children[0]) || !side.variables(at.children[1]).empty();
    case MathKind::number:
    case MathKind::symbol:
      return false;
    default:
      return !side.variables(node).empty();
  }
}

}  // namespace

bool MathComparison::is_name(const MathSide& side, std::size_t node) {
  const MathNode& at = side.at(node);
  if (at.kind == MathKind::words) return true;
  if (at.kind == MathKind::symbol) return !is_constant_name(at.text);
  if (at.kind != MathKind::multiply) return false;
  // AB, f(x), f(2): a name and more, and nothing is computed with it.
  if (side.at(at.children.front()).kind != MathKind::symbol) return false;
  return std::all_of(at.children.begin(), at.children.end(), [&](std::size_t child) {
    const MathKind kind = side.at(child).kind;
    return kind == MathKind::symbol || kind == MathKind::number || kind == MathKind::tuple;
  });
}

std::optional<std::size_t> MathComparison::stated_value(MathSide& side, std::size_t relation) {
  const MathNode& at = side.at(relation);
  const std::size_t first = at.children.front();
  const std::size_t last = at.children.back();
  if (at.operators == std::vector<std::string>{"in"}) {
    return is_name(side, first) ? std::optional(last) : std::nullopt;
  }
  const bool is_equation = std::all_of(at.operators.begin(), at.operators.end(),
                                       [](const std::string& sign) { return sign == "="; });
  if (!is_equation) return std::nullopt;
  if (is_name(side, first)) return last;
  if (at.children.size() == 2 && is_name(side, last)) return first;
  // "2 + 3 = 5"
  if (side.variables(relation).empty() && equal_numbers(side, first, side, last)) return last;
  return std::nullopt;
}

bool MathComparison::same_relation(std::size_t gold, std::size_t answer) {
  const bool left = gold_.at(gold).kind == MathKind::relation;
  const bool right = answer_.at(answer).kind == MathKind::relation;
  const std::optional<std::size_t> left_value =
      left ? stated_value(gold_, gold) : std::optional(gold);
  const std::optional<std::size_t> right_value =
      right ? stated_value(answer_, answer) : std::optional(answer);
  if (!left || !right) return left_value && right_value && same(*left_value, *right_value);
  if (left_value && right_value) {
    const std::size_t first = gold_.child(gold);
    const std::size_t second = answer_.child(answer);
    const bool same_name = is_name(gold_, first) && is_name(answer_, second) &&
                           (same_words(first, second) || same_scalar(first, second));
    if (same_name) return same(*left_value, *right_value);
  }
  return same_comparison(gold, answer);
}

// L = R and L' = R' are one equation when L - R is a multiple of L' - R'; inequalities, when the
// multiple is positive.
bool MathComparison::same_comparison(std::size_t gold, std::size_t answer) {
  if (gold_.at(gold).operators.size() != 1 || answer_.at(answer).operators.size() != 1) {
    return false;
  }
  if (gold_.has_long_literal(gold) || answer_.has_long_literal(answer)) return false;
  std::string left = gold_.at(gold).operators.front();
  std::string right = answer_.at(answer).operators.front();
  const auto points_down = [](std::string& sign) {
    if (sign.front() != '<') return false;
    sign.front() = '>';
    return true;
  };
  const bool turned = points_down(left) != points_down(right);
  if (left != right || left == "in") return false;
  std::optional<MathValue> ratio;
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < math_points; ++i) {
    const auto difference = [&](MathSide& side, std::size_t node) {
      return subtract(side.value(side.child(node), i, points_[i]),
                      side.value(side.child(node, 1), i, points_[i]));
    };
    const MathValue here = divide(difference(gold_, gold), difference(answer_, answer));
    if (!here.defined) continue;
    if (!ratio) ratio = here;
    const Agreement found = agreement(*ratio, here);
    if (found == Agreement::differ) return false;
    if (found == Agreement::agree) ++agreeing;
  }
  constexpr std::size_t enough = 3;
  if (agreeing < enough || magnitude(*ratio) <= ratio->error) return false;
  if (left == "=" || left == "!=") return true;
  return is_real(*ratio) && (ratio->re > 0) != turned;
}

bool MathComparison::is_region(MathSide& side, std::size_t node) {
  const MathNode& at = side.at(node);
  switch (at.kind) {
    case MathKind::join:
    case MathKind::meet:
    case MathKind::without:
    case MathKind::reals:
    case MathKind::empty_set:
      return true;
    case MathKind::words:
      return says_all_numbers(at.text) || says_no_number(at.text);
    case MathKind::relation:
      return is_inequality(at) ||
             (at.operators.back() == "in" && is_region(side, at.children.back()));
    case MathKind::list:
      return std::any_of(at.children.begin(), at.children.end(),
                         [&](std::size_t child) { return is_inequality(side.at(child)); });
    default:
      return false;
  }
}

// Whether an inequality in one variable, of any form, holds for the numbers of the region alone: at
// its edges, and at numbers between and beyond them.
bool MathComparison::holds_on(const Region& region, MathSide& side, std::size_t node) {
  const MathNode at = side.at(node);
  const std::set<std::string> names = side.variables(node);
  if (!is_inequality(at) || names.size() != 1 || side.has_long_literal(node)) return false;
  const std::vector<MathValue> probes = region.probes();
  return std::all_of(probes.begin(), probes.end(), [&](const MathValue& x) {
    bool holds = true;
    for (std::size_t i = 0; i < at.operators.size(); ++i) {
      holds = holds && compares(side.value_with(at.children[i], *names.begin(), x), at.operators[i],
                                side.value_with(at.children[i + 1], *names.begin(), x));
    }
    return holds == region.contains(x);
  });
}

std::optional<RegionEdge> MathComparison::edge(MathSide& side, std::size_t node) {
  const MathNode& at = side.at(node);
  if (at.kind == MathKind::infinity) return RegionEdge{1, {}, false};
  if (at.kind == MathKind::negate && side.at(side.child(node)).kind == MathKind::infinity) {
    return RegionEdge{-1, {}, false};
  }
  if (!side.variables(node).empty() || side.has_long_literal(node)) return std::nullopt;
  const MathValue& value = side.value(node, 0, points_[0]);
  if (!value.defined || !is_real(value)) return std::nullopt;
  return RegionEdge{0, value, true};
}

std::optional<Region> MathComparison::region(MathSide& side, std::size_t node, int depth) {
  constexpr int deepest = 64;
  if (depth > deepest) return std::nullopt;
  const MathNode at = side.at(node);
  switch (at.kind) {
    case MathKind::reals:
      return Region::all();
    case MathKind::empty_set:
      return Region();
    case MathKind::words:
      if (says_all_numbers(at.text)) return Region::all();
      return says_no_number(at.text) ? std::optional(Region()) : std::nullopt;
    case MathKind::tuple:
      return region_of_tuple(side, node);
    case MathKind::set:
      return region_of_points(side, node);
    case MathKind::relation:
      return region_of_relation(side, node, depth);
    case MathKind::list:
      return region_of_list(side, node, depth);
    case MathKind::join:
    case MathKind::meet:
    case MathKind::without: {
      const std::optional<Region> left = region(side, at.children[0], depth + 1);
      const std::optional<Region> right =
          left ? region(side, at.children[1], depth + 1) : std::nullopt;
      if (!right) return std::nullopt;
      if (at.kind == MathKind::join) return left->join(*right);
      return left->meet(at.kind == MathKind::meet ? *right : right->complement());
    }
    default:
      return std::nullopt;
  }
}

std::optional<Region> MathComparison::region_of_tuple(MathSide& side, std::size_t node) {
  const MathNode at = side.at(node);
  if (at.children.size() != 2) return std::nullopt;
  std::optional<RegionEdge> low = edge(side, at.children[0]);
  std::optional<RegionEdge> high = edge(side, at.children[1]);
  if (!low || !high) return std::nullopt;
  low->closed = at.text.front() == '[';
  high->closed = at.text.back() == ']';
  return Region::interval(*low, *high);
}

std::optional<Region> MathComparison::region_of_points(MathSide& side, std::size_t node) {
  const auto items = side.items(node);
  if (!items) return std::nullopt;
  std::vector<RegionPiece> points;
  for (const std::size_t item : *items) {
    const std::optional<RegionEdge> place = edge(side, item);
    if (!place || place->infinite != 0) return std::nullopt;
    points.push_back({*place, *place});
  }
  return Region(std::move(points));
}

std::optional<Region> MathComparison::region_of_relation(MathSide& side, std::size_t node,
                                                         int depth) {
  const MathNode at = side.at(node);
  if (at.operators.size() > max_parts) return std::nullopt;
  if (at.operators == std::vector<std::string>{"in"}) {
    return is_name(side, at.children[0]) ? region(side, at.children[1], depth + 1) : std::nullopt;
  }
  Region all = Region::all();
  for (std::size_t i = 0; i < at.operators.size(); ++i) {
    const std::optional<Region> part =
        half_line(side, at.children[i], at.operators[i], at.children[i + 1]);
    if (!part) return std::nullopt;
    all = all.meet(*part);
  }
  return all;
}

// "x < 1 or x > 3", "x > 1 and x < 3"; with a comma, what both say, or else what either says.
std::optional<Region> MathComparison::region_of_list(MathSide& side, std::size_t node, int depth) {
  const MathNode at = side.at(node);
  if (at.children.size() > max_parts) return std::nullopt;
  Region either;
  Region both = Region::all();
  for (const std::size_t child : at.children) {
    const std::optional<Region> part = region(side, child, depth + 1);
    if (!part) return std::nullopt;
    either = either.join(*part);
    both = both.meet(*part);
  }
  if (at.text == "or" || (at.text == "," && both.empty())) return either;
  return both;
}

// Where left - right, a line in the one variable there is, has the sign asked for.
std::optional<Region> MathComparison::half_line(MathSide& side, std::size_t left,
                                                const std::string& sign, std::size_t right) {
  if (sign == "in") return std::nullopt;
  const std::size_t difference =
      side.make(MathKind::add, {left, side.make(MathKind::negate, {right})});
  const std::set<std::string> names = side.variables(difference);
  if (names.size() != 1 || bends(side, difference) || side.has_long_literal(difference)) {
    return std::nullopt;
  }
  const auto at = [&](int x) {
    return side.value_with(difference, *names.begin(), exact_value(x));
  };
  const MathValue start = at(0);
  const MathValue slope = subtract(at(1), start);
  const MathValue line = add(start, multiply(slope, exact_value(-7)));
  if (agreement(line, at(-7)) != Agreement::agree || !is_real(start) || !is_real(slope)) {
    return std::nullopt;
  }
  const MathValue zero = divide(negate(start), slope);
  if (!zero.defined) return std::nullopt;
  const RegionEdge place{0, zero, sign.ends_with('=') && sign != "!="};
  const Region below = Region::interval({-1, {}, false}, place);
  const Region above = Region::interval(place, {1, {}, false});
  if (sign == "!=") return below.join(above);
  if (sign == "=") {
    const RegionEdge point{0, zero, true};
    return Region::interval(point, point);
  }
  const bool upward = (sign.front() == '>') == (slope.re > 0);
  return upward ? above : below;
}

}  // namespace onset
