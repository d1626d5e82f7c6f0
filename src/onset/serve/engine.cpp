#include "onset/serve/engine.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/processor_share.h"
#include "onset/model/runtime.h"
#include "onset/serve/api_error.h"

namespace onset {

struct Engine::Call::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<EngineUpdate> updates;
  std::function<void()> on_end;           // gives the call's places back
  std::int64_t samples = 0;               // asked for
  std::int64_t left = 0;                  // not ended
  std::exception_ptr failure;             // what ended the call before its time
  std::vector<Generator::RequestId> ids;  // the engine's thread alone

  void push(EngineUpdate update) {
    const std::lock_guard lock(mutex);
    const bool ends_sample = update.update.finish.has_value() && left > 0;
    updates.push_back(std::move(update));
    if (ends_sample) set_left(left - 1);
    changed.notify_all();
  }
  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex);
    if (left == 0) return;
    failure = error;
    set_left(0);
    changed.notify_all();
  }
  void abandon() {
    const std::lock_guard lock(mutex);
    if (left > 0) set_left(0);
  }
  // With the lock. The places are free before the client can know that its call is done.
  void set_left(std::int64_t count) {
    left = count;
    if (left == 0) on_end();
  }
  [[nodiscard]] bool has_ended() {
    const std::lock_guard lock(mutex);
    return left == 0;
  }
};

struct Engine::Impl {
  Impl(const Model& model, const Tokenizer* tokenizer, const EngineOptions& options)
      : generator(model, tokenizer, options.generator), thread([this] { loop(); }) {}

  using Task = std::function<void()>;

  // False when the engine has stopped.
  bool post(Task task) {
    const std::lock_guard lock(mutex);
    if (stopping) return false;
    tasks.push_back(std::move(task));
    wake.notify_all();
    return true;
  }

  void loop() {
    bool busy = false;
    for (;;) {
      std::deque<Task> taken;
      {
        std::unique_lock lock(mutex);
        if (!busy) wake.wait(lock, [this] { return stopping || !tasks.empty(); });
        taken.swap(tasks);
      }
      // Somebody waits for each of them, so those that are left at the end are run too.
      for (auto& task : taken) task();
      if (is_stopping()) break;
      busy = step();
      forget_ended();
      const std::lock_guard lock(mutex);
      counts = generator.counts();
    }
    run_last_tasks();
    end_all(std::make_exception_ptr(
        ApiError("the server is stopping", {.status = 503, .type = "server_error"})));
  }

  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  // What was posted before stop(); nothing is posted after it.
  void run_last_tasks() {
    std::deque<Task> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(tasks);
    }
    for (auto& task : taken) task();
  }

  // Whether there is more to do.
  bool step() {
    try {
      share.begin();
      const bool any = generator.step();
      share.end();
      // Waiting threads spin, which is faster unless other processes need the processors.
      if (spins && share.is_short()) {
        spin_briefly();
        spins = false;
      }
      return any;
    } catch (...) {
      end_all(std::make_exception_ptr(current_api_error()));
      return true;
    }
  }

  void submit(const std::shared_ptr<Call::State>& state, std::vector<GenerationRequest>& requests) {
    try {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        state->ids.push_back(
            generator.submit(std::move(requests[i]), [state, i](const GenerationUpdate& update) {
              state->push({i, update});
            }));
      }
    } catch (...) {
      cancel(*state);
      throw;
    }
    live.insert(state);
  }

  void cancel(Call::State& state) {
    for (const auto id : state.ids) generator.cancel(id);
    state.ids.clear();
  }

  void end_all(const std::exception_ptr& error) {
    for (const auto& state : live) {
      state->fail(error);
      cancel(*state);
    }
    forget_ended();
  }

  void forget_ended() {
    for (auto it = live.begin(); it != live.end();) {
      it = (*it)->has_ended() ? live.erase(it) : std::next(it);
    }
  }

  void release(std::int64_t samples) {
    const std::lock_guard lock(mutex);
    taken_samples -= samples;
    --calls;
  }

  Generator generator;
  ProcessorShare share{threads()};
  bool spins = true;
  std::set<std::shared_ptr<Call::State>> live;  // the engine's thread alone
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<Task> tasks;
  bool stopping = false;
  bool refusing = false;
  std::int64_t taken_samples = 0;  // of accepted calls
  std::int64_t calls = 0;
  GeneratorCounts counts;
  std::thread thread;
};

Engine::Call::Call(Engine& engine) : engine_(engine), state_(std::make_shared<State>()) {}

Engine::Call::~Call() {
  if (state_->has_ended()) return;
  state_->abandon();
  engine_.impl_->post([impl = engine_.impl_.get(), state = state_] { impl->cancel(*state); });
}

std::optional<EngineUpdate> Engine::Call::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, patience,
                           [this] { return !state_->updates.empty() || state_->left == 0; });
  if (!state_->updates.empty()) {
    auto update = std::move(state_->updates.front());
    state_->updates.pop_front();
    return update;
  }
  if (state_->failure) std::rethrow_exception(state_->failure);
  return std::nullopt;
}

bool Engine::Call::is_done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->left == 0 && state_->updates.empty() && !state_->failure;
}

Engine::Engine(const Model& model, const Tokenizer* tokenizer, const EngineOptions& options)
    : options_(options), impl_(std::make_unique<Impl>(model, tokenizer, options)) {}

Engine::~Engine() { stop(); }

std::unique_ptr<Engine::Call> Engine::start(std::vector<GenerationRequest> requests) {
  auto call = std::make_unique<Call>(*this);
  auto& state = *call->state_;
  const std::int64_t places = options_.generator.max_rows + options_.queue;
  for (const auto& request : requests) {
    if (request.samples > places) {
      throw bad_field("n", str_cat("n: ", request.samples, " answers are more than the ", places,
                                   " that this server generates or lets wait at a time"));
    }
    state.samples += request.samples;
  }
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->refusing || impl_->stopping) {
      throw ApiError("the server is stopping",
                     {.status = 503, .type = "server_error", .code = "stopping", .retry_after = 5});
    }
    // A call of many prompts may be larger than the queue: it is the next ones that are refused.
    if (impl_->taken_samples >= places) {
      throw ApiError(
          str_cat("the server is busy: ", impl_->taken_samples,
                  " answers are being generated or wait; try again later"),
          {.status = 429, .type = "rate_limit_error", .code = "queue_full", .retry_after = 1});
    }
    impl_->taken_samples += state.samples;
    ++impl_->calls;
  }
  state.left = state.samples;
  state.on_end = [impl = impl_.get(), samples = state.samples] { impl->release(samples); };
  try {
    run([&] { impl_->submit(call->state_, requests); });
  } catch (...) {
    state.abandon();
    throw;
  }
  return call;
}

void Engine::run(const std::function<void()>& job) {
  std::promise<void> done;
  const bool posted = impl_->post([&] {
    try {
      job();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  if (!posted) {
    throw ApiError("the server is stopping", {.status = 503, .type = "server_error"});
  }
  done.get_future().get();
}

void Engine::refuse_calls() {
  const std::lock_guard lock(impl_->mutex);
  impl_->refusing = true;
}

std::int64_t Engine::running_calls() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->calls;
}

void Engine::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->wake.notify_all();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
}

GeneratorCounts Engine::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

}  // namespace onset
