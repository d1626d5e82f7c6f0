#include "onset/massive/interventions.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "onset/massive/statistics.h"
#include "onset/model/hooks.h"

namespace onset {
namespace {

// Rows of the sequence whose entry in the dim is to be edited.
std::vector<std::int64_t> chosen_rows(const EntryChoice& choice, std::int64_t dim,
                                      const SequenceRows& sequence, const at::Tensor& state,
                                      double median) {
  std::vector<std::int64_t> rows;
  if (choice.position) {
    const std::int64_t offset = *choice.position - sequence.position;
    if (offset >= 0 && offset < sequence.count) rows.push_back(sequence.row + offset);
    return rows;
  }
  const at::Tensor column =
      state.narrow(0, sequence.row, sequence.count).select(1, dim).to(at::kFloat).contiguous();
  const auto* values = column.const_data_ptr<float>();
  for (std::int64_t t = 0; t < sequence.count; ++t) {
    const auto size = static_cast<double>(std::fabs(values[t]));
    if (size > choice.min_abs && size > choice.min_ratio * median) {
      rows.push_back(sequence.row + t);
    }
  }
  return rows;
}

double median_of(const EntryChoice& choice, const SequenceRows& sequence, const at::Tensor& state) {
  if (choice.position) return 0;
  const at::Tensor rows = state.narrow(0, sequence.row, sequence.count).to(at::kFloat).contiguous();
  return lower_median_abs({rows.const_data_ptr<float>(), static_cast<std::size_t>(rows.numel())});
}

}  // namespace

void add_entry_edit(Hooks& hooks, const EntryChoice& choice, const EntryEdit& edit) {
  if (!edit.values.empty() && edit.values.size() != choice.dims.size()) {
    throw std::logic_error("an edit needs one value for each dim");
  }
  SiteSet sites(hooks.layer_count());
  sites.add({SiteKind::resid_post, choice.layer});
  hooks.intervene(sites, [choice, edit](const SiteContext& context, const at::Tensor& state) {
    at::Tensor edited = state.clone();
    for (const SequenceRows& sequence : context.sequences) {
      const double median = median_of(choice, sequence, state);
      for (std::size_t d = 0; d < choice.dims.size(); ++d) {
        for (const std::int64_t row :
             chosen_rows(choice, choice.dims[d], sequence, state, median)) {
          at::Tensor entry = edited.select(0, row).select(0, choice.dims[d]);
          if (edit.values.empty()) {
            entry.mul_(edit.scale);
          } else {
            entry.fill_(edit.values[d]);
          }
        }
      }
    }
    return edited;
  });
}

void remove_write(Hooks& hooks, const EntryChoice& choice, bool attention) {
  const auto before = std::make_shared<at::Tensor>();
  SiteSet input(hooks.layer_count());
  input.add({attention ? SiteKind::resid_pre : SiteKind::resid_mid, choice.layer});
  hooks.observe(input,
                [before](const SiteContext&, const at::Tensor& tensor) { *before = tensor; });
  SiteSet output(hooks.layer_count());
  output.add({SiteKind::resid_post, choice.layer});
  hooks.intervene(output, [choice, before](const SiteContext& context, const at::Tensor& state) {
    at::Tensor edited = state.clone();
    for (const SequenceRows& sequence : context.sequences) {
      const double median = median_of(choice, sequence, state);
      for (const std::int64_t dim : choice.dims) {
        for (const std::int64_t row : chosen_rows(choice, dim, sequence, state, median)) {
          edited.select(0, row).copy_(before->select(0, row));
        }
      }
    }
    return edited;
  });
}

}  // namespace onset
