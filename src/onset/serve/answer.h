// The answer to a call as JSON, whole or as the chunks of a stream. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/serve/calls.h"
#include "onset/serve/engine.h"
#include "onset/serve/logprobs_json.h"

namespace onset {

class Answer {
 public:
  // `call` must outlive it.
  Answer(const CompletionCall& call, const ServedModel& served);

  // What a stream says before anything is generated: the roles of a chat's choices, a prompt that
  // is given back, and which mask is used.
  [[nodiscard]] std::vector<OrderedJson> opening();
  // The chunks of one update. Throws an ApiError of status 500 where the request failed.
  [[nodiscard]] std::vector<OrderedJson> chunks(const EngineUpdate& update);
  // The last chunk, where stream_options asked for it.
  [[nodiscard]] std::optional<OrderedJson> usage_chunk() const;

  // In place of chunks: collects, for whole().
  void add(const EngineUpdate& update);
  [[nodiscard]] OrderedJson whole();

 private:
  struct Choice {
    std::string text;
    std::vector<GeneratedToken> tokens;  // of a chat with logprobs
    CompletionLogprobs logprobs;
    bool started = false;
    std::optional<FinishReason> finish;
  };

  [[nodiscard]] std::size_t index_of(const EngineUpdate& update) const;
  [[nodiscard]] OrderedJson head(const char* object) const;
  [[nodiscard]] OrderedJson chunk(OrderedJson choice) const;
  [[nodiscard]] OrderedJson usage() const;
  [[nodiscard]] OrderedJson onset() const;
  // Counts, and takes the prompt's log-probabilities. Throws where the request failed.
  Choice& note(const EngineUpdate& update);
  [[nodiscard]] OrderedJson logprobs_of(Choice& choice, const std::vector<GeneratedToken>& tokens);

  const CompletionCall& call_;
  const ServedModel& served_;
  std::string id_;
  std::int64_t created_;
  std::vector<Choice> choices_;
  // By prompt: its tokens with log-probabilities, kept until all its choices have begun.
  std::vector<std::vector<GeneratedToken>> prompts_;
  std::int64_t completion_tokens_ = 0;
};

}  // namespace onset
