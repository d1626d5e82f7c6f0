// What this CPU can do, of what the kernels are compiled for.
#pragma once

namespace onset {

enum class CpuLevel { baseline, avx2, avx512 };

// What the CPU has and the operating system saves the registers of: avx2 with FMA and F16C, avx512
// with F, BW, VL and DQ. The environment's ONSET_CPU (baseline, avx2, avx512) lowers it, to see
// what another machine would compute; any other value there is a usage error.
[[nodiscard]] CpuLevel best_cpu_level();

// Whether there are AVX-512's products of bfloat16; not where ONSET_CPU is given.
[[nodiscard]] bool cpu_has_bf16();

}  // namespace onset
