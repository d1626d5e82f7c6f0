#include "onset/tokenizer/pipeline_json.h"

#include <algorithm>
#include <functional>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

// A member that may be missing or null.
const Json* part_of(const Json& object, const std::string& key, const std::string& where) {
  require_input(object.is_object(), where, ": should be an object, is ", object.type_name());
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string type_of(const Json& part, const std::string& where) {
  require_input(part.is_object(), where, ": should be an object, is ", part.type_name());
  const auto type = find_string(part, "type", where);
  require_input(type.has_value(), where, ": has no \"type\"");
  return *type;
}

Error unknown_part(const std::string& where, const std::string& type, std::string_view known) {
  return input_error(str_cat(where, ": type ", quote(type), " is not known; known are ", known));
}

// Calls `visit` for `part`, or for each member of a Sequence, in order.
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

SplitBehavior behavior_of(const Json& part, const std::string& where) {
  const std::string name = find_string(part, "behavior", where).value_or("Isolated");
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  throw input_error(str_cat(where, ": behavior ", quote(name), " is not known"));
}

PretokenizerStep split_step(const Json& part, const std::string& where, std::string& name) {
  PretokenizerStep step;
  step.behavior = behavior_of(part, where);
  step.invert = find_bool(part, "invert", where).value_or(false);
  const Json* pattern = part_of(part, "pattern", where);
  require_input(pattern != nullptr, where, ": a Split needs a \"pattern\"");
  if (const auto literal = find_string(*pattern, "String", where)) {
    step.literal = *literal;
    name = "fixed string";
    return step;
  }
  const auto regex = find_string(*pattern, "Regex", where);
  require_input(regex.has_value(), where, ": the pattern should be a String or a Regex");
  const KnownPattern* known = find_pattern(*regex);
  const bool whole =
      step.behavior == SplitBehavior::isolated ||
      (step.behavior == SplitBehavior::removed && step.invert && known != nullptr && known->covers);
  name = known != nullptr ? known->name : "own regex";
  if (known != nullptr && whole) {
    step.known = known;
  } else {
    step.regex.emplace(*regex, where);
  }
  return step;
}

PretokenizerStep known_step(std::string_view name) {
  PretokenizerStep step;
  step.known = &pattern_named(name);
  return step;
}

void append_name(std::string& names, std::string_view name) {
  names += names.empty() ? "" : " + ";
  names += name;
}

void read_pretokenizer_part(const Json& part, const std::string& type, TokenizerData& data,
                            const std::string& where) {
  auto& steps = data.pretokenizer.steps;
  if (type == "Split") {
    std::string name;
    steps.push_back(split_step(part, where, name));
    append_name(data.pretokenizer_name, name);
  } else if (type == "Digits") {
    const bool single = find_bool(part, "individual_digits", where).value_or(false);
    if (single) {
      steps.push_back(known_step("digits"));
    } else {
      PretokenizerStep step;
      step.regex.emplace("\\p{N}+", where);
      steps.push_back(step);
    }
    append_name(data.pretokenizer_name, single ? "digits" : "numbers");
  } else if (type == "ByteLevel") {
    if (find_bool(part, "add_prefix_space", where).value_or(true)) {
      PretokenizerStep step;
      step.add_prefix_space = true;
      steps.push_back(step);
    }
    if (find_bool(part, "use_regex", where).value_or(true)) {
      steps.push_back(known_step("gpt2"));
      append_name(data.pretokenizer_name, "gpt2");
    }
  } else {
    throw unknown_part(where, type, "Split, Digits, ByteLevel and Sequence");
  }
}

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

void read_normalizer(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": normalizer";
  const Json* part = part_of(document, "normalizer", where);
  if (part == nullptr) return;
  for_each_part(*part, "normalizers", here, [&](const Json&, const std::string& type) {
    if (type != "NFC") throw unknown_part(here, type, "NFC and Sequence");
    data.nfc = true;
  });
}

void read_pretokenizer(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": pre_tokenizer";
  const Json* part = part_of(document, "pre_tokenizer", where);
  require_input(part != nullptr, here, ": is missing; only byte-level tokenizers are known");
  bool byte_level = false;
  for_each_part(*part, "pretokenizers", here, [&](const Json& member, const std::string& type) {
    require_input(!byte_level, here, ": ", quote(type), " behind ByteLevel is not known");
    read_pretokenizer_part(member, type, data, here);
    byte_level = type == "ByteLevel";
  });
  require_input(byte_level, here, ": has no ByteLevel; only byte-level tokenizers are known");
}

void read_decoder(const Json& document, const std::string& where) {
  const std::string here = where + ": decoder";
  const Json* part = part_of(document, "decoder", where);
  if (part == nullptr) return;
  for_each_part(*part, "decoders", here, [&](const Json&, const std::string& type) {
    if (type != "ByteLevel") throw unknown_part(here, type, "ByteLevel and Sequence");
  });
}

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
