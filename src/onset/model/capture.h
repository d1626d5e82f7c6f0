// Writing what the forward pass shows at chosen sites to a safetensors file. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/model/sites.h"

namespace onset {

class Hooks;
class Model;

struct CaptureSummary {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;  // of tensor data
};

// One file with "<prompt index>.<site>" as float32 in the shapes of sites.h, without a batch
// dimension, and "<prompt index>.ids" as int64 [T]; router.experts is int64. A site of an expert
// holds the rows of the tokens that were sent to it, "<site>.tokens" int64 [rows] says which; both
// are absent where a prompt has none. Tensors go to disk as they are made, so memory
// is that of a forward pass; the file appears under its name when all is written. Metadata: format
// "onset.capture.1", architecture, compute and the list of sites, and what `metadata` holds.
// `interventions` edit the passes; what is written is what they leave.
// Throws a usage error for a prompt without tokens.
CaptureSummary capture(const Model& model, const std::vector<std::vector<std::int64_t>>& prompts,
                       const SiteSet& sites, const std::filesystem::path& path, const Log& log = {},
                       const std::map<std::string, std::string>& metadata = {},
                       const Hooks* interventions = nullptr);

}  // namespace onset
