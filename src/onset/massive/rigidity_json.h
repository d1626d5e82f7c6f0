// Rigidity as JSON: the fields that docs/json.md lists, for the verb and the report. Torch-free.
#pragma once

#include "onset/base/json.h"
#include "onset/massive/rigidity.h"

namespace onset {

// `sites`: one object a site.
[[nodiscard]] OrderedJson rigidity_sites_json(const RigidityResult& result);

}  // namespace onset
