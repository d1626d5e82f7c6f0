#include "onset/serve/connection_threads.h"

#include <system_error>
#include <utility>

namespace onset {

void ConnectionThreads::enqueue(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  if (open_ >= most_) {
    lock.unlock();
    overloaded_(true);
    task();
    overloaded_(false);
    return;
  }
  ++open_;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system gives no further thread: those that are there take the task in turn.
      if (threads_.empty()) throw;
    }
  }
  wake_.notify_one();
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
    --open_;
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace onset
