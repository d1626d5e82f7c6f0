#include "onset/model/runtime.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <omp.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "onset/base/processors.h"

namespace onset {

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
}

const char* torch_version() { return TORCH_VERSION; }

}  // namespace onset
