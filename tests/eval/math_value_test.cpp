#include "onset/eval/math_value.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "onset/eval/exact_number.h"

namespace onset {
namespace {

// A decimal of up to 40 digits as a value with the error of its last place.
MathValue decimal(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  const std::optional<Fraction> exact = fraction_of(digits.substr(negative ? 1 : 0));
  const MathValue value = divide(rounded_value(exact->numerator.to_quad()),
                                 rounded_value(exact->denominator.to_quad()));
  return negative ? negate(value) : value;
}

MathValue rational(int above, int below) { return divide(exact_value(above), exact_value(below)); }

// Constants to 40 digits, from tables.
TEST(MathValue, FunctionsHaveTheirKnownValues) {
  struct Row {
    MathValue value;
    std::string_view digits;
  };
  const std::vector<Row> rows = {
      {rounded_value(quad_pi()), "3.141592653589793238462643383279502884197"},
      {exponential(exact_value(1)), "2.718281828459045235360287471352662497757"},
      {exponential(exact_value(-1)), "0.3678794411714423215955237701614608674458"},
      {logarithm(exact_value(2)), "0.6931471805599453094172321214581765680755"},
      {logarithm(exact_value(10)), "2.302585092994045684017991454684364207601"},
      {square_root(exact_value(2)), "1.414213562373095048801688724209698078570"},
      {root(exact_value(3), exact_value(2)), "1.259921049894873164767210607278228350570"},
      {sine(exact_value(1)), "0.8414709848078965066525023216302989996226"},
      {cosine(exact_value(1)), "0.5403023058681397174009366074429766037323"},
      {arc_tangent(exact_value(1)), "0.7853981633974483096156608458198757210493"},
      {arc_sine(rational(1, 2)), "0.5235987755982988730771072305465838140329"}};
  for (const Row& row : rows) {
    EXPECT_EQ(agreement(row.value, decimal(row.digits)), Agreement::agree) << row.digits;
    const MathValue beside = add(decimal(row.digits), decimal("0.000000000000000000000000000001"));
    EXPECT_EQ(agreement(row.value, beside), Agreement::differ) << row.digits;
  }
}

TEST(MathValue, IdentitiesHoldWithinTheErrors) {
  for (const MathValue& x : {rational(1, 3), rational(-7, 4), rational(22, 7), rational(-50, 3),
                             MathValue{1.25L, 0.5L, 0, true}, MathValue{-2, -1, 0, true}}) {
    const MathValue s = sine(x);
    const MathValue c = cosine(x);
    EXPECT_EQ(agreement(add(multiply(s, s), multiply(c, c)), exact_value(1)), Agreement::agree);
    EXPECT_EQ(agreement(exponential(logarithm(x)), x), Agreement::agree);
    EXPECT_EQ(agreement(multiply(square_root(x), square_root(x)), x), Agreement::agree);
    EXPECT_EQ(agreement(multiply(exponential(x), exponential(negate(x))), exact_value(1)),
              Agreement::agree);
    EXPECT_EQ(agreement(sine(arc_sine(x)), x), Agreement::agree);
    const MathValue tangent = divide(s, c);
    EXPECT_EQ(agreement(multiply(tangent, c), s), Agreement::agree);
    EXPECT_EQ(
        agreement(power(x, exact_value(-3)), divide(exact_value(1), multiply(x, multiply(x, x)))),
        Agreement::agree);
    EXPECT_EQ(agreement(x, add(x, exact_value(1e-15L))), Agreement::differ);
  }
}

TEST(MathValue, OutsideADomainNothingIsDefined) {
  EXPECT_FALSE(divide(exact_value(1), exact_value(0)).defined);
  EXPECT_FALSE(logarithm(exact_value(0)).defined);
  EXPECT_FALSE(power(exact_value(0), exact_value(0)).defined);
  EXPECT_FALSE(exponential(exact_value(1e9L)).defined);
  EXPECT_FALSE(factorial(rational(1, 2)).defined);
  EXPECT_FALSE(factorial(exact_value(-1)).defined);
  EXPECT_FALSE(sine(exact_value(1e12L)).defined);
  EXPECT_EQ(agreement(undefined_value(), undefined_value()), Agreement::unknown);
}

TEST(MathValue, RootsOfNegativeNumbers) {
  EXPECT_EQ(agreement(root(exact_value(3), exact_value(-8)), exact_value(-2)), Agreement::agree);
  const MathValue i = square_root(exact_value(-1));
  EXPECT_EQ(agreement(multiply(i, i), exact_value(-1)), Agreement::agree);
  EXPECT_FALSE(is_real(i));
}

TEST(ExactNumber, FractionsAreExact) {
  const auto same = [](std::string_view a, std::string_view b) {
    return same_value(*fraction_of(a), *fraction_of(b));
  };
  EXPECT_EQ(same("0.50", ".5"), true);
  EXPECT_EQ(same("0.(3)", "0.333333333333333333333333333333333333"), false);
  EXPECT_EQ(same("0.1(6)", "0.1(66)"), true);
  EXPECT_EQ(same("0.(9)", "1"), true);
  EXPECT_EQ(same("12.(12)", "12.1(21)"), true);
  EXPECT_EQ(same("123456789012345678901234567890", "0123456789012345678901234567890.0"), true);
  const Fraction third = *divide(*fraction_of("1"), *fraction_of("3"));
  EXPECT_EQ(same_value(*multiply(third, *fraction_of("3")), *fraction_of("1")), true);
  EXPECT_EQ(same_value(*power(third, -2), *fraction_of("9")), true);
  // 2^200 = 1606938044258990275541962092341162602522202993782792835301376
  EXPECT_EQ(
      same_value(*power(*fraction_of("2"), 200),
                 *fraction_of("1606938044258990275541962092341162602522202993782792835301376")),
      true);
  const Fraction big = *power(*fraction_of("2"), 200);
  EXPECT_EQ(same_value(*add(big, *fraction_of("1")), big), false);
  EXPECT_EQ(fraction_of("17.0")->small_integer(), 17);
  EXPECT_EQ(fraction_of("17.5")->small_integer(), std::nullopt);
}

TEST(ExactNumber, WhatIsTooLargeIsNotComputed) {
  EXPECT_FALSE(power(*fraction_of("9"), 387420489));
  EXPECT_FALSE(fraction_of(std::string(5000, '9')));
  EXPECT_FALSE(divide(*fraction_of("1"), *fraction_of("0")));
  EXPECT_TRUE(power(*fraction_of("1"), 1'000'000'000'000));
}

}  // namespace
}  // namespace onset
