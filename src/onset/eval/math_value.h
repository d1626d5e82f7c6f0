// Complex numbers that know how inexact they are, for comparing two expressions at a point.
// Torch-free.
//
// Every operation adds its rounding to the error of its operands (first-order bounds, generous).
// Two expressions agree at a point when their values differ by no more than their errors: nothing
// is "close enough", and 0.333 is not 1/3.
#pragma once

#include <cstdint>

#include "onset/eval/math_quad.h"

namespace onset {

struct MathValue {
  Quad re = 0;
  Quad im = 0;
  Quad error = 0;       // bound on the distance from the true value
  bool defined = true;  // false outside a function's domain, or too large
};

[[nodiscard]] MathValue undefined_value();
[[nodiscard]] MathValue exact_value(Quad re);
// With the error of one rounding.
[[nodiscard]] MathValue rounded_value(Quad re);
[[nodiscard]] Quad magnitude(const MathValue& a);

[[nodiscard]] MathValue add(const MathValue& a, const MathValue& b);
[[nodiscard]] MathValue negate(const MathValue& a);
[[nodiscard]] MathValue subtract(const MathValue& a, const MathValue& b);
[[nodiscard]] MathValue multiply(const MathValue& a, const MathValue& b);
[[nodiscard]] MathValue divide(const MathValue& a, const MathValue& b);
[[nodiscard]] MathValue square_root(const MathValue& a);
// The real root of a real number where there is one, else the principal root.
[[nodiscard]] MathValue root(const MathValue& index, const MathValue& a);
// The principal power; integer exponents by multiplication.
[[nodiscard]] MathValue power(const MathValue& base, const MathValue& exponent);
[[nodiscard]] MathValue exponential(const MathValue& a);
[[nodiscard]] MathValue logarithm(const MathValue& a);
[[nodiscard]] MathValue sine(const MathValue& a);
[[nodiscard]] MathValue cosine(const MathValue& a);
[[nodiscard]] MathValue arc_sine(const MathValue& a);
[[nodiscard]] MathValue arc_tangent(const MathValue& a);
[[nodiscard]] MathValue absolute(const MathValue& a);
// Real numbers alone.
[[nodiscard]] MathValue floor_of(const MathValue& a);
// Of the integers 0 to 1000.
[[nodiscard]] MathValue factorial(const MathValue& a);
// Of an integer k up to 40.
[[nodiscard]] MathValue binomial(const MathValue& n, const MathValue& k);

[[nodiscard]] bool is_real(const MathValue& a);

enum class Agreement {
  agree,
  differ,
  unknown,  // a value is undefined, or its error too large to tell
};
[[nodiscard]] Agreement agreement(const MathValue& a, const MathValue& b);

}  // namespace onset
