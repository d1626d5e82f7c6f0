#include "onset/eval/exact_number.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace onset {
namespace {

constexpr unsigned limb_bits = 32;
constexpr std::size_t max_limbs = BigInteger::max_bits / limb_bits;

void drop_zeros(std::vector<std::uint32_t>& limbs) {
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
}

std::optional<BigInteger> power_of(const BigInteger& base, std::int64_t exponent) {
  std::optional<BigInteger> result = BigInteger(1);
  std::optional<BigInteger> square = base;
  for (std::int64_t left = exponent; left > 0; left /= 2) {
    if (!square) return std::nullopt;
    if (left % 2 == 1) result = result->times(*square);
    if (!result) return std::nullopt;
    if (left > 1) square = square->times(*square);
  }
  return result;
}

}  // namespace

BigInteger::BigInteger(std::int64_t value) : negative_(value < 0) {
  auto rest = static_cast<std::uint64_t>(value);
  if (negative_) rest = ~rest + 1;
  for (; rest > 0; rest >>= limb_bits) limbs_.push_back(static_cast<std::uint32_t>(rest));
}

std::optional<BigInteger> BigInteger::from_digits(std::string_view digits) {
  Limbs limbs;
  for (std::size_t at = 0; at < digits.size();) {
    constexpr std::size_t at_once = 9;
    std::uint64_t carry = 0;
    std::uint64_t scale = 1;
    for (std::size_t end = std::min(at + at_once, digits.size()); at < end; ++at) {
      if (digits[at] < '0' || digits[at] > '9') return std::nullopt;
      carry = carry * 10 + static_cast<std::uint64_t>(digits[at] - '0');
      scale *= 10;
    }
    for (std::uint32_t& limb : limbs) {
      carry += limb * scale;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= limb_bits;
    }
    if (carry > 0) limbs.push_back(static_cast<std::uint32_t>(carry));
    if (limbs.size() > max_limbs) return std::nullopt;
  }
  return bounded(false, std::move(limbs));
}

std::optional<std::int64_t> BigInteger::small() const {
  if (limbs_.size() > 2) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = limbs_.size(); i > 0; --i) value = (value << limb_bits) | limbs_[i - 1];
  if (value >= std::uint64_t{1} << 62) return std::nullopt;
  const auto absolute = static_cast<std::int64_t>(value);
  return negative_ ? -absolute : absolute;
}

Quad BigInteger::to_quad() const {
  Quad value = 0;
  for (std::size_t i = limbs_.size(); i > 0; --i) {
    value = value * Quad(std::uint64_t{1} << limb_bits) + Quad(limbs_[i - 1]);
  }
  return negative_ ? -value : value;
}

BigInteger BigInteger::negated() const {
  BigInteger result = *this;
  result.negative_ = !negative_ && !is_zero();
  return result;
}

std::strong_ordering BigInteger::compare(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() <=> b.size();
  for (std::size_t i = a.size(); i > 0; --i) {
    if (a[i - 1] != b[i - 1]) return a[i - 1] <=> b[i - 1];
  }
  return std::strong_ordering::equal;
}

BigInteger::Limbs BigInteger::sum(const Limbs& a, const Limbs& b) {
  Limbs result;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry > 0; ++i) {
    if (i < a.size()) carry += a[i];
    if (i < b.size()) carry += b[i];
    result.push_back(static_cast<std::uint32_t>(carry));
    carry >>= limb_bits;
  }
  return result;
}

BigInteger::Limbs BigInteger::difference(const Limbs& larger, const Limbs& smaller) {
  Limbs result;
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < larger.size(); ++i) {
    std::int64_t digit = static_cast<std::int64_t>(larger[i]) - borrow;
    if (i < smaller.size()) digit -= smaller[i];
    borrow = digit < 0 ? 1 : 0;
    result.push_back(static_cast<std::uint32_t>(digit));
  }
  return result;
}

std::optional<BigInteger> BigInteger::bounded(bool negative, Limbs limbs) {
  drop_zeros(limbs);
  if (limbs.size() > max_limbs) return std::nullopt;
  BigInteger result;
  result.negative_ = negative && !limbs.empty();
  result.limbs_ = std::move(limbs);
  return result;
}

std::optional<BigInteger> BigInteger::plus(const BigInteger& other) const {
  if (negative_ == other.negative_) return bounded(negative_, sum(limbs_, other.limbs_));
  if (std::is_gteq(compare(limbs_, other.limbs_))) {
    return bounded(negative_, difference(limbs_, other.limbs_));
  }
  return bounded(other.negative_, difference(other.limbs_, limbs_));
}

