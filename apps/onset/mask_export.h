// onset mask export, a verb of mask.cpp.
#pragma once

#include "process.h"

namespace onset::app {

int run_mask_export(const Invocation& invocation);

}  // namespace onset::app
