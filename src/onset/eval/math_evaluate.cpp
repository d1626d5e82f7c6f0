#include "onset/eval/math_evaluate.h"

namespace onset {
namespace {

constexpr std::int64_t max_exact_factorial = 400;

// digits in a base up to 36.
std::optional<Fraction> value_in_base(const std::string& digits, std::int64_t base) {
  constexpr std::int64_t largest = 36;
  if (base < 2 || base > largest) return std::nullopt;
  Fraction value;
  const Fraction step{BigInteger(base), BigInteger(1)};
  for (const char c : digits) {
    if (c < '0' || c > '9' || c - '0' >= base) return std::nullopt;
    const std::optional<Fraction> shifted = multiply(value, step);
    if (!shifted) return std::nullopt;
    const std::optional<Fraction> next = add(*shifted, Fraction{BigInteger(c - '0')});
    if (!next) return std::nullopt;
    value = *next;
  }
  return value;
}

class ExactEvaluator {
 public:
  ExactEvaluator(const MathTree& tree, std::int64_t& steps) : tree_(tree), steps_(steps) {}

  [[nodiscard]] std::optional<Fraction> value(std::size_t node) const {
    const MathNode& at = tree_.at(node);
    steps_ -= cost(at.kind);
    if (steps_ < 0) return std::nullopt;
    switch (at.kind) {
      case MathKind::number:
        return fraction_of(at.text);
      case MathKind::add:
      case MathKind::multiply:
        return fold(at);
      case MathKind::negate:
        return scaled(node, -1, 1);
      case MathKind::percent:
        return scaled(node, 1, 100);
      case MathKind::unit:
        return value(tree_.child(node));
      case MathKind::divide:
      case MathKind::ratio:
        return quotient(at);
      case MathKind::power:
        return raised(at);
      case MathKind::factorial:
        return factorial_of(node);
      case MathKind::binomial:
        return chosen(at);
      case MathKind::based:
        return based(node);
      case MathKind::function:
        return at.text == "abs" ? absolute_of(node) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  // In products of large integers, roughly.
  [[nodiscard]] static std::int64_t cost(MathKind kind) {
    switch (kind) {
      case MathKind::power:
      case MathKind::based:
        return 50;
      case MathKind::factorial:
      case MathKind::binomial:
        return 400;
      default:
        return 4;
    }
  }

  [[nodiscard]] std::optional<Fraction> fold(const MathNode& at) const {
    std::optional<Fraction> total = value(at.children.front());
    for (std::size_t i = 1; total && i < at.children.size(); ++i) {
      const std::optional<Fraction> next = value(at.children[i]);
      if (!next) return std::nullopt;
      total = at.kind == MathKind::add ? add(*total, *next) : multiply(*total, *next);
    }
    return total;
  }

  [[nodiscard]] std::optional<Fraction> scaled(std::size_t node, std::int64_t above,
                                               std::int64_t below) const {
    const std::optional<Fraction> inner = value(tree_.child(node));
    if (!inner) return std::nullopt;
    return multiply(*inner, Fraction{BigInteger(above), BigInteger(below)});
  }

  [[nodiscard]] std::optional<Fraction> quotient(const MathNode& at) const {
    if (at.children.size() != 2) return std::nullopt;
    const std::optional<Fraction> above = value(at.children[0]);
    const std::optional<Fraction> below = above ? value(at.children[1]) : std::nullopt;
    return above && below ? divide(*above, *below) : std::nullopt;
  }

  [[nodiscard]] std::optional<Fraction> raised(const MathNode& at) const {
    const std::optional<Fraction> base = value(at.children[0]);
    const std::optional<Fraction> exponent = base ? value(at.children[1]) : std::nullopt;
    const std::optional<std::int64_t> n = exponent ? exponent->small_integer() : std::nullopt;
    if (!n || (*n == 0 && base->is_zero())) return std::nullopt;
    return power(*base, *n);
  }

  [[nodiscard]] std::optional<Fraction> factorial_of(std::size_t node) const {
    const std::optional<Fraction> inner = value(tree_.child(node));
    const std::optional<std::int64_t> n = inner ? inner->small_integer() : std::nullopt;
    if (!n || *n < 0 || *n > max_exact_factorial) return std::nullopt;
    std::optional<BigInteger> product = BigInteger(1);
    for (std::int64_t i = 2; product && i <= *n; ++i) product = product->times(BigInteger(i));
    return product ? fraction(*product, BigInteger(1)) : std::nullopt;
  }

  [[nodiscard]] std::optional<Fraction> chosen(const MathNode& at) const {
    const std::optional<Fraction> above = value(at.children[0]);
    const std::optional<Fraction> below = above ? value(at.children[1]) : std::nullopt;
    if (!above || !below) return std::nullopt;
    const std::optional<std::int64_t> n = above->small_integer();
    const std::optional<std::int64_t> k = below->small_integer();
    if (!n || !k || *k < 0 || *k > max_exact_factorial) return std::nullopt;
    std::optional<Fraction> product = Fraction{BigInteger(1)};
    for (std::int64_t i = 0; product && i < *k; ++i) {
      const std::optional<Fraction> factor = fraction(BigInteger(*n - i), BigInteger(i + 1));
      product = multiply(*product, *factor);
    }
    return product;
  }

  [[nodiscard]] std::optional<Fraction> based(std::size_t node) const {
    const std::optional<Fraction> base = value(tree_.child(node));
    const std::optional<std::int64_t> small = base ? base->small_integer() : std::nullopt;
    return small ? value_in_base(tree_.at(node).text, *small) : std::nullopt;
  }

  [[nodiscard]] std::optional<Fraction> absolute_of(std::size_t node) const {
    std::optional<Fraction> inner = value(tree_.child(node));
    if (inner && inner->numerator.is_negative()) inner->numerator = inner->numerator.negated();
    return inner;
  }

  const MathTree& tree_;
  std::int64_t& steps_;
};

class PointEvaluator {
 public:
  PointEvaluator(const MathTree& tree, const MathPoint& point, std::int64_t& steps)
      : tree_(tree), point_(point), steps_(steps) {}

  [[nodiscard]] MathValue value(std::size_t node) const {
    const MathNode& at = tree_.at(node);
    steps_ -= cost(at.kind);
    if (steps_ < 0) return undefined_value();
    switch (at.kind) {
      case MathKind::number:
        return number(at.text);
      case MathKind::symbol:
        return symbol(at.text);
      case MathKind::add:
      case MathKind::multiply:
        return fold(at);
      case MathKind::negate:
        return negate(child(node));
      case MathKind::divide:
        return divide(child(node), child(node, 1));
      case MathKind::ratio:
        return at.children.size() == 2 ? divide(child(node), child(node, 1)) : undefined_value();
      case MathKind::power:
        return raised(node);
      case MathKind::root:
        return root(child(node), child(node, 1));
      case MathKind::function:
        return function(node);
      case MathKind::factorial:
        return factorial(child(node));
      case MathKind::binomial:
        return binomial(child(node), child(node, 1));
      case MathKind::percent:
        return divide(child(node), exact_value(100));
      case MathKind::degree:
        return multiply(child(node), rounded_value(quad_pi() / 180));
      case MathKind::unit:
        return child(node);
      case MathKind::based:
        return of(exact_value_of(tree_, node, steps_));
      default:
        return undefined_value();
    }
  }

 private:
  [[nodiscard]] MathValue child(std::size_t node, std::size_t index = 0) const {
    return value(tree_.child(node, index));
  }

  // In products of numbers, roughly.
  [[nodiscard]] static std::int64_t cost(MathKind kind) {
    switch (kind) {
      case MathKind::function:
      case MathKind::power:
      case MathKind::root:
        return 50;
      case MathKind::binomial:
        return 200;
      default:
        return 1;
    }
  }

  [[nodiscard]] static MathValue of(const std::optional<Fraction>& fraction) {
    if (!fraction) return undefined_value();
    return divide(rounded_value(fraction->numerator.to_quad()),
                  rounded_value(fraction->denominator.to_quad()));
  }

  [[nodiscard]] static MathValue number(const std::string& digits) {
    const std::optional<Fraction> exact = fraction_of(digits);
    const std::optional<std::int64_t> small = exact ? exact->small_integer() : std::nullopt;
    return small ? exact_value(Quad(*small)) : of(exact);
  }

  [[nodiscard]] MathValue symbol(const std::string& name) const {
    if (name == "pi") return rounded_value(quad_pi());
    if (name == "e") return exponential(exact_value(1));
    if (name == "i") return {0, 1, 0, true};
    const auto found = point_.find(name);
    return found == point_.end() ? undefined_value() : found->second;
  }

  [[nodiscard]] MathValue fold(const MathNode& at) const {
    MathValue total = value(at.children.front());
    for (std::size_t i = 1; total.defined && i < at.children.size(); ++i) {
      const MathValue next = value(at.children[i]);
      total = at.kind == MathKind::add ? add(total, next) : multiply(total, next);
    }
    return total;
  }

  [[nodiscard]] MathValue raised(std::size_t node) const {
    const MathNode& base = tree_.at(tree_.child(node));
    const MathValue exponent = child(node, 1);
    if (base.kind == MathKind::symbol && base.text == "e") return exponential(exponent);
    return power(value(tree_.child(node)), exponent);
  }

  [[nodiscard]] MathValue function(std::size_t node) const {
    const std::string& name = tree_.at(node).text;
    const MathValue x = child(node);
    if (name == "log" && tree_.at(node).children.size() == 2) {
      return divide(logarithm(child(node, 1)), logarithm(x));
    }
    if (name == "log" || name == "lg") return divide(logarithm(x), logarithm(exact_value(10)));
    if (name == "ln") return logarithm(x);
    if (name == "exp") return exponential(x);
    if (name == "abs") return absolute(x);
    if (name == "floor") return floor_of(x);
    if (name == "ceil") return negate(floor_of(negate(x)));
    if (name.starts_with("arc")) return inverse(name.substr(3), x);
    return circular(name, x);
  }

  [[nodiscard]] static MathValue inverse(const std::string& name, const MathValue& x) {
    if (name == "sin") return arc_sine(x);
    if (name == "cos") return subtract(rounded_value(quad_pi() / 2), arc_sine(x));
    if (name == "tan") return arc_tangent(x);
    return undefined_value();
  }

  [[nodiscard]] static MathValue circular(const std::string& name, const MathValue& x) {
    const MathValue one = exact_value(1);
    if (name == "sin") return sine(x);
    if (name == "cos") return cosine(x);
    if (name == "tan") return divide(sine(x), cosine(x));
    if (name == "cot") return divide(cosine(x), sine(x));
    if (name == "sec") return divide(one, cosine(x));
    if (name == "csc") return divide(one, sine(x));
    if (name != "sinh" && name != "cosh" && name != "tanh") return undefined_value();
    const MathValue grow = exponential(x);
    const MathValue shrink = exponential(negate(x));
    const MathValue two = exact_value(2);
    const MathValue sinh = divide(subtract(grow, shrink), two);
    const MathValue cosh = divide(add(grow, shrink), two);
    if (name == "sinh") return sinh;
    return name == "cosh" ? cosh : divide(sinh, cosh);
  }

  const MathTree& tree_;
  const MathPoint& point_;
  std::int64_t& steps_;
};

}  // namespace

bool is_constant_name(const std::string& symbol) {
  return symbol == "e" || symbol == "i" || symbol == "pi";
}

std::optional<Fraction> exact_value_of(const MathTree& tree, std::size_t node,
                                       std::int64_t& steps) {
  return ExactEvaluator(tree, steps).value(node);
}

MathValue value_at(const MathTree& tree, std::size_t node, const MathPoint& point,
                   std::int64_t& steps) {
  return PointEvaluator(tree, point, steps).value(node);
}

}  // namespace onset
