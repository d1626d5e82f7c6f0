// What the readers of tokenizer.json's parts share.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/json.h"

namespace onset {

// A member that may be missing or null; null then.
[[nodiscard]] const Json* part_of(const Json& object, const std::string& key,
                                  const std::string& where);
[[nodiscard]] Error unknown_part(const std::string& where, const std::string& type,
                                 std::string_view known);
// Calls `visit` for `part`, or for each member of a Sequence, in order.
void for_each_part(const Json& part, const std::string& list_key, const std::string& where,
                   const std::function<void(const Json&, const std::string& type)>& visit);

}  // namespace onset
