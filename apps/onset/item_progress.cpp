#include "item_progress.h"

#include <cmath>

#include "onset/base/error.h"

namespace onset::app {
namespace {

std::string duration_text(double seconds) {
  const auto whole = std::int64_t{std::llround(seconds)};
  if (whole < 60) return str_cat(whole, " s");
  if (whole < 3600) return str_cat(whole / 60, " min ", whole % 60, " s");
  return str_cat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

}  // namespace

void ItemProgress::operator()(const std::string& what, std::int64_t done, std::int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!begun_ || done < first_) {
    begun_ = now;
    first_ = done;
  }
  const std::chrono::duration<double> passed = now - *begun_;
  std::string text = what;
  if (done > first_ && total > done && passed.count() > 1) {
    const double left =
        passed.count() / static_cast<double>(done - first_) * static_cast<double>(total - done);
    text = str_cat("about ", duration_text(left), " left, ", what);
  }
  console_.progress(text, done, total);
}

}  // namespace onset::app
