// What a task asks of a model about one document. Torch-free.
//
// A task (tasks/*.toml) and its data become items; the engine answers them; graders judge the
// answers. Items hold text: the engine encodes them with the model's tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

enum class ItemKind {
  choice,      // log-likelihood of each of `choices` after `context`
  generation,  // text after `context`, ended by `stop` or `max_new_tokens`
  text,        // log-likelihood of the whole `context` in windows (perplexity)
};

struct Choice {
  std::string continuation;  // what is scored, with the space that sets it off (" A", " yes")
  std::string text;          // what its length is counted of (acc_norm, acc_bytes)
};

struct EvalItem {
  ItemKind kind = ItemKind::choice;
  std::int64_t doc = 0;      // the document's number in the task's data, from 0
  std::string subject = {};  // MMLU's subject; empty in tasks without
  std::string context = {};  // the prompt as the model sees it, few-shot examples included
  // `context` was written by a chat format: special tokens that the format writes count, those that
  // messages spell are text. `said`: the stretches of `context` that are messages; the choices are
  // too. `markers`: the format's own (tokenizer/chat.h).
  bool chat = false;
  std::vector<TextSpan> said = {};
  std::vector<std::string_view> markers = {};
  std::vector<Choice> choices = {};
  std::optional<std::int64_t> gold = std::nullopt;  // index of the right choice
  std::vector<std::string> stop = {};
  std::int64_t max_new_tokens = 256;
  std::string target = {};    // the right answer as the data give it ("#### 18", "\frac{1}{2}")
  OrderedJson document = {};  // the row of the data, for the samples file and the graders
};

}  // namespace onset
