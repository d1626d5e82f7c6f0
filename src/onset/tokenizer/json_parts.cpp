#include "onset/tokenizer/json_parts.h"

#include "onset/base/strings.h"

namespace onset {
namespace {

std::string type_of(const Json& part, const std::string& where) {
  require_input(part.is_object(), where, ": should be an object, is ", part.type_name());
  const auto type = find_string(part, "type", where);
  require_input(type.has_value(), where, ": has no \"type\"");
  return *type;
}

}  // namespace

const Json* part_of(const Json& object, const std::string& key, const std::string& where) {
  require_input(object.is_object(), where, ": should be an object, is ", object.type_name());
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Error unknown_part(const std::string& where, const std::string& type, std::string_view known) {
  return input_error(str_cat(where, ": type ", quote(type), " is not known; known are ", known));
}

void for_each_part(const Json& part, const std::string& list_key, const std::string& where,
                   const std::function<void(const Json&, const std::string& type)>& visit) {
  const std::string type = type_of(part, where);
  if (type != "Sequence") {
    visit(part, type);
    return;
  }
  const Json* list = part_of(part, list_key, where);
  require_input(list != nullptr && list->is_array(), where, ": a Sequence needs the array \"",
                list_key, "\"");
  for (const auto& member : *list) for_each_part(member, list_key, where, visit);
}

}  // namespace onset
