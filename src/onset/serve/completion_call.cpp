// Reading POST /v1/completions.
#include "onset/base/error.h"
#include "onset/model/model.h"
#include "onset/serve/api_error.h"
#include "onset/serve/calls.h"

namespace onset {
namespace {

constexpr std::int64_t default_max_tokens = 16;  // OpenAI's
constexpr std::size_t most_prompts = 2048;

std::string text_of(const std::vector<std::int64_t>& ids, const ServedModel& served) {
  std::vector<TokenId> known;
  for (const auto id : ids) {
    if (id < served.tokenizer.vocabulary_size()) known.push_back(static_cast<TokenId>(id));
  }
  return served.tokenizer.decode(known);
}

class Prompts {
 public:
  Prompts(CompletionCall& call, const ServedModel& served) : call_(call), served_(served) {}

  void read(const Json& prompt) {
    const bool is_list = prompt.is_array() && !prompt.empty() &&
                         (prompt.front().is_string() || prompt.front().is_array());
    if (!is_list) {
      add(prompt);
      return;
    }
    if (prompt.size() > most_prompts) {
      throw bad_field("prompt", str_cat("prompt: has ", prompt.size(), " prompts, at most ",
                                        most_prompts, " in one request"));
    }
    for (const auto& item : prompt) add(item);
  }

 private:
  void add(const Json& prompt) {
    GenerationRequest request = call_.fields.request;
    request.number = call_.requests.size();
    if (prompt.is_string()) {
      call_.prompt_texts.push_back(prompt.get<std::string>());
      request.ids = encode_raw(served_, call_.prompt_texts.back());
    } else if (prompt.is_array()) {
      request.ids = read_ids(prompt, served_, "prompt");
      call_.prompt_texts.push_back(text_of(request.ids, served_));
    } else {
      throw bad_field(
          "prompt",
          str_cat("prompt: should be a string, ids, or an array of these, is ", kind_of(prompt)));
    }
    check_prompt(served_, request, "prompt");
    call_.requests.push_back(std::move(request));
  }

  CompletionCall& call_;
  const ServedModel& served_;
};

}  // namespace

std::vector<std::int64_t> read_ids(const Json& array, const ServedModel& served,
                                   const std::string& param) {
  if (!array.is_array()) {
    throw bad_field(param,
                    str_cat(param, ": should be an array of token ids, is ", kind_of(array)));
  }
  std::vector<std::int64_t> ids;
  ids.reserve(array.size());
  const auto vocabulary = served.model.config().vocabulary;
  for (const auto& item : array) {
    const bool known = item.is_number_integer() && item >= 0 && item < vocabulary;
    if (!known) {
      throw bad_field(param, str_cat(param, ": ", item.is_number() ? item.dump() : kind_of(item),
                                     " is no token of the model (0 to ", vocabulary - 1, ")"));
    }
    ids.push_back(item.get<std::int64_t>());
  }
  return ids;
}

CompletionCall read_completion(const Json& body, const ServedModel& served, MaskChooser& masks) {
  Fields fields(body, "");
  CompletionCall call;
  call.fields = read_generation_fields(fields, served, masks);
  auto& request = call.fields.request;
  request.max_new_tokens = fields.integer("max_tokens", 0).value_or(default_max_tokens);
  call.echo = fields.boolean("echo").value_or(false);
  if (const auto count = fields.integer("logprobs", 0, most_logprobs)) {
    request.logprobs = true;
    request.top_logprobs = *count;
    request.prompt_logprobs = call.echo;
  }
  if (const auto best = fields.integer("best_of", 1); best && *best > request.samples) {
    throw unsupported_field("best_of", "best_of: more than n is not supported: ask for n answers");
  }
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    throw unsupported_field("suffix", "suffix: filling in is not supported");
  }
  const Json* prompt = fields.find("prompt");
  if (fields.find("messages") != nullptr) {
    throw bad_field("messages", "messages: are for /v1/chat/completions; here give prompt");
  }
  fields.refuse_others();
  if (prompt == nullptr) throw bad_field("prompt", "prompt: is missing");
  Prompts(call, served).read(*prompt);
  return call;
}

}  // namespace onset