std::optional<BigInteger> BigInteger::times(const BigInteger& other) const {
  if (limbs_.size() + other.limbs_.size() > max_limbs + 1) return std::nullopt;
  Limbs product(limbs_.size() + other.limbs_.size());
  for (std::size_t i = 0; i < limbs_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < other.limbs_.size(); ++j) {
      carry += std::uint64_t{limbs_[i]} * other.limbs_[j] + product[i + j];
      product[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= limb_bits;
    }
    product[i + other.limbs_.size()] = static_cast<std::uint32_t>(carry);
  }
  return bounded(negative_ != other.negative_, std::move(product));
}

std::optional<std::int64_t> Fraction::small_integer() const {
  const std::optional<std::int64_t> above = numerator.small();
  const std::optional<std::int64_t> below = denominator.small();
  if (!above || !below || *above % *below != 0) return std::nullopt;
  return *above / *below;
}

std::optional<Fraction> fraction(const BigInteger& numerator, const BigInteger& denominator) {
  if (denominator.is_zero()) return std::nullopt;
  const std::optional<std::int64_t> above = numerator.small();
  const std::optional<std::int64_t> below = denominator.small();
  if (above && below) {
    const std::int64_t common = std::gcd(*above, *below) * (*below < 0 ? -1 : 1);
    return Fraction{BigInteger(*above / common), BigInteger(*below / common)};
  }
  if (denominator.is_negative()) return Fraction{numerator.negated(), denominator.negated()};
  return Fraction{numerator, denominator};
}

std::optional<Fraction> fraction_of(std::string_view decimal) {
  const std::size_t point = std::min(decimal.find('.'), decimal.size());
  std::string digits(decimal.substr(0, point));
  std::string_view after = decimal.substr(std::min(point + 1, decimal.size()));
  std::string_view repeated;
  if (const std::size_t open = after.find('('); open != std::string_view::npos) {
    if (after.back() != ')') return std::nullopt;
    repeated = after.substr(open + 1, after.size() - open - 2);
    after = after.substr(0, open);
    if (repeated.empty()) return std::nullopt;
  }
  // x.ab(cd) = (xabcd - xab) / (99 . 10^2)
  const std::string once = digits + std::string(after);
  std::string below = repeated.empty() ? "1" : std::string(repeated.size(), '9');
  below.append(after.size(), '0');
  std::optional<BigInteger> above = BigInteger::from_digits(once + std::string(repeated));
  const std::optional<BigInteger> without = BigInteger::from_digits(once);
  const std::optional<BigInteger> denominator = BigInteger::from_digits(below);
  if (above && without && !repeated.empty()) above = above->plus(without->negated());
  if (!above || !denominator) return std::nullopt;
  return fraction(*above, *denominator);
}

std::optional<Fraction> add(const Fraction& a, const Fraction& b) {
  const std::optional<BigInteger> left = a.numerator.times(b.denominator);
  const std::optional<BigInteger> right = b.numerator.times(a.denominator);
  const std::optional<BigInteger> below = a.denominator.times(b.denominator);
  if (!left || !right || !below) return std::nullopt;
  const std::optional<BigInteger> above = left->plus(*right);
  if (!above) return std::nullopt;
  return fraction(*above, *below);
}

std::optional<Fraction> multiply(const Fraction& a, const Fraction& b) {
  const std::optional<BigInteger> above = a.numerator.times(b.numerator);
  const std::optional<BigInteger> below = a.denominator.times(b.denominator);
  if (!above || !below) return std::nullopt;
  return fraction(*above, *below);
}

std::optional<Fraction> divide(const Fraction& a, const Fraction& b) {
  if (b.is_zero()) return std::nullopt;
  const std::optional<Fraction> inverse = fraction(b.denominator, b.numerator);
  return multiply(a, *inverse);
}

std::optional<Fraction> power(const Fraction& base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base.is_zero()) return std::nullopt;
    return power(*fraction(base.denominator, base.numerator), -exponent);
  }
  const std::optional<BigInteger> above = power_of(base.numerator, exponent);
  const std::optional<BigInteger> below = power_of(base.denominator, exponent);
  if (!above || !below) return std::nullopt;
  return fraction(*above, *below);
}

std::optional<bool> same_value(const Fraction& a, const Fraction& b) {
  if (a.numerator == b.numerator && a.denominator == b.denominator) return true;
  const std::optional<BigInteger> left = a.numerator.times(b.denominator);
  const std::optional<BigInteger> right = b.numerator.times(a.denominator);
  if (!left || !right) return std::nullopt;
  return *left == *right;
}

}  // namespace onset
