// A model with its adapter folded into the weights, as a folder of its own. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "onset/checkpoint/dtype.h"
#include "onset/model/model.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

struct MergeOptions {
  std::optional<DType> dtype = std::nullopt;    // as in SaveOptions (model/save_model.h)
  std::optional<MaskSpec> mask = std::nullopt;  // written as wemask.json beside the weights
};

struct MergeReport {
  std::vector<std::string> files;  // sorted
  std::int64_t bytes = 0;          // of all files
  // Whether head and embedding were one matrix before and are two now.
  bool untied = false;
};

// Writes the model with the adapter that is on it (adapt.h) as save_model() does; the folder
// appears whole or not at all. "onset" in config.json says which adapter it was and names the
// mask's file. A usage error where the folder exists and holds something.
MergeReport merge(const Model& model, const std::filesystem::path& folder,
                  const MergeOptions& options = {});

}  // namespace onset
