#include "onset/eval/encoding.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/python_text.h"

namespace onset {
namespace {

std::optional<std::int64_t> chosen_bos(const SpecialPolicy& special, std::optional<bool> asked) {
  if (asked.value_or(false) && !special.bos) {
    throw usage_error("--bos yes: this model's tokenizer has no BOS token", "use --bos no or auto");
  }
  return asked.value_or(special.add_bos) && special.bos ? std::optional<std::int64_t>(*special.bos)
                                                        : std::nullopt;
}

// The stretches of the text that messages say, of the context's as far as it goes.
std::vector<TextSpan> said_in(const EvalItem& item, std::string_view text,
                              std::size_t context_size) {
  const std::size_t end = std::min(text.size(), context_size);
  std::vector<TextSpan> said;
  for (TextSpan span : item.said) {
    span.end = std::min(span.end, end);
    if (span.start < span.end) said.push_back(span);
  }
  if (context_size < text.size()) said.push_back({context_size, text.size()});
  return said;
}

}  // namespace

ItemEncoder::ItemEncoder(const Tokenizer& tokenizer, std::optional<bool> bos)
    : tokenizer_(tokenizer), bos_(chosen_bos(tokenizer.special(), bos)) {}

std::vector<std::int64_t> ItemEncoder::encode(std::string_view text, const EvalItem& item,
                                              std::size_t context_size) const {
  std::vector<TokenId> ids;
  if (item.chat) {
    const auto said = said_in(item, text, context_size);
    ids = tokenizer_.encode_literal(text, {said, item.markers});
  } else {
    ids = tokenizer_.encode(text);
  }
  std::vector<std::int64_t> result;
  result.reserve(ids.size() + 1);
  if (bos_ && !item.chat && (ids.empty() || ids.front() != *bos_)) result.push_back(*bos_);
  result.insert(result.end(), ids.begin(), ids.end());
  return result;
}

std::vector<TokenPair> ItemEncoder::pairs(const EvalItem& item) const {
  require_input(!item.choices.empty(), describe(item), " has no choices");
  const std::string given = valid_utf8(item.context);
  const std::string_view context = python_rstrip(given);
  const std::string_view spaces = std::string_view(given).substr(context.size());
  std::vector<std::int64_t> context_ids;
  if (!context.empty()) context_ids = encode(context, item, given.size());
  std::vector<TokenPair> pairs;
  for (const Choice& choice : item.choices) {
    TokenPair pair;
    if (context_ids.empty()) {
      pair = pair_without_context(item, choice);
    } else {
      const std::vector<std::int64_t> whole =
          encode(str_cat(context, spaces, choice.continuation), item, given.size());
      const std::size_t border = std::min(context_ids.size(), whole.size());
      pair.context = context_ids;
      pair.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(border), whole.end());
    }
    if (pair.continuation.empty()) {
      throw input_error(str_cat(describe(item), ": the choice ", quote(choice.continuation),
                                " has no token of its own behind its context"),
                        "a choice's text must not be empty, nor merge into the context's last "
                        "token: begin it with a space");
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

TokenPair ItemEncoder::pair_without_context(const EvalItem& item, const Choice& choice) const {
  const std::string text = item.context + choice.continuation;
  const std::vector<TokenId> ids = tokenizer_.encode(text);
  TokenPair pair{.context = {}, .continuation = {ids.begin(), ids.end()}};
  const SpecialPolicy& special = tokenizer_.special();
  std::optional<TokenId> first = special.bos;
  if (!first && !special.eos.empty()) first = special.eos.front();
  require_input(first.has_value(), describe(item),
                " has an empty context, and this model has neither a BOS nor an end token to put "
                "in its place");
  pair.context.push_back(*first);
  if (!pair.continuation.empty() && pair.continuation.front() == *first) {
    pair.continuation.erase(pair.continuation.begin());
  }
  return pair;
}

std::vector<std::int64_t> ItemEncoder::prompt(const EvalItem& item) const {
  std::vector<std::int64_t> ids = encode(item.context, item, item.context.size());
  require_input(!ids.empty(), describe(item), ": the prompt has no token");
  return ids;
}

std::vector<std::int64_t> ItemEncoder::text(const EvalItem& item) const {
  const std::vector<TokenId> ids = tokenizer_.encode(item.context);
  const bool begun = bos_ && !ids.empty() && ids.front() == *bos_;
  return {ids.begin() + (begun ? 1 : 0), ids.end()};
}

std::string describe(const EvalItem& item) {
  std::string name = str_cat("item ", item.doc);
  if (!item.subject.empty()) name += " (" + item.subject + ")";
  return name;
}

}  // namespace onset
