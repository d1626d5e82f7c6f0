// The conversions compiled for AVX-512 (F, BW, VL, DQ); called only where the CPU has them.
#include "onset/checkpoint/convert_impl.h"

namespace onset::convert {

Convert avx512(DType type) { return choose(type); }

}  // namespace onset::convert
