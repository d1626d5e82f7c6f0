#include "onset/model/runtime.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <torch/headeronly/version.h>

#include "onset/base/processors.h"

namespace onset {

void set_threads(int threads) { at::set_num_threads(threads > 0 ? threads : available_cores()); }

int threads() { return at::get_num_threads(); }

void keep_freed_memory() {
  constexpr int largest_kept = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, largest_kept);
  ::mallopt(M_TRIM_THRESHOLD, largest_kept);
}

const char* torch_version() { return TORCH_VERSION; }

}  // namespace onset
