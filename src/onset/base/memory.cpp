#include "onset/base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace onset {
namespace {

std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // "max", or no such file
}

std::optional<std::int64_t> system_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::int64_t kib = 0;
  std::string unit;
  while (file >> name >> kib >> unit) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

// Of a container's group (cgroup v2 as it sees itself).
std::optional<std::int64_t> group_memory() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return std::max<std::int64_t>(0, *limit - *used);
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  const auto system = system_memory();
  const auto group = group_memory();
  if (!system || !group) return system ? system : group;
  return std::min(*system, *group);
}

}  // namespace onset
