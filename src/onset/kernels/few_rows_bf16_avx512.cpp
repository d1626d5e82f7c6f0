// The kernels of few_rows.h for weights rounded to bfloat16, compiled for AVX-512 (F, BW, VL, DQ,
// BF16); called only where the CPU has it.
#include "onset/kernels/few_rows_strips_avx512.h"

namespace onset::few_rows {

Kernel kernel_bf16(DType dtype, std::int64_t n) { return kernel<true>(dtype, n); }

}  // namespace onset::few_rows
