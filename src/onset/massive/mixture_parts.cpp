#include "onset/massive/mixture_parts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"

namespace onset {
namespace {

float value_at(const at::Tensor& values, std::int64_t row, std::int64_t dim) {
  return values.const_data_ptr<float>()[row * values.size(1) + dim];
}

}  // namespace

void MixtureParts::begin_layer() {
  parts_.clear();
  by_row_.clear();
  shared_ = at::Tensor();
}

void MixtureParts::observe(const SiteContext& context, const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kFloat).contiguous();
  if (context.site.kind == SiteKind::shared_out) {
    shared_ = values;
    return;
  }
  const SequenceRows& last = context.sequences.back();
  by_row_.resize(static_cast<std::size_t>(last.row + last.count));
  for (std::size_t i = 0; i < context.rows.size(); ++i) {
    by_row_[static_cast<std::size_t>(context.rows[i])].emplace_back(parts_.size(),
                                                                    static_cast<std::int64_t>(i));
  }
  parts_.push_back({context.site.expert, values});
}

std::vector<ExpertPart> MixtureParts::experts(std::int64_t row, std::int64_t dim) const {
  std::vector<ExpertPart> result;
  if (by_row_.empty()) return result;
  for (const auto& [part, index] : by_row_[static_cast<std::size_t>(row)]) {
    result.push_back({parts_[part].expert, value_at(parts_[part].values, index, dim)});
  }
  std::stable_sort(result.begin(), result.end(), [](const ExpertPart& a, const ExpertPart& b) {
    return std::fabs(a.value) > std::fabs(b.value);
  });
  return result;
}

std::optional<float> MixtureParts::shared_out(std::int64_t row, std::int64_t dim) const {
  if (!shared_.defined()) return std::nullopt;
  return value_at(shared_, row, dim);
}

std::string main_expert(const Stage& stage) {
  const float direction = stage.ffn_out < 0 ? -1.0F : 1.0F;
  std::string name;
  float most = 0;
  for (const ExpertPart& part : stage.experts) {
    if (!name.empty() && part.value * direction <= most) continue;
    name = str_cat("expert ", part.expert);
    most = part.value * direction;
  }
  if (stage.shared_out && (name.empty() || *stage.shared_out * direction > most)) {
    name = "the shared expert";
  }
  return name;
}

}  // namespace onset
