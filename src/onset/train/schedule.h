// The learning rate over the updates of a run. Torch-free.
#pragma once

#include <cstdint>

namespace onset {

enum class ScheduleShape { constant, linear, cosine };

struct Schedule {
  ScheduleShape shape = ScheduleShape::linear;
  double learning_rate = 5e-5;    // at its highest
  std::int64_t warmup_steps = 0;  // 0: none
  std::int64_t total_steps = 1;   // 1 or above; a warm-up may be longer than the run
};

// The rate of update `step`, from 0. During the warm-up rate * step / warmup_steps, so that the
// first update has rate 0: it moves the moments and no weight. Then, with p the share of the rest
// that is done, rate (constant), rate * (1 - p) (linear), rate * (1 + cos(pi p)) / 2 (cosine); 0
// from total_steps on, except for constant. transformers' get_*_schedule(_with_warmup).
// Throws a usage error for values out of their range.
[[nodiscard]] double learning_rate_at(const Schedule& schedule, std::int64_t step);

// Steps of warm-up for a share of the run, rounded up as transformers does.
[[nodiscard]] std::int64_t warmup_steps_of(double ratio, std::int64_t total_steps);

}  // namespace onset
