#include "onset/serve/event_stream.h"

#include <utility>

#include "onset/base/error.h"

namespace onset {
namespace {

// How long a connection waits before it looks whether its client is still there.
constexpr std::chrono::milliseconds patience{200};

void append_event(std::string& text, const OrderedJson& json) {
  text += "data: ";
  text += json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text += "\n\n";
}

}  // namespace

ApiError time_limit_error(std::chrono::seconds limit) {
  return {str_cat("the answer took longer than the server's limit of ", limit.count(), " s"),
          {.status = 504, .type = "timeout_error", .code = "time_limit"}};
}

EventStream::EventStream(std::shared_ptr<CompletionCall> call, const ServedModel& served,
                         std::unique_ptr<Engine::Call> running, std::chrono::seconds limit)
    : call_(std::move(call)),
      running_(std::move(running)),
      answer_(*call_, served),
      limit_(limit),
      begun_(std::chrono::steady_clock::now()) {}

bool EventStream::next(std::string& piece) {
  try {
    if (advance(piece)) return true;
  } catch (...) {
    append_event(piece, current_api_error().json());
  }
  running_.reset();
  piece += "data: [DONE]\n\n";
  return false;
}

bool EventStream::advance(std::string& piece) {
  if (!opened_) {
    opened_ = true;
    for (const auto& chunk : answer_.opening()) append_event(piece, chunk);
    return true;
  }
  if (limit_.count() > 0 && std::chrono::steady_clock::now() - begun_ > limit_) {
    throw time_limit_error(limit_);
  }
  // All that is there: a client that reads slowly gets larger pieces.
  auto update = running_->next(patience);
  while (update) {
    for (const auto& chunk : answer_.chunks(*update)) append_event(piece, chunk);
    update = running_->next(std::chrono::milliseconds(0));
  }
  if (!running_->is_done()) return true;
  if (const auto usage = answer_.usage_chunk()) append_event(piece, *usage);
  return false;
}

}  // namespace onset
