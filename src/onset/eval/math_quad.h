// Real numbers of 113 bits, and the functions that answers of mathematics need. Torch-free.
//
// long double has 64 bits on x86, too few to tell sqrt(2) from its first 20 digits, which some
// answers print. The functions are good to a few units in the last place, sin, cos and exp to
// |x| times that; math_value.h keeps count.
#pragma once

namespace onset {

#if defined(__SIZEOF_FLOAT128__)
// NOLINTNEXTLINE(modernize-use-using): __extension__ has no place in a using declaration.
__extension__ typedef __float128 Quad;
#else
using Quad = long double;  // of 113 bits on ARM
#endif

struct QuadSinCos {
  Quad sin;
  Quad cos;
};

[[nodiscard]] Quad quad_pi();
[[nodiscard]] inline Quad quad_abs(Quad x) { return x < 0 ? -x : x; }
// Neither infinite nor NaN.
[[nodiscard]] inline bool quad_is_finite(Quad x) { return x - x == 0; }
// The nearest integer; `x` below 2^62.
[[nodiscard]] Quad quad_round(Quad x);
// Not negative.
[[nodiscard]] Quad quad_sqrt(Quad x);
// At most 11000 in absolute value.
[[nodiscard]] Quad quad_exp(Quad x);
// Positive.
[[nodiscard]] Quad quad_log(Quad x);
// At most 1e6 in absolute value.
[[nodiscard]] QuadSinCos quad_sin_cos(Quad x);
// The angle of the point (x, y), which is not the origin, in (-pi, pi].
[[nodiscard]] Quad quad_atan2(Quad y, Quad x);

}  // namespace onset
