#include "onset/model/runtime.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "onset/base/processors.h"

namespace onset {

void set_threads(int threads) { at::set_num_threads(threads > 0 ? threads : available_cores()); }

int threads() { return at::get_num_threads(); }

const char* torch_version() { return TORCH_VERSION; }

}  // namespace onset
