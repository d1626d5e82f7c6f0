// An adapter on an open model, for those who do not train it. Torch-free.
#pragma once

#include <filesystem>

#include "onset/base/log.h"
#include "onset/model/model.h"

namespace onset {

// Reads the adapter of a folder in PEFT's layout and puts it on the model for good: copies of the
// model share it, and Model::adaptation() tells of it. Errors are those of read_peft() (peft.h).
void adapt(Model& model, const std::filesystem::path& folder, const Log& log = {});

}  // namespace onset
