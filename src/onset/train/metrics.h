// The numbers of a run as it goes: metrics.jsonl, one JSON object a line, and TensorBoard's event
// files, under the names that TRL and transformers give them. Torch-free.
//
//   loss, grad_norm, learning_rate, epoch, num_tokens, mean_token_accuracy, eval_loss
//   rewards/chosen, rewards/rejected, rewards/margins, rewards/accuracies, logps/chosen,
//   logps/rejected                                                                        (DPO)
//   reward, reward_std, frac_reward_zero_std, rewards/NAME/mean, rewards/NAME/std, kl,
//   clip_ratio/low_mean, clip_ratio/high_mean, clip_ratio/region_mean, completions/mean_length,
//   completions/min_length, completions/max_length, completions/clipped_ratio,
//   completions/mean_terminated_length                                                   (GRPO)
// onset's own: ratio_error (GRPO: the largest |ratio - 1|), frac_reward_abstained (GRPO: the share
// of completions without a reward), tokens_per_second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace onset {

using Metric = std::pair<std::string, double>;
using Metrics = std::vector<Metric>;  // in the order in which they are written

// Means over the steps between two lines of the log.
class MetricMeans {
 public:
  // Names keep the order in which they first came. NaN is left out: a reward that abstained.
  void add(const std::string& name, double value, double weight = 1);
  void add(const Metrics& metrics);
  [[nodiscard]] bool empty() const { return names_.empty(); }
  // The means so far; then begins anew.
  [[nodiscard]] Metrics take();

 private:
  struct Sum {
    double value = 0;
    double weight = 0;
  };
  std::vector<std::string> names_;
  std::map<std::string, Sum> sums_;
};

// Lengths of completions in tokens, and which ended by themselves: the completions/ metrics.
[[nodiscard]] Metrics completion_metrics(std::span<const std::int64_t> lengths,
                                         const std::vector<bool>& ended);

// Both files of a run. Every line is in the file when write() returns.
class MetricsWriter {
 public:
  // In `folder`, which is made where it is missing. A run that goes on after `resumed_step` updates
  // keeps the lines up to that step: what a process wrote after its last checkpoint happens again.
  // Otherwise the file begins anew. Throws resource errors as files do, and an input error where
  // the kept part is not metrics.
  // Without `events` there is metrics.jsonl alone.
  MetricsWriter(const std::filesystem::path& folder, std::optional<std::int64_t> resumed_step,
                bool events = true);
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;
  ~MetricsWriter();

  // {"step": .., NAME: ..}; numbers that are not finite become null, and are left out of the event
  // file.
  void write(std::int64_t step, const Metrics& metrics);

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

struct MetricsLine {
  std::int64_t step = 0;
  Metrics metrics;  // finite ones alone
};

// metrics.jsonl of a run's folder, or such a file itself. A torn last line (a process that was
// killed) is left out; anything else that is not such a line is an input error with its number.
[[nodiscard]] std::vector<MetricsLine> read_metrics(const std::filesystem::path& path);

}  // namespace onset
