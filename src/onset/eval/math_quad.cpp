#include "onset/eval/math_quad.h"

#include <cmath>
#include <cstdint>

namespace onset {
namespace {

Quad power_of_ten(int exponent) {
  Quad power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// high . 10^-16 + middle . 10^-32 + low . 10^-48, with 17, 16 and 16 digits: more than 113 bits
// hold. The last summand is what the sum of the first two loses.
Quad from_digits(std::int64_t high, std::int64_t middle, std::int64_t low) {
  const Quad first = (Quad(high) * power_of_ten(16) + Quad(middle)) / power_of_ten(32);
  return first + Quad(low) / power_of_ten(48);
}

Quad log_2() {
  static const Quad value = from_digits(6931471805599453, 941723212145817, 6568075500134360);
  return value;
}

// sin and cos for |x| <= pi / 4, by their power series.
QuadSinCos series(Quad x) {
  const Quad square = x * x;
  Quad sin = 0;
  Quad cos = 0;
  constexpr int terms = 16;  // (pi / 4)^33 / 33! < 2^-130
  for (int n = terms; n >= 1; --n) {
    const Quad even = Quad(2 * n - 1) * Quad(2 * n);
    const Quad odd = Quad(2 * n) * Quad(2 * n + 1);
    cos = (1 + cos) * -square / even;
    sin = (1 + sin) * -square / odd;
  }
  return {x * (1 + sin), 1 + cos};
}

}  // namespace

Quad quad_pi() {
  static const Quad value = from_digits(31415926535897932, 3846264338327950, 2884197169399375);
  return value;
}

Quad quad_round(Quad x) {
  const Quad shifted = x < 0 ? x - 0.5L : x + 0.5L;
  return Quad(static_cast<std::int64_t>(shifted));
}

Quad quad_sqrt(Quad x) {
  if (x == 0) return 0;
  Quad root = std::sqrt(static_cast<long double>(x));
  for (int i = 0; i < 2; ++i) root = (root + x / root) / 2;
  return root;
}

Quad quad_exp(Quad x) {
  const Quad halves = quad_round(x / log_2());
  constexpr int squarings = 6;
  const Quad rest = (x - halves * log_2()) / (1 << squarings);
  // exp(rest) - 1: |rest| < 0.0055, so 16 terms leave less than 2^-150.
  Quad minus_one = 0;
  for (int n = 16; n >= 1; --n) minus_one = (1 + minus_one) * rest / n;
  for (int i = 0; i < squarings; ++i) minus_one = minus_one * (2 + minus_one);
  return (1 + minus_one) * Quad(std::ldexp(1.0L, static_cast<int>(halves)));
}

Quad quad_log(Quad x) {
  Quad log = std::log(static_cast<long double>(x));
  // Halley's method triples the digits; the logarithm of a long double has 19.
  const Quad power = quad_exp(log);
  log += 2 * (x - power) / (x + power);
  return log;
}

QuadSinCos quad_sin_cos(Quad x) {
  const Quad quarters = quad_round(2 * x / quad_pi());
  const Quad rest = x - quarters * (quad_pi() / 2);
  const QuadSinCos at = series(rest);
  switch (static_cast<int>(static_cast<std::int64_t>(quarters) & 3)) {
    case 0:
      return at;
    case 1:
      return {at.cos, -at.sin};
    case 2:
      return {-at.sin, -at.cos};
    default:
      return {-at.cos, at.sin};
  }
}

Quad quad_atan2(Quad y, Quad x) {
  // In a ratio, so that neither is out of the range of what follows.
  const Quad scale = quad_abs(x) > quad_abs(y) ? quad_abs(x) : quad_abs(y);
  y /= scale;
  x /= scale;
  Quad angle = std::atan2(static_cast<long double>(y), static_cast<long double>(x));
  const QuadSinCos at = quad_sin_cos(angle);
  angle += (y * at.cos - x * at.sin) / (x * at.cos + y * at.sin);
  return angle;
}

}  // namespace onset
