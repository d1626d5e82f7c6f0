// What becomes of a mask while its model is trained. Torch-free.
#pragma once

namespace onset {

enum class MaskUpdate {
  frozen,     // the dims of the mask as they were made
  recompute,  // chosen anew by the present gains whenever the weights change
};

}  // namespace onset
