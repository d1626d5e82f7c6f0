#include "onset/eval/math_value.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace onset {
namespace {

// The error counted for an operation, relative to its result: 16 units in the last place.
Quad unit() {
  static const Quad value = std::ldexp(1.0L, -108);
  return value;
}

// A value whose error is too large for what it is.
constexpr long double worst_error = 1e-18L;
// Exponents at most this are multiplied out.
constexpr std::int64_t max_multiplied = 4096;
constexpr std::int64_t max_factorial = 1000;
constexpr std::int64_t max_chosen = 40;
constexpr long double max_exponent = 11000;
constexpr long double max_angle = 1e6L;

Quad absolute_of(Quad re, Quad im) {
  const Quad x = quad_abs(re);
  const Quad y = quad_abs(im);
  if (y == 0) return x;
  if (x == 0) return y;
  const Quad large = x > y ? x : y;
  const Quad ratio = (x > y ? y : x) / large;
  return large * quad_sqrt(1 + ratio * ratio);
}

// The value with the rounding of the operation that made it; undefined when it is not finite.
MathValue checked(Quad re, Quad im, Quad error) {
  if (!quad_is_finite(re) || !quad_is_finite(im)) return undefined_value();
  const Quad total = error + unit() * absolute_of(re, im);
  if (!quad_is_finite(total)) return undefined_value();
  return {re, im, total, true};
}

// A whole number so small that sums and products of two are exact.
bool is_small_whole(const MathValue& a) {
  constexpr long double limit = 1LL << 53;
  return a.error == 0 && a.im == 0 && quad_abs(a.re) < limit && quad_round(a.re) == a.re;
}

std::optional<std::int64_t> as_integer(const MathValue& a) {
  if (!a.defined || a.im != 0 || quad_abs(a.re) > 1e15L) return std::nullopt;
  const Quad nearest = quad_round(a.re);
  if (quad_abs(a.re - nearest) > a.error || a.error > worst_error) return std::nullopt;
  return static_cast<std::int64_t>(nearest);
}

MathValue integer_power(MathValue base, std::int64_t exponent) {
  MathValue result = exact_value(1);
  for (std::int64_t left = exponent < 0 ? -exponent : exponent; left > 0; left /= 2) {
    if (left % 2 == 1) result = multiply(result, base);
    if (left > 1) base = multiply(base, base);
  }
  return exponent < 0 ? divide(exact_value(1), result) : result;
}

MathValue times_i(const MathValue& a) { return {-a.im, a.re, a.error, a.defined}; }

}  // namespace

MathValue undefined_value() { return {0, 0, 0, false}; }
MathValue exact_value(Quad re) { return {re, 0, 0, true}; }
MathValue rounded_value(Quad re) { return checked(re, 0, 0); }
Quad magnitude(const MathValue& a) { return absolute_of(a.re, a.im); }
bool is_real(const MathValue& a) { return quad_abs(a.im) <= a.error; }

MathValue add(const MathValue& a, const MathValue& b) {
  if (!a.defined || !b.defined) return undefined_value();
  if (is_small_whole(a) && is_small_whole(b)) return exact_value(a.re + b.re);
  return checked(a.re + b.re, a.im + b.im, a.error + b.error);
}

MathValue negate(const MathValue& a) { return {-a.re, -a.im, a.error, a.defined}; }
MathValue subtract(const MathValue& a, const MathValue& b) { return add(a, negate(b)); }

MathValue multiply(const MathValue& a, const MathValue& b) {
  if (!a.defined || !b.defined) return undefined_value();
  if (is_small_whole(a) && is_small_whole(b)) return exact_value(a.re * b.re);
  const Quad error = magnitude(a) * b.error + magnitude(b) * a.error + a.error * b.error;
  if (a.im == 0 && b.im == 0) return checked(a.re * b.re, 0, error);
  // Real and imaginary part may each cancel, so the rounding is of the magnitude.
  return checked(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
                 error + unit() * magnitude(a) * magnitude(b));
}

MathValue divide(const MathValue& a, const MathValue& b) {
  if (!a.defined || !b.defined) return undefined_value();
  const Quad size = magnitude(b);
  if (size <= 2 * b.error) return undefined_value();  // it may be zero
  const Quad ratio = magnitude(a) / size;
  const Quad error = (a.error + ratio * b.error) / (size - b.error) + unit() * ratio;
  if (b.im == 0) return checked(a.re / b.re, a.im / b.re, error);
  const Quad x = b.re / size;
  const Quad y = b.im / size;
  return checked((a.re * x + a.im * y) / size, (a.im * x - a.re * y) / size, error);
}

MathValue square_root(const MathValue& a) {
  if (!a.defined) return a;
  const Quad size = magnitude(a);
  if (size <= 2 * a.error) return {0, 0, quad_sqrt(3 * a.error), true};
  if (a.im == 0) {
    const Quad positive = quad_sqrt(size);
    const Quad error = a.error / positive;
    return a.re > 0 ? checked(positive, 0, error) : checked(0, positive, error);
  }
  const Quad half = quad_sqrt((size + quad_abs(a.re)) / 2);
  const Quad other = a.im / (2 * half);
  const Quad error = a.error / quad_sqrt(size) + unit() * quad_sqrt(size);
  if (a.re >= 0) return checked(half, other, error);
  return a.im >= 0 ? checked(quad_abs(other), half, error) : checked(quad_abs(other), -half, error);
}

