// Integers and fractions of bounded size, exactly. Torch-free.
//
// Answers are written by a model: 9^{9^9} is one. What would need more than `max_bits` is not
// computed: the operation gives nothing, and the caller does without an exact value.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "onset/eval/math_quad.h"

namespace onset {

class BigInteger {
 public:
  static constexpr std::size_t max_bits = 4096;

  BigInteger() = default;
  explicit BigInteger(std::int64_t value);
  // Decimal digits alone.
  [[nodiscard]] static std::optional<BigInteger> from_digits(std::string_view digits);

  [[nodiscard]] bool is_zero() const { return limbs_.empty(); }
  [[nodiscard]] bool is_negative() const { return negative_; }
  [[nodiscard]] std::optional<std::int64_t> small() const;  // below 2^62 in absolute value
  [[nodiscard]] Quad to_quad() const;

  [[nodiscard]] BigInteger negated() const;
  [[nodiscard]] std::optional<BigInteger> plus(const BigInteger& other) const;
  [[nodiscard]] std::optional<BigInteger> times(const BigInteger& other) const;
  bool operator==(const BigInteger&) const = default;

 private:
  using Limbs = std::vector<std::uint32_t>;

  [[nodiscard]] static std::strong_ordering compare(const Limbs& a, const Limbs& b);
  [[nodiscard]] static Limbs sum(const Limbs& a, const Limbs& b);
  [[nodiscard]] static Limbs difference(const Limbs& larger, const Limbs& smaller);
  [[nodiscard]] static std::optional<BigInteger> bounded(bool negative, Limbs limbs);

  bool negative_ = false;  // never for zero
  Limbs limbs_;            // lowest first, the last is not zero
};

// numerator / denominator, not always in lowest terms; the denominator is positive.
struct Fraction {
  BigInteger numerator;
  BigInteger denominator{1};

  [[nodiscard]] bool is_zero() const { return numerator.is_zero(); }
  // The value when it is an integer that is not large.
  [[nodiscard]] std::optional<std::int64_t> small_integer() const;
};

// "12", "0.50", ".5", "5.", and "0.1(6)" for repeated digits.
[[nodiscard]] std::optional<Fraction> fraction_of(std::string_view decimal);
[[nodiscard]] std::optional<Fraction> fraction(const BigInteger& numerator,
                                               const BigInteger& denominator);
[[nodiscard]] std::optional<Fraction> add(const Fraction& a, const Fraction& b);
[[nodiscard]] std::optional<Fraction> multiply(const Fraction& a, const Fraction& b);
[[nodiscard]] std::optional<Fraction> divide(const Fraction& a, const Fraction& b);
[[nodiscard]] std::optional<Fraction> power(const Fraction& base, std::int64_t exponent);
// None when the products needed are too large.
[[nodiscard]] std::optional<bool> same_value(const Fraction& a, const Fraction& b);

}  // namespace onset
