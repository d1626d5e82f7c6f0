// Threads for connections, made as they are needed: a completion keeps one for as long as it runs.
// A connection beyond the most is refused and not kept waiting. Torch-free.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace onset {

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  // `overloaded` is told, on the thread that takes connections, before the task of one too many
  // runs there, and after it.
  ConnectionThreads(std::size_t most, std::function<void(bool)> overloaded)
      : most_(most), overloaded_(std::move(overloaded)) {}
  ~ConnectionThreads() override { shutdown(); }

  void enqueue(std::function<void()> task) override;
  // Lets the tasks run to their ends.
  void shutdown() override;

 private:
  void work();

  std::size_t most_;
  std::function<void(bool)> overloaded_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t open_ = 0;  // tasks that wait or run
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace onset