MathValue root(const MathValue& index, const MathValue& a) {
  const std::optional<std::int64_t> n = as_integer(index);
  if (n == 2) return square_root(a);
  const MathValue inverse = divide(exact_value(1), index);
  if (n && *n % 2 != 0 && a.im == 0 && a.re < 0) return negate(power(negate(a), inverse));
  return power(a, inverse);
}

MathValue power(const MathValue& base, const MathValue& exponent) {
  if (!base.defined || !exponent.defined) return undefined_value();
  const std::optional<std::int64_t> n = as_integer(exponent);
  if (n && (*n < 0 ? -*n : *n) <= max_multiplied) {
    if (*n <= 0 && magnitude(base) <= base.error) return undefined_value();  // 0^0, 1/0
    return integer_power(base, *n);
  }
  if (base.re == 0 && base.im == 0 && base.error == 0) {
    return exponent.re > exponent.error ? base : undefined_value();
  }
  return exponential(multiply(exponent, logarithm(base)));
}

MathValue exponential(const MathValue& a) {
  if (!a.defined || quad_abs(a.re) > max_exponent || quad_abs(a.im) > max_angle || a.error > 0.5L) {
    return undefined_value();
  }
  const Quad size = quad_exp(a.re);
  const Quad error = size * (2 * a.error + unit() * (quad_abs(a.re) + quad_abs(a.im)));
  if (a.im == 0) return checked(size, 0, error);
  const QuadSinCos turn = quad_sin_cos(a.im);
  return checked(size * turn.cos, size * turn.sin, error);
}

MathValue logarithm(const MathValue& a) {
  if (!a.defined) return a;
  const Quad size = magnitude(a);
  if (size <= 2 * a.error) return undefined_value();
  const Quad error = a.error / (size - a.error) + unit();
  if (a.im == 0 && a.re > 0) return checked(quad_log(size), 0, error);
  return checked(quad_log(size), quad_atan2(a.im, a.re), error);
}

MathValue sine(const MathValue& a) { return cosine(subtract(a, {quad_pi() / 2, 0, unit(), true})); }

MathValue cosine(const MathValue& a) {
  if (!a.defined || quad_abs(a.re) > max_angle || quad_abs(a.im) > max_exponent) {
    return undefined_value();
  }
  const QuadSinCos at = quad_sin_cos(a.re);
  if (a.im == 0) return checked(at.cos, 0, a.error + unit() * (1 + quad_abs(a.re)));
  const Quad grow = quad_exp(a.im);
  const Quad shrink = 1 / grow;
  const Quad size = grow > shrink ? grow : shrink;
  const Quad error = size * (a.error + unit() * (1 + quad_abs(a.re) + quad_abs(a.im)));
  return checked(at.cos * (grow + shrink) / 2, -at.sin * (grow - shrink) / 2, error);
}

MathValue arc_sine(const MathValue& a) {
  // -i log(i a + sqrt(1 - a^2))
  const MathValue cathetus = square_root(subtract(exact_value(1), multiply(a, a)));
  MathValue angle = negate(times_i(logarithm(add(times_i(a), cathetus))));
  if (angle.defined && a.im == 0 && quad_abs(a.re) <= 1) angle.im = 0;
  return angle;
}

MathValue arc_tangent(const MathValue& a) {
  // (i / 2) (log(1 - i a) - log(1 + i a))
  const MathValue one = exact_value(1);
  const MathValue difference =
      subtract(logarithm(subtract(one, times_i(a))), logarithm(add(one, times_i(a))));
  MathValue angle = divide(times_i(difference), exact_value(2));
  if (angle.defined && a.im == 0) angle.im = 0;
  return angle;
}

MathValue absolute(const MathValue& a) {
  if (!a.defined) return a;
  return checked(magnitude(a), 0, a.error);
}

MathValue floor_of(const MathValue& a) {
  if (const std::optional<std::int64_t> whole = as_integer(a)) return exact_value(Quad(*whole));
  if (!a.defined || a.im != 0 || quad_abs(a.re) > 1e15L || a.error > worst_error) {
    return undefined_value();
  }
  Quad below = quad_round(a.re);
  if (below > a.re) below -= 1;
  return exact_value(below);
}

MathValue factorial(const MathValue& a) {
  const std::optional<std::int64_t> n = as_integer(a);
  if (!n || *n < 0 || *n > max_factorial) return undefined_value();
  static const std::vector<MathValue> table = [] {
    std::vector<MathValue> made = {exact_value(1)};
    for (std::int64_t i = 1; i <= max_factorial; ++i) {
      made.push_back(multiply(made.back(), exact_value(Quad(i))));
    }
    return made;
  }();
  return table[static_cast<std::size_t>(*n)];
}

MathValue binomial(const MathValue& n, const MathValue& k) {
  const std::optional<std::int64_t> count = as_integer(k);
  if (!n.defined || !count || *count > max_chosen) return undefined_value();
  if (*count < 0) return exact_value(0);
  MathValue product = exact_value(1);
  for (std::int64_t i = 0; i < *count; ++i) {
    product = multiply(product, subtract(n, exact_value(Quad(i))));
    product = divide(product, exact_value(Quad(i + 1)));
  }
  return product;
}

Agreement agreement(const MathValue& a, const MathValue& b) {
  if (!a.defined || !b.defined) return Agreement::unknown;
  const Quad error = a.error + b.error;
  const Quad distance = absolute_of(a.re - b.re, a.im - b.im);
  if (distance > error) return Agreement::differ;
  const Quad size = magnitude(a) > magnitude(b) ? magnitude(a) : magnitude(b);
  const bool is_exact_enough = error <= worst_error || error <= worst_error * size;
  return is_exact_enough ? Agreement::agree : Agreement::unknown;
}

}  // namespace onset
