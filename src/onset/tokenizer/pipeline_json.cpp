#include "onset/tokenizer/pipeline_json.h"

#include "onset/base/strings.h"
#include "onset/tokenizer/json_parts.h"

namespace onset {
namespace {

TokenId checked_id(const Json& value, const TokenizerData& data, const std::string& where) {
  require_input(value.is_number_integer(), where, ": an id should be an integer, is ",
                value.type_name());
  const bool huge = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() > static_cast<std::uint64_t>(max_token_id);
  require_input(!huge && data.vocabulary.contains(value.get<std::int64_t>()), where, ": id ",
                value.dump(), " is not in the vocabulary");
  return value.get<TokenId>();
}

std::vector<TokenId> template_ids(const Json& processor, const std::string& name,
                                  const TokenizerData& data, const std::string& where) {
  const Json* table = part_of(processor, "special_tokens", where);
  const Json* entry = table == nullptr ? nullptr : part_of(*table, name, where);
  const Json* ids = entry == nullptr ? nullptr : part_of(*entry, "ids", where);
  require_input(ids != nullptr && ids->is_array(), where, ": special token \"", name,
                "\" has no ids");
  std::vector<TokenId> result;
  for (const auto& id : *ids) result.push_back(checked_id(id, data, where));
  return result;
}

void read_template(const Json& processor, TokenizerData& data, const std::string& where) {
  const Json* single = part_of(processor, "single", where);
  require_input(single != nullptr && single->is_array(), where,
                ": TemplateProcessing needs the array \"single\"");
  bool text_seen = false;
  std::vector<TokenId> before;
  for (const auto& item : *single) {
    if (part_of(item, "Sequence", where) != nullptr) {
      require_input(!text_seen, where, ": the template takes the text twice");
      text_seen = true;
      continue;
    }
    const Json* special = part_of(item, "SpecialToken", where);
    require_input(special != nullptr, where, ": a template holds SpecialToken and Sequence only");
    const auto name = find_string(*special, "id", where);
    require_input(name.has_value(), where, ": a SpecialToken has no \"id\"");
    const auto ids = template_ids(processor, *name, data, where);
    auto& side = text_seen ? data.suffix : before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  require_input(text_seen, where, ": the template leaves the text out");
  // A processor later in a Sequence works on what the earlier ones made.
  data.prefix.insert(data.prefix.begin(), before.begin(), before.end());
}

// RoBERTa's and BERT's: ["</s>", 2] behind the text, ["<s>", 0] before it.
void read_cls_and_sep(const Json& processor, TokenizerData& data, const std::string& where) {
  for (const auto& [key, ids] : {std::pair("cls", &data.prefix), std::pair("sep", &data.suffix)}) {
    const Json* pair = part_of(processor, key, where);
    require_input(pair != nullptr && pair->is_array() && pair->size() == 2, where, ": \"", key,
                  "\" should be [token, id]");
    ids->push_back(checked_id((*pair)[1], data, where));
  }
}

}  // namespace

void read_added_tokens(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": added_tokens";
  const Json* list = part_of(document, "added_tokens", where);
  if (list == nullptr) return;
  require_input(list->is_array(), here, ": should be an array, is ", list->type_name());
  for (const auto& item : *list) {
    require_input(item.is_object(), here, ": an entry should be an object, is ", item.type_name());
    const auto content = find_string(item, "content", here);
    const auto id = find_int(item, "id", here);
    require_input(content.has_value() && id.has_value(), here,
                  R"(: an entry lacks "content" or "id")");
    require_input(*id >= 0 && *id <= max_token_id, here, ": id ", *id, " is out of range");
    const auto flag = [&](const char* key) { return find_bool(item, key, here).value_or(false); };
    AddedToken token;
    token.content = *content;
    token.id = static_cast<TokenId>(*id);
    token.special = flag("special");
    token.single_word = flag("single_word");
    token.lstrip = flag("lstrip");
    token.rstrip = flag("rstrip");
    token.normalized = find_bool(item, "normalized", here).value_or(!token.special);
    add_token(data, token, here);
  }
}

void read_post_processor(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": post_processor";
  const Json* part = part_of(document, "post_processor", where);
  if (part == nullptr) return;
  for_each_part(*part, "processors", here, [&](const Json& member, const std::string& type) {
    if (type == "TemplateProcessing") {
      read_template(member, data, here);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      read_cls_and_sep(member, data, here);
    } else if (type != "ByteLevel") {
      throw unknown_part(here, type,
                         "TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel and "
                         "Sequence");
    }
  });
}

}  // namespace onset
