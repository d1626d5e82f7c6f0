#include "onset/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "onset/base/error.h"

namespace onset {

double learning_rate_at(const Schedule& schedule, std::int64_t step) {
  if (!(schedule.learning_rate >= 0) || std::isinf(schedule.learning_rate)) {
    throw usage_error(
        str_cat("the learning rate is ", schedule.learning_rate, ", expected 0 or above"));
  }
  if (schedule.warmup_steps < 0 || schedule.total_steps < 1 || step < 0) {
    throw usage_error(str_cat("step ", step, " of ", schedule.total_steps, " with ",
                              schedule.warmup_steps, " of warm-up is no step of a run"));
  }
  if (step < schedule.warmup_steps) {
    return schedule.learning_rate * static_cast<double>(step) /
           static_cast<double>(schedule.warmup_steps);
  }
  const auto rest = std::max<std::int64_t>(1, schedule.total_steps - schedule.warmup_steps);
  const double done =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(rest));
  switch (schedule.shape) {
    case ScheduleShape::constant:
      return schedule.learning_rate;
    case ScheduleShape::linear:
      return schedule.learning_rate * (1 - done);
    case ScheduleShape::cosine:
      break;
  }
  return schedule.learning_rate * (1 + std::cos(std::numbers::pi * done)) / 2;
}

std::int64_t warmup_steps_of(double ratio, std::int64_t total_steps) {
  if (!(ratio >= 0 && ratio <= 1)) {
    throw usage_error(str_cat("the share of warm-up is ", ratio, ", expected 0 to 1"));
  }
  return static_cast<std::int64_t>(std::ceil(ratio * static_cast<double>(total_steps)));
}

}  // namespace onset
