// What the configuration files beside a tokenizer say: tokenizer_config.json, config.json,
// generation_config.json, added_tokens.json and chat_template.jinja, all of them optional.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer_data.h"

namespace onset {

// Every function throws an input error that names the file.
class FolderConfig {
 public:
  explicit FolderConfig(const std::filesystem::path& folder);

  // A flag of tokenizer_config.json.
  [[nodiscard]] std::optional<bool> flag(const std::string& key) const;
  // A string of tokenizer_config.json.
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  // The tokens of added_tokens_decoder and added_tokens.json, for files of vocabularies that do not
  // hold them.
  [[nodiscard]] std::vector<AddedToken> added_tokens() const;
  // BOS, EOS and the chat template. Where a flag says something about either of BOS and EOS, the
  // flags replace what the tokenizer adds; `default_bos` holds where only EOS has one.
  void apply(TokenizerData& data, bool default_bos) const;

 private:
  std::filesystem::path folder_;
  std::string path_;
  Json tokenizer_config_;
};

}  // namespace onset
