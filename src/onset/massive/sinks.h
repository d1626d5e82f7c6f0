// Attention sinks: which heads give one key, usually the first token, far more of their attention
// than their share (Xiao et al. 2309.17453; the measure is Gu et al.'s, 2410.10781). Formulas:
// docs/sinks.md. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/sink_meter.h"

namespace onset {

class Model;

// Over all samples, one layer: which key of the first half of a sample the queries of the second
// half attend to most, mean over queries, heads and samples.
struct MostAttended {
  std::int64_t key = 0;
  double mass = 0;
};

struct SinksResult {
  SinkOptions options;
  std::vector<SequenceSinks> samples;
  SinkSummary summary;
  // [L]; nothing where no query of the second half sees the first half, or samples differ in length
  std::vector<std::optional<MostAttended>> most_attended;
  // [L] What alpha would be if each query attended alike to all keys it sees, mean over samples;
  // NaN where no query sees the key. A window's early queries have few keys, so it is larger there.
  std::vector<double> uniform_alpha;
  // [L] max |x| of the token at options.key after the layer, mean over samples: where its state is
  // massive.
  std::vector<double> key_max_abs;
};

// Runs the samples through the blocks and measures. `interventions`: what edits the passes (its
// observers are not called); with interventions at attn_scores or attn_probs take
// SinkRoute::explicit_softmax. Throws a usage error for no sample, a sample without a query after
// options.key, or a threshold outside 0 to 1, and an input error where attention is not finite.
[[nodiscard]] SinksResult measure_sinks(const Model& model,
                                        std::span<const std::vector<std::int64_t>> samples,
                                        const SinkOptions& options, const Log& log = {},
                                        const Hooks* interventions = nullptr);

// Non-overlapping windows of `length` tokens in their order, at most `most` of them (0: all); with
// `first`, each begins with that token (BOS), which counts, unless its text begins with it already.
// The rest of the text that fills no window is left out. Throws a usage error for a length below 2.
[[nodiscard]] std::vector<std::vector<std::int64_t>> cut_samples(std::span<const std::int64_t> ids,
                                                                 std::int64_t length,
                                                                 std::int64_t most,
                                                                 std::optional<std::int64_t> first);

// The token that occurs most often in the samples, the lowest id on ties: the natural choice for
// the control input of one repeated token. At least one sample.
[[nodiscard]] std::int64_t most_frequent_token(std::span<const std::vector<std::int64_t>> samples);

}  // namespace onset
