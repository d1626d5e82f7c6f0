// The kernels of few_rows.h, compiled for AVX-512 (F, BW, VL, DQ); called only where the CPU has
// it.
#include "onset/kernels/few_rows_strips_avx512.h"

namespace onset::few_rows {

Kernel kernel_f32(DType dtype, std::int64_t n) { return kernel<false>(dtype, n); }

}  // namespace onset::few_rows
