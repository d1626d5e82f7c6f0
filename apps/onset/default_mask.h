// The mask that serve and chat use where none is given: what onset mask make would write.
#pragma once

#include <filesystem>

#include "onset/base/log.h"
#include "onset/model/model.h"
#include "onset/serve/mask_field.h"

namespace onset::app {

// Scans the built-in texts.
[[nodiscard]] FoundMassive find_massive(const std::filesystem::path& path, const Model& model,
                                        const Log& log);

}  // namespace onset::app
