// The conversions with the instructions every x86-64 CPU has.
#include "onset/checkpoint/convert_impl.h"

namespace onset::convert {

Convert baseline(DType type) { return choose(type); }

}  // namespace onset::convert
