// The one thread that runs the model: calls of many connections are put into one generator, and its
// updates are handed to each. Torch-free.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "onset/generate/generator.h"

namespace onset {

class Model;
class Tokenizer;

struct EngineOptions {
  GeneratorOptions generator = {};
  // Samples that may wait beside those that run (generator.max_rows); a call beyond is refused.
  std::int64_t queue = 64;
};

// What is new of one of a call's requests.
struct EngineUpdate {
  std::size_t request = 0;  // its place in the call
  GenerationUpdate update;
};

class Engine {
 public:
  // The generation requests of one connection. Destroying it cancels what still runs.
  class Call {
   public:
    explicit Call(Engine& engine);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The next update; nothing when none came in time, or all were given. Throws what ended the
    // call: an ApiError of status 500 or 503.
    [[nodiscard]] std::optional<EngineUpdate> next(std::chrono::milliseconds patience);
    // Every sample has ended and every update was given.
    [[nodiscard]] bool is_done() const;

   private:
    friend class Engine;
    struct State;
    Engine& engine_;
    std::shared_ptr<State> state_;
  };

  Engine(const Model& model, const Tokenizer* tokenizer, const EngineOptions& options);
  // As stop().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts the requests into the queue and waits until they are accepted. Throws an ApiError where
  // the queue is full (429) or the server is stopping (503), and what Generator::submit throws.
  [[nodiscard]] std::unique_ptr<Call> start(std::vector<GenerationRequest> requests);
  // Runs a job on the engine's thread, between two passes, and waits for it. Throws what it throws.
  void run(const std::function<void()>& job);

  // No call is accepted from now on.
  void refuse_calls();
  // Calls that are not done.
  [[nodiscard]] std::int64_t running_calls() const;
  // Ends the thread; calls that still run fail.
  void stop();

  [[nodiscard]] GeneratorCounts counts() const;  // of the last pass
  [[nodiscard]] const EngineOptions& options() const { return options_; }

 private:
  struct Impl;
  EngineOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onset
