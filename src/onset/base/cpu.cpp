#include "onset/base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

CpuLevel detect() {
#if defined(__x86_64__)
  // Asks the CPU, and the operating system whether it saves the wider registers.
  __builtin_cpu_init();
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  if (!f16c || __builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) {
    return CpuLevel::baseline;
  }
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0) {
    return CpuLevel::avx512;
  }
  return CpuLevel::avx2;
#else
  return CpuLevel::baseline;
#endif
}

std::optional<CpuLevel> asked_for() {
  const char* value = std::getenv("ONSET_CPU");
  const std::string_view name = value == nullptr ? "" : value;
  if (name.empty()) return std::nullopt;
  if (name == "baseline") return CpuLevel::baseline;
  if (name == "avx2") return CpuLevel::avx2;
  if (name == "avx512") return CpuLevel::avx512;
  throw usage_error(str_cat("ONSET_CPU is ", quote(name), " in the environment"),
                    "baseline, avx2 or avx512, or leave it out");
}

}  // namespace

CpuLevel best_cpu_level() {
  static const CpuLevel level = std::min(detect(), asked_for().value_or(CpuLevel::avx512));
  return level;
}

bool cpu_has_bf16() {
#if defined(__x86_64__)
  static const bool has = best_cpu_level() == CpuLevel::avx512 && !asked_for() &&
                          __builtin_cpu_supports("avx512bf16") != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace onset
