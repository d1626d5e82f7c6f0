#include "chat_session.h"

#include <algorithm>
#include <utility>

#include "onset/base/error.h"
#include "text.h"

namespace onset::app {

ChatSession::ChatSession(const Tokenizer& tokenizer, ChatFormat format, Generator& generator,
                         Settings settings)
    : tokenizer_(tokenizer),
      format_(std::move(format)),
      generator_(generator),
      settings_(std::move(settings)) {}

std::vector<std::int64_t> ChatSession::prompt_ids() const {
  const auto chat = render_chat_text(format_, messages_);
  const auto ids = encode_chat(format_, tokenizer_, chat);
  std::vector<std::int64_t> result(ids.begin(), ids.end());
  const auto& special = tokenizer_.special();
  if (special.add_bos && special.bos && (result.empty() || result.front() != *special.bos)) {
    result.insert(result.begin(), *special.bos);
  }
  return result;
}

std::int64_t ChatSession::tokens() const {
  return messages_.empty() ? 0 : static_cast<std::int64_t>(prompt_ids().size());
}

GenerationRequest ChatSession::request(const std::vector<std::int64_t>& ids, bool masked) const {
  auto request = settings_.sampling.request(ids, settings_.seed);
  // Both answers draw the same numbers, and every turn others.
  request.number = static_cast<std::uint64_t>(turns_);
  if (masked) request.mask = mask_;
  return request;
}

std::vector<ChatAnswer> ChatSession::answer(const std::string& said, bool both,
                                            const OnText& on_text,
                                            const std::function<bool()>& stopped) {
  messages_.push_back({{"role", "user"}, {"content", valid_utf8(said)}});
  std::vector<ChatAnswer> answers;
  std::vector<Generator::RequestId> running;
  std::size_t left = 0;
  std::string failure;
  try {
    const auto ids = prompt_ids();
    const auto length = static_cast<std::int64_t>(ids.size());
    if (settings_.context > 0 && length >= settings_.context) {
      throw usage_error(str_cat("the conversation has ", length, " tokens now, and the context of ",
                                settings_.context, " leaves no room for an answer"),
                        "/reset begins a new one; what you said last is forgotten");
    }
    answers.resize(both ? 2 : 1);
    left = answers.size();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      answers[i].masked = both ? i == 1 : mask_on_;
      running.push_back(generator_.submit(
          request(ids, answers[i].masked), [&, i](const GenerationUpdate& update) {
            answers[i].text += update.text;
            answers[i].tokens += static_cast<std::int64_t>(update.tokens.size());
            if (!update.text.empty()) on_text(i, update.text);
            if (!update.finish) return;
            answers[i].finish = *update.finish;
            if (*update.finish == FinishReason::failed) failure = update.error;
            --left;
          }));
    }
    while (left > 0 && step()) {
      if (!stopped()) continue;
      for (const auto id : running) generator_.cancel(id);
    }
    if (!failure.empty()) throw input_error(failure);
  } catch (...) {
    for (const auto id : running) generator_.cancel(id);
    while (left > 0 && generator_.step()) {
    }
    messages_.erase(messages_.size() - 1);
    throw;
  }
  for (auto& answer : answers) {
    answer.context_full =
        answer.finish == FinishReason::length && answer.tokens < settings_.sampling.max_tokens;
  }
  const std::size_t kept = both && mask_on_ ? 1 : 0;
  answers[kept].kept = true;
  messages_.push_back({{"role", "assistant"}, {"content", answers[kept].text}});
  masked_answers_.push_back(answers[kept].masked);
  other_answer_.reset();
  if (both) {
    other_answer_ = answers[1 - kept].text;
    other_is_masked_ = answers[1 - kept].masked;
  }
  ++turns_;
  return answers;
}

bool ChatSession::step() {
  share_.begin();
  const bool any = generator_.step();
  share_.end();
  // Waiting threads spin, which is faster unless other processes need the processors.
  if (spins_ && share_.is_short()) {
    spin_briefly();
    spins_ = false;
  }
  return any;
}

std::optional<bool> ChatSession::take_other_answer() {
  if (!other_answer_) return std::nullopt;
  auto& content = messages_.back()["content"];
  std::string text = content.get<std::string>();
  content = *other_answer_;
  other_answer_ = std::move(text);
  masked_answers_.back() = other_is_masked_;
  return std::exchange(other_is_masked_, !other_is_masked_);
}

void ChatSession::reset() {
  const bool has_system = !messages_.empty() && messages_.front()["role"] == "system";
  messages_ = has_system ? OrderedJson::array({messages_.front()}) : OrderedJson::array();
  masked_answers_.clear();
  other_answer_.reset();
  turns_ = 0;
}

void ChatSession::set_system(const std::string& text) {
  const auto& roles = format_.roles;
  if (!text.empty() && std::find(roles.begin(), roles.end(), "system") == roles.end()) {
    throw usage_error(str_cat("chat format ", format_.name, " has no system turn"));
  }
  if (!messages_.empty() && messages_.front()["role"] == "system") messages_.erase(0);
  if (!text.empty()) {
    messages_.insert(messages_.begin(),
                     OrderedJson{{"role", "system"}, {"content", valid_utf8(text)}});
  }
}

}  // namespace onset::app
