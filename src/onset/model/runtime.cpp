#include "onset/model/runtime.h"

#include <ATen/Parallel.h>
#include <sched.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace onset {
namespace {

// cgroup v2: "QUOTA PERIOD" in microseconds, or "max PERIOD".
int cgroup_quota(int fallback) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return fallback;
  return std::max(1, static_cast<int>(std::stod(quota) / period + 0.5));
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) count = std::max(1, CPU_COUNT(&set));
  return std::min(count, cgroup_quota(count));
}

void set_threads(int threads) {
  at::set_num_threads(threads > 0 ? threads : available_processors());
}

int threads() { return at::get_num_threads(); }

const char* torch_version() { return TORCH_VERSION; }

}  // namespace onset
