#include "inspect_verify.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

namespace onset::app {
namespace {

// Elements in one piece of work: a multiple of every block size, 4 MB as float32.
constexpr std::int64_t piece_elements = std::int64_t{1} << 20;

struct Piece {
  std::size_t tensor;
  std::int64_t begin;
  std::int64_t count;
};

// Order-preserving map of floats to integers: unlike floats, integers have a minimum that compilers
// turn into vector instructions, and NaN sorts outside the infinities.
std::int32_t order_key(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

float from_key(std::int32_t key) { return std::bit_cast<float>(key ^ ((key >> 31) & 0x7fffffff)); }

void count_bad(std::span<const float> values, std::int64_t begin, TensorCheck& check) {
  check.min = std::numeric_limits<float>::infinity();
  check.max = -check.min;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (std::isfinite(value)) {
      check.min = std::min(check.min, value);
      check.max = std::max(check.max, value);
      continue;
    }
    if (!check.bad()) check.first_bad = begin + static_cast<std::int64_t>(i);
    ++(std::isnan(value) ? check.nan : check.infinite);
  }
}

TensorCheck judge(std::span<const float> values, std::int64_t begin) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::int32_t low = std::numeric_limits<std::int32_t>::max();
  std::int32_t high = std::numeric_limits<std::int32_t>::min();
  for (const float value : values) {
    const std::int32_t key = order_key(value);
    low = std::min(low, key);
    high = std::max(high, key);
  }
  TensorCheck check{.judged = true};
  if (low <= order_key(-infinity) || high >= order_key(infinity)) {
    count_bad(values, begin, check);
  } else {
    check.min = from_key(low);
    check.max = from_key(high);
  }
  return check;
}

void merge(TensorCheck& total, const TensorCheck& part) {
  if (part.bad() && (!total.bad() || part.first_bad < total.first_bad)) {
    total.first_bad = part.first_bad;
  }
  total.nan += part.nan;
  total.infinite += part.infinite;
  total.min = std::min(total.min, part.min);
  total.max = std::max(total.max, part.max);
}

class Verifier {
 public:
  explicit Verifier(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), left_(checkpoint.tensors().size()) {
    const float infinity = std::numeric_limits<float>::infinity();
    const auto& tensors = checkpoint.tensors();
    checks_.assign(tensors.size(), TensorCheck{.min = infinity, .max = -infinity});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      checks_[i].judged = converts_to_float32(tensors[i].dtype);
      total_bytes_ += static_cast<std::int64_t>(tensors[i].bytes);
      const std::int64_t elements = tensors[i].elements();
      for (std::int64_t begin = 0; begin < elements; begin += piece_elements) {
        pieces_.push_back({i, begin, std::min(piece_elements, elements - begin)});
        ++left_[i];
      }
    }
  }

  void work() {
    try {
      std::vector<float> values;
      for (std::size_t at = next_++; at < pieces_.size(); at = next_++) read(pieces_[at], values);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      next_ = pieces_.size();
    }
    const std::lock_guard lock(mutex_);
    ++finished_;
    changed_.notify_one();
  }

  void wait(int threads, const std::function<void(std::int64_t, std::int64_t)>& progress) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(50),
                              [&] { return finished_ == threads; })) {
      lock.unlock();
      progress(done_bytes_, total_bytes_);
      lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  [[nodiscard]] std::vector<TensorCheck> take_checks() { return std::move(checks_); }
  [[nodiscard]] std::int64_t total_bytes() const { return total_bytes_; }

 private:
  void read(const Piece& piece, std::vector<float>& values) {
    const TensorInfo& tensor = checkpoint_.tensors()[piece.tensor];
    const DTypeInfo& type = dtype_info(tensor.dtype);
    const auto offset =
        static_cast<std::size_t>(piece.begin / type.block_values * type.block_bytes);
    const auto bytes = static_cast<std::size_t>(piece.count / type.block_values * type.block_bytes);
    const auto data = checkpoint_.data(tensor).subspan(offset, bytes);
    TensorCheck check;
    if (converts_to_float32(tensor.dtype)) {
      values.resize(static_cast<std::size_t>(piece.count));
      to_float32(tensor.dtype, data, values);
      check = judge(values, piece.begin);
    } else {
      unsigned sum = 0;
      for (const std::byte byte : data) sum += std::to_integer<unsigned>(byte);
      unjudged_sum_ += sum;  // kept, so that the reading is not optimised away
    }
    done_bytes_ += static_cast<std::int64_t>(bytes);
    const std::lock_guard lock(mutex_);
    if (check.judged) merge(checks_[piece.tensor], check);
    if (--left_[piece.tensor] == 0) checkpoint_.drop(tensor);
  }

  const Checkpoint& checkpoint_;
  std::vector<Piece> pieces_;
  std::int64_t total_bytes_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> done_bytes_ = 0;
  std::atomic<unsigned> unjudged_sum_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<TensorCheck> checks_;
  std::vector<std::int64_t> left_;  // pieces of each tensor still to be read
  int finished_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

bool Verification::bad() const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorCheck& check) { return check.bad(); });
}

Verification verify_tensors(const Checkpoint& checkpoint, int threads,
                            const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  Verifier verifier(checkpoint);
  {
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) workers.emplace_back([&verifier] { verifier.work(); });
    verifier.wait(threads, progress);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {verifier.take_checks(), verifier.total_bytes(), elapsed.count()};
}

}  // namespace onset::app
