#include "onset/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "onset/base/error.h"

namespace onset {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask smaller than its own, so grow until it fits.
  for (std::size_t count = 1024; count <= (1U << 18U); count *= 2) {
    cpu_set_t* mask = CPU_ALLOC(count);
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, mask);
    const bool known = mask != nullptr && ::sched_getaffinity(0, bytes, mask) == 0;
    std::vector<int> cpus;
    for (std::size_t cpu = 0; known && cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(static_cast<int>(cpu));
    }
    CPU_FREE(mask);
    if (known) return cpus;
  }
  return {0};
}

std::size_t physical_cores(const std::vector<int>& cpus) {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int cpu : cpus) {
    const auto topology = str_cat("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    const auto core = first_line(topology + "core_id");
    if (core.empty()) return cpus.size();  // no topology here: count what there is
    cores.emplace(first_line(topology + "physical_package_id"), core);
  }
  return cores.size();
}

// Quota over period of one cgroup folder, in either version's spelling.
std::optional<double> quota_of(const std::filesystem::path& folder) {
  std::string quota;
  double period = 0;
  std::istringstream maximum(first_line(folder / "cpu.max"));
  if (!(maximum >> quota >> period)) {
    quota = first_line(folder / "cpu.cfs_quota_us");
    std::istringstream(first_line(folder / "cpu.cfs_period_us")) >> period;
  }
  double amount = 0;
  if (!(std::istringstream(quota) >> amount) || amount <= 0 || period <= 0) return std::nullopt;
  return amount / period;
}

// The smallest quota on the way from this process's cgroup to the root.
std::optional<double> cgroup_quota() {
  std::optional<double> smallest;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("cpu") == std::string::npos) continue;
    const std::filesystem::path root =
        controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
    auto inside = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      const auto quota = quota_of(root / inside);
      if (quota && (!smallest || *quota < *smallest)) smallest = quota;
      if (inside.empty()) break;
      inside = inside.parent_path();
    }
  }
  return smallest;
}

}  // namespace

int available_cores() {
  auto cores = static_cast<double>(physical_cores(allowed_cpus()));
  if (const auto quota = cgroup_quota()) cores = std::min(cores, std::ceil(*quota));
  return std::max(1, static_cast<int>(cores));
}

}  // namespace onset
