// How much attention one key gets, per head: what `onset sinks` reports, and what experiments that
// edit the forward pass ask for beside it. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onset/model/config.h"

namespace onset {

class Hooks;

// How the meter gets at the probabilities. Both give the same numbers but for rounding.
enum class SinkRoute {
  // From q and k, a block of queries at a time: memory for a few million scores, whatever the
  // length, and the pass itself keeps its fused kernel. Sees what interventions up to `q` and `k`
  // did. For sequences without a cache.
  blocks,
  // From the pass's own attn_scores and attn_probs, [H, T, S] in memory: for interventions at these
  // two sites, and for sequences that continue a cache.
  explicit_softmax,
};

struct SinkOptions {
  std::int64_t key = 0;    // k, the position whose share of attention is measured
  double threshold = 0.3;  // a head is a sink when its alpha is above this (Gu et al. 2410.10781)
  SinkRoute route = SinkRoute::blocks;
};

// One layer of one sequence of T tokens. A query that does not see key k, beyond a sliding window,
// is left out of all means. Vectors have one entry a head; they hold NaN where no query counts.
struct LayerSinks {
  std::int64_t queries = 0;  // i > k that see key k
  std::int64_t unseen = 0;   // i > k that do not
  // alpha_k = mean over queries i > k of attn_probs[i, k].
  std::vector<double> alpha = {};
  // The same over i >= k, the query at k itself included (the form of Gu et al.).
  std::vector<double> alpha_incl_self = {};
  // Mean over queries i > k of attn_scores[i, k], before the softmax: no probability, any number.
  std::vector<double> score = {};
  // For keys j < T / 2 the mean of attn_probs[i, j] over queries i >= T / 2 and all heads.
  std::vector<double> key_mass = {};
};

struct SequenceSinks {
  std::vector<LayerSinks> layers;
};

// Over sequences, one sample each.
struct SinkSummary {
  std::int64_t samples = 0;
  // Share of (sample, layer, head) with alpha above the threshold; over the layers where a query
  // counts. NaN when there is none.
  double sink_rate = 0;
  double sink_rate_incl_self = 0;
  std::vector<double> layer_rate;               // [L]
  std::vector<double> layer_alpha;              // [L] mean alpha over samples and heads
  std::vector<double> layer_score;              // [L] mean score over samples and heads
  std::vector<std::vector<double>> head_rate;   // [L][H] share of samples
  std::vector<std::vector<double>> head_alpha;  // [L][H] mean over samples
  std::vector<std::vector<double>> head_score;  // [L][H] mean over samples
};

// All sequences have the same number of layers and heads.
[[nodiscard]] SinkSummary summarise(std::span<const SequenceSinks> sequences, double threshold);

// Listens to forward calls and keeps one SequenceSinks for each of their sequences.
//
//   SinkMeter meter(model.config());
//   Hooks hooks(model.config().layer_count());
//   hooks.intervene(...);
//   meter.observe(hooks);
//   model.decoder().forward(batch, LogitRows::none, &hooks);
//   const double rate = summarise(meter.sequences(), meter.options().threshold).sink_rate;
class SinkMeter {
 public:
  explicit SinkMeter(const ModelConfig& config, const SinkOptions& options = {});
  ~SinkMeter();
  SinkMeter(SinkMeter&&) noexcept;
  SinkMeter& operator=(SinkMeter&&) noexcept;

  // Adds the observers. The meter's content must live as long as the hooks are used; moving the
  // meter is allowed.
  void observe(Hooks& hooks);
  // In the order of the calls, and of the sequences in each. A call that threw leaves what it got.
  [[nodiscard]] const std::vector<SequenceSinks>& sequences() const;
  void clear();
  [[nodiscard]] const SinkOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onset
