// The one setting of the numeric runtime that a process makes: its threads. Torch-free.
#pragma once

namespace onset {

// Processors this process may run on (affinity mask and cgroup quota), at least 1.
[[nodiscard]] int available_processors();
// Threads of all products and element-wise kernels; 0: available_processors(). Call before the
// first computation.
void set_threads(int threads);
[[nodiscard]] int threads();
// The version of libtorch and its CPU capability ("2.15.0, AVX512"), for reports.
[[nodiscard]] const char* torch_version();

}  // namespace onset
