// An answer as server-sent events: "data: {..}" a chunk, "data: [DONE]" at the end. Torch-free.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "onset/serve/answer.h"
#include "onset/serve/api_error.h"
#include "onset/serve/engine.h"

namespace onset {

// 504
[[nodiscard]] ApiError time_limit_error(std::chrono::seconds limit);

class EventStream {
 public:
  EventStream(std::shared_ptr<CompletionCall> call, const ServedModel& served,
              std::unique_ptr<Engine::Call> running, std::chrono::seconds limit);

  // The next events, none when nothing came for a while; false after the last. What fails on the
  // way is an event with "error".
  [[nodiscard]] bool next(std::string& piece);

 private:
  [[nodiscard]] bool advance(std::string& piece);

  std::shared_ptr<CompletionCall> call_;
  std::unique_ptr<Engine::Call> running_;
  Answer answer_;
  std::chrono::seconds limit_;
  std::chrono::steady_clock::time_point begun_;
  bool opened_ = false;
};

}  // namespace onset
