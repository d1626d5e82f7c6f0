#include "onset/base/strings.h"
#include "onset/tokenizer/json_parts.h"
#include "onset/tokenizer/pipeline_json.h"

namespace onset {
namespace {

using Kind = DecoderStep::Kind;

int count_of(const Json& part, const std::string& key, const std::string& where) {
  const std::int64_t count = find_int(part, key, where).value_or(0);
  require_input(count >= 0 && count <= INT32_MAX, where, ": \"", key, "\" is ", count);
  return static_cast<int>(count);
}

DecoderStep step_of(const Json& part, const std::string& type, const std::string& where) {
  DecoderStep step;
  if (type == "Replace") {
    step.kind = Kind::replace;
    const PartPattern pattern = pattern_of(part, where);
    step.pattern = pattern.text;
    if (pattern.regex) step.regex.emplace(*pattern.regex, where);
    const auto content = find_string(part, "content", where);
    require_input(content.has_value(), where, ": has no \"content\"");
    step.text = *content;
  } else if (type == "ByteFallback") {
    step.kind = Kind::byte_fallback;
  } else if (type == "Fuse") {
    step.kind = Kind::fuse;
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    step.pattern = find_string(part, "content", where).value_or(" ");
    step.left = count_of(part, "start", where);
    step.right = count_of(part, "stop", where);
  } else if (type == "Metaspace") {
    step.kind = Kind::metaspace;
    step.pattern = metaspace_of(part, where);
    step.drop_first = prefix_scheme_of(part, where) != PrefixScheme::never;
  } else {
    throw unknown_part(where, type,
                       "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence");
  }
  return step;
}

}  // namespace

void read_decoder(const Json& document, TokenizerData& data, const std::string& where) {
  const std::string here = where + ": decoder";
  const bool bytes = data.vocabulary.spelling() == Spelling::byte_level;
  data.decoder.kind = bytes ? Decoder::Kind::byte_level : Decoder::Kind::steps;
  const Json* part = part_of(document, "decoder", where);
  data.decoder.join_with_spaces = part == nullptr;
  if (part == nullptr) return;
  for_each_part(*part, "decoders", here, [&](const Json& member, const std::string& type) {
    const bool byte_level = type == "ByteLevel";
    if (!byte_level) data.decoder.steps.push_back(step_of(member, type, here));
    require_input(byte_level == bytes, here, ": ", quote(type),
                  bytes ? " beside the pre_tokenizer ByteLevel is not known"
                        : " without the pre_tokenizer ByteLevel is not known");
  });
}

}  // namespace onset
