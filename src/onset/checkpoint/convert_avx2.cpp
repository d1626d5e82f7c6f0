// The conversions compiled for AVX2 and F16C; called only where the CPU has them.
#include "onset/checkpoint/convert_impl.h"

namespace onset::convert {

Convert avx2(DType type) { return choose(type); }

}  // namespace onset::convert
