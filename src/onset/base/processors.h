// The processors that this process may use.
#pragma once

namespace onset {

// Physical cores by the affinity mask and the cgroup's quota; hyperthreads of one core count once.
// At least 1.
[[nodiscard]] int available_cores();

}  // namespace onset
