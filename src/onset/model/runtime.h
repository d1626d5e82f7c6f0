// The one setting of the numeric runtime that a process makes: its threads. Torch-free.
#pragma once

namespace onset {

// Threads of all products and element-wise kernels; 0: available_cores() of base/processors.h. Call
// before the first computation.
void set_threads(int threads);
[[nodiscard]] int threads();
// Threads that wait for each other sleep after microseconds instead of spinning for milliseconds:
// on a machine that others use too, spinning threads keep the ones they wait for off the
// processors, and a pass takes several times as long. Process-wide; call before the first
// computation.
void spin_briefly();
// Keeps freed activations for the next layer instead of giving every large block back to the system
// and faulting it in again, which costs a tenth of a pass, and gives tensors blocks that the next
// of the same size fit. Process-wide (glibc's mallopt, libtorch's allocator), so a program decides
// it; call before the first computation.
void keep_freed_memory();
// The version of libtorch ("2.15.0"), for reports.
[[nodiscard]] const char* torch_version();

}  // namespace onset
