// Several models beside each other: where their massive activations are born. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/massive/scan.h"
#include "onset/report/page.h"

namespace onset {

struct ComparedModel {
  std::string name;  // plain text
  const ScanResult& scan;
  std::size_t prompt = 0;  // the one that stands for the model
};

// Relative depth of the ME layer, and the largest |x| over relative depth.
[[nodiscard]] Figure comparison_figure(const std::vector<ComparedModel>& models);

}  // namespace onset
