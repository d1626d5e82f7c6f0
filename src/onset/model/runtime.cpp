#include "onset/model/runtime.h"

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <omp.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <thread>

#include "onset/base/processors.h"

namespace onset {
namespace {

// Memory of tensors by malloc, aligned here. glibc's posix_memalign (2.36), which libtorch's own
// allocator asks, cannot give a freed block to a request of the same size: a training step ended
// with a third of its heap in holes.
class ReusingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &free_block, cpu};
    void* block = std::malloc(bytes + alignment + sizeof(void*));
    if (block == nullptr) return c10::GetDefaultCPUAllocator()->allocate(bytes);  // says why
    const auto first = reinterpret_cast<std::uintptr_t>(block) + sizeof(void*);
    auto* data = reinterpret_cast<void**>((first + alignment - 1) / alignment * alignment);
    data[-1] = block;
    return {data, data, &free_block, cpu};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static constexpr std::size_t alignment = 64;  // as libtorch's

  static void free_block(void* data) {
    if (data != nullptr) std::free(static_cast<void**>(data)[-1]);
  }
};

}  // namespace

void set_threads(int threads) { at::set_num_threads(threads > 0 ? threads : available_cores()); }

int threads() { return at::get_num_threads(); }

void spin_briefly() {
  // libgomp's waits shrink from milliseconds of spinning to microseconds when it manages more
  // threads than there are processors, and its environment variables are read before main(). So a
  // second team is made that only sleeps.
  const int team = omp_get_num_procs();
  std::promise<void> made;
  std::thread([&made, team] {
    std::atomic<int> members{0};
#pragma omp parallel num_threads(team)
    ++members;
    made.set_value();
    // The team lasts as long as the thread that made it.
    while (true) ::pause();
  }).detach();
  made.get_future().wait();
}

void keep_freed_memory() {
  constexpr int largest_kept = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, largest_kept);
  ::mallopt(M_TRIM_THRESHOLD, largest_kept);
  static ReusingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

const char* torch_version() { return TORCH_VERSION; }

}  // namespace onset
