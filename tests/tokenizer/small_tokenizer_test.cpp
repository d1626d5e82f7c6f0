#include "tokenizer/small_tokenizer.h"

namespace onset::testing {
namespace {

void append_code(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

std::string spelled_byte(unsigned byte) {
  const auto printable = [](unsigned b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  std::string text;
  append_code(text, code);
  return text;
}

std::string spelled(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += spelled_byte(static_cast<unsigned char>(byte));
  return text;
}

Json small_tokenizer(const MergeList& merges) {
  Json vocab = Json::object();
  for (unsigned byte = 0; byte < 256; ++byte) vocab[spelled_byte(byte)] = byte;
  Json list = Json::array();
  for (const auto& [left, right] : merges) {
    list.push_back(spelled(left) + " " + spelled(right));
    const std::size_t next = vocab.size();
    vocab.emplace(spelled(left + right), next);
  }
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}},
          {"pre_tokenizer", byte_level},
          {"decoder", byte_level}};
}

Json added_token(const std::string& content, TokenId id) {
  return {{"content", content}, {"id", id},        {"special", true},    {"single_word", false},
          {"lstrip", false},    {"rstrip", false}, {"normalized", false}};
}

Json split_by(const std::string& regex) {
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", regex}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

Tokenizer open_json(const Json& tokenizer, const Json& config) {
  const TemporaryFolder folder;
  static_cast<void>(folder.write("tokenizer.json", tokenizer.dump()));
  if (!config.is_null()) static_cast<void>(folder.write("tokenizer_config.json", config.dump()));
  return Tokenizer::open(folder.path());
}

std::string error_of_json(const Json& tokenizer, const Json& config) {
  return error_of([&] { return open_json(tokenizer, config).vocabulary_size(); });
}

}  // namespace onset::testing
