// The product of float32 panels, by whichever of the libraries in libtorch is faster on this CPU.
#pragma once

#include <cstdint>

namespace onset {

// out[i, r] = sum_c x[i, c] rows[r, c] for i < n and r < count. x [n, columns] and rows [count,
// columns] are contiguous; a row of `out` has out_columns values, of which the first `count` are
// written. May be called on several threads at a time, and then runs on the calling one alone.
void multiply_panel(const float* x, std::int64_t n, const float* rows, std::int64_t count,
                    std::int64_t columns, float* out, std::int64_t out_columns);

}  // namespace onset
