// What the forms of a scan share beside the library's result.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scan_report.h"

namespace onset::app {
namespace {

struct Seen {
  MassiveDim row;
  std::set<std::size_t> prompts;
  std::set<std::int64_t> layers;
};

void take(Seen& seen, std::size_t prompt, std::int64_t layer, float value) {
  seen.prompts.insert(prompt);
  seen.layers.insert(layer);
  if (std::abs(value) <= std::abs(seen.row.value)) return;
  seen.row.value = value;
  seen.row.value_layer = layer;
}

}  // namespace

std::vector<MassiveDim> massive_dim_rows(const ScanResult& result) {
  std::map<std::int64_t, Seen> by_dim;
  for (std::size_t p = 0; p < result.prompts.size(); ++p) {
    for (const auto& layer : result.prompts[p].layers) {
      for (const auto& entry : layer.massive_entries) {
        take(by_dim[entry.dim], p, layer.layer, entry.value);
      }
    }
  }
  std::vector<MassiveDim> rows;
  for (auto& [dim, seen] : by_dim) {
    seen.row.dim = dim;
    seen.row.prompts = static_cast<std::int64_t>(seen.prompts.size());
    seen.row.layers = static_cast<std::int64_t>(seen.layers.size());
    seen.row.first_layer = *seen.layers.begin();
    seen.row.last_layer = *seen.layers.rbegin();
    rows.push_back(seen.row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const MassiveDim& a, const MassiveDim& b) {
    if (a.prompts != b.prompts) return a.prompts > b.prompts;
    return std::abs(a.value) > std::abs(b.value);
  });
  return rows;
}

}  // namespace onset::app
