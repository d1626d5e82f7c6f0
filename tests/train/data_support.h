// Files of training data that a test writes, and a tokenizer of bytes to read them with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "onset/train/data_options.h"
#include "onset/train/examples.h"
#include "support/support.h"
#include "tokenizer/small_tokenizer.h"

namespace onset::testing {

inline constexpr std::int64_t byte_turn = 257;
inline constexpr std::int64_t byte_eos = 258;

// The 256 bytes, "<|im_start|>" (256), "<|im_end|>" (257), "</s>" (258), which ends texts.
inline const Tokenizer& byte_tokenizer() {
  static const Tokenizer tokenizer = [] {
    Json json = small_tokenizer({});
    json["added_tokens"] =
        Json::array({added_token("<|im_start|>", 256), added_token("<|im_end|>", byte_turn),
                     added_token("</s>", byte_eos)});
    return open_json(json, {{"eos_token", "</s>"}, {"pad_token", "</s>"}});
  }();
  return tokenizer;
}

inline DataOptions byte_options() {
  DataOptions options;
  options.tokenizer = &byte_tokenizer();
  options.chat = chat_format("chatml");
  return options;
}

// Rows of ids alone.
inline DataOptions id_options(std::int64_t vocabulary) {
  DataOptions options;
  options.vocabulary = vocabulary;
  return options;
}

// The ids of a text of these bytes alone.
inline TokenIds byte_ids(std::string_view text) {
  TokenIds ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

inline TokenIds joined_ids(std::initializer_list<TokenIds> parts) {
  TokenIds all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace onset::testing
