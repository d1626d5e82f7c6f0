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

// Pages of files that the group holds and the system takes back before anything else.
std::int64_t group_file_pages() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string name;
  std::int64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == "inactive_file") return bytes;
  }
  return 0;
}

// Of a container's group (cgroup v2 as it sees itself).
std::optional<std::int64_t> group_memory() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return std::clamp<std::int64_t>(*limit - *used + group_file_pages(), 0, *limit);
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  const auto system = system_memory();
  const auto group = group_memory();
  if (!system || !group) return system ? system : group;
  return std::min(*system, *group);
}

}  // namespace onset
