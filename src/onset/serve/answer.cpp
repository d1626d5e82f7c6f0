#include "onset/serve/answer.h"

#include <array>
#include <charconv>
#include <ctime>
#include <random>

#include "onset/serve/api_error.h"

namespace onset {
namespace {

std::string random_id(const char* prefix) {
  std::random_device device;
  std::string id = prefix;
  for (int part = 0; part < 3; ++part) {
    std::array<char, 8> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), device(), 16).ptr;
    const std::string text(digits.data(), end);
    id += std::string(digits.size() - text.size(), '0') + text;
  }
  return id;
}

OrderedJson finish_json(const std::optional<FinishReason>& finish) {
  return finish ? OrderedJson(name_of(*finish)) : OrderedJson(nullptr);
}

}  // namespace

Answer::Answer(const CompletionCall& call, const ServedModel& served)
    : call_(call),
      served_(served),
      id_(random_id(call.chat ? "chatcmpl-" : "cmpl-")),
      created_(static_cast<std::int64_t>(std::time(nullptr))),
      prompts_(call.requests.size()) {
  const auto samples = call.fields.request.samples;
  for (std::size_t prompt = 0; prompt < call.requests.size(); ++prompt) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      choices_.push_back({{}, {}, CompletionLogprobs(served.tokenizer), false, std::nullopt});
    }
  }
}

std::size_t Answer::index_of(const EngineUpdate& update) const {
  return update.request * static_cast<std::size_t>(call_.fields.request.samples) +
         static_cast<std::size_t>(update.update.sample);
}

OrderedJson Answer::head(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", served_.id}};
}

OrderedJson Answer::onset() const {
  return {{"wemask", call_.fields.mask.summary}, {"seed", call_.fields.request.sampling.seed}};
}

OrderedJson Answer::usage() const {
  std::int64_t prompt_tokens = 0;
  for (const auto& request : call_.requests) {
    prompt_tokens += static_cast<std::int64_t>(request.ids.size());
  }
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens_},
          {"total_tokens", prompt_tokens + completion_tokens_}};
}

Answer::Choice& Answer::note(const EngineUpdate& update) {
  const auto& news = update.update;
  if (news.finish == FinishReason::failed) {
    throw ApiError(news.error.empty() ? "the request failed" : news.error,
                   {.status = 500, .type = "server_error", .code = "generation_failed"});
  }
  if (news.finish == FinishReason::cancelled) {
    throw ApiError("the request was cancelled",
                   {.status = 503, .type = "server_error", .code = "cancelled"});
  }
  completion_tokens_ += static_cast<std::int64_t>(news.tokens.size());
  if (!news.prompt.empty()) prompts_[update.request] = news.prompt;
  auto& choice = choices_[index_of(update)];
  if (!choice.started) {
    choice.started = true;
    const auto& text = call_.prompt_texts[update.request];
    if (call_.echo && call_.fields.request.logprobs) {
      choice.logprobs.add_prompt(prompts_[update.request], text);
    } else {
      choice.logprobs.skip(text);
    }
  }
  if (news.finish) choice.finish = news.finish;
  return choice;
}

OrderedJson Answer::logprobs_of(Choice& choice, const std::vector<GeneratedToken>& tokens) {
  const auto& request = call_.fields.request;
  if (!request.logprobs) return nullptr;
  if (call_.chat) return chat_logprobs_json(tokens, served_.tokenizer);
  choice.logprobs.add(tokens, !request.show_special);
  return choice.logprobs.take();
}

OrderedJson Answer::chunk(OrderedJson choice) const {
  OrderedJson json = head(call_.chat ? "chat.completion.chunk" : "text_completion");
  json["choices"] = OrderedJson::array({std::move(choice)});
  if (call_.fields.include_usage) json["usage"] = nullptr;
  return json;
}

std::vector<OrderedJson> Answer::opening() {
  std::vector<OrderedJson> chunks;
  const auto samples = static_cast<std::size_t>(call_.fields.request.samples);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (call_.chat) {
      chunks.push_back(chunk({{"index", i},
                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                              {"logprobs", nullptr},
                              {"finish_reason", nullptr}}));
    } else {
      chunks.push_back(chunk({{"index", i},
                              {"text", call_.echo ? call_.prompt_texts[i / samples] : ""},
                              {"logprobs", nullptr},
                              {"finish_reason", nullptr}}));
    }
  }
  chunks.front()["onset"] = onset();
  return chunks;
}

std::vector<OrderedJson> Answer::chunks(const EngineUpdate& update) {
  auto& choice = note(update);
  const auto& news = update.update;
  const auto index = index_of(update);
  std::vector<OrderedJson> chunks;
  const bool has_logprobs = call_.fields.request.logprobs && !news.tokens.empty();
  const bool has_prompt = !news.prompt.empty();
  if (!news.text.empty() || has_logprobs || has_prompt) {
    OrderedJson json{{"index", index}};
    if (call_.chat) {
      json["delta"] = {{"content", news.text}};
    } else {
      json["text"] = news.text;
    }
    json["logprobs"] = logprobs_of(choice, news.tokens);
    json["finish_reason"] = nullptr;
    chunks.push_back(chunk(json));
  }
  if (news.finish) {
    OrderedJson json{{"index", index}};
    if (call_.chat) {
      json["delta"] = OrderedJson::object();
    } else {
      json["text"] = "";
    }
    json["logprobs"] = nullptr;
    json["finish_reason"] = finish_json(news.finish);
    chunks.push_back(chunk(json));
  }
  return chunks;
}

std::optional<OrderedJson> Answer::usage_chunk() const {
  if (!call_.fields.include_usage) return std::nullopt;
  OrderedJson json = head(call_.chat ? "chat.completion.chunk" : "text_completion");
  json["choices"] = OrderedJson::array();
  json["usage"] = usage();
  return json;
}

void Answer::add(const EngineUpdate& update) {
  auto& choice = note(update);
  choice.text += update.update.text;
  const auto& request = call_.fields.request;
  if (!request.logprobs) return;
  const auto& tokens = update.update.tokens;
  if (call_.chat) {
    choice.tokens.insert(choice.tokens.end(), tokens.begin(), tokens.end());
  } else {
    choice.logprobs.add(tokens, !request.show_special);
  }
}

OrderedJson Answer::whole() {
  OrderedJson json = head(call_.chat ? "chat.completion" : "text_completion");
  json["choices"] = OrderedJson::array();
  const auto samples = static_cast<std::size_t>(call_.fields.request.samples);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    auto& choice = choices_[i];
    OrderedJson entry{{"index", i}};
    if (call_.chat) {
      entry["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    } else {
      entry["text"] = (call_.echo ? call_.prompt_texts[i / samples] : "") + choice.text;
    }
    entry["logprobs"] = logprobs_of(choice, choice.tokens);
    entry["finish_reason"] = finish_json(choice.finish);
    json["choices"].push_back(entry);
  }
  json["usage"] = usage();
  json["onset"] = onset();
  return json;
}

}  // namespace onset
