// Over sequences: rates and means of what the meter measured.
#include <cmath>
#include <limits>

#include "onset/massive/sink_meter.h"

namespace onset {
namespace {

// The mean of what was added; NaN of nothing. NaN is not added: no query counted there.
class Mean {
 public:
  void add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  void add_above(double value, double threshold) {
    if (!std::isnan(value)) add(value > threshold ? 1.0 : 0.0);
  }
  [[nodiscard]] double value() const {
    return count_ > 0 ? sum_ / static_cast<double>(count_)
                      : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

SinkSummary summarise(std::span<const SequenceSinks> sequences, double threshold) {
  SinkSummary summary;
  summary.samples = static_cast<std::int64_t>(sequences.size());
  const std::size_t layers = sequences.empty() ? 0 : sequences.front().layers.size();
  Mean rate;
  Mean rate_incl_self;
  for (std::size_t l = 0; l < layers; ++l) {
    Mean layer_rate;
    Mean layer_alpha;
    Mean layer_score;
    summary.head_rate.emplace_back();
    summary.head_alpha.emplace_back();
    summary.head_score.emplace_back();
    for (std::size_t h = 0; h < sequences.front().layers[l].alpha.size(); ++h) {
      Mean head_rate;
      Mean head_alpha;
      Mean head_score;
      for (const SequenceSinks& sequence : sequences) {
        const LayerSinks& sinks = sequence.layers[l];
        for (Mean* mean : {&rate, &layer_rate, &head_rate}) {
          mean->add_above(sinks.alpha[h], threshold);
        }
        rate_incl_self.add_above(sinks.alpha_incl_self[h], threshold);
        for (Mean* mean : {&layer_alpha, &head_alpha}) mean->add(sinks.alpha[h]);
        for (Mean* mean : {&layer_score, &head_score}) mean->add(sinks.score[h]);
      }
      summary.head_rate.back().push_back(head_rate.value());
      summary.head_alpha.back().push_back(head_alpha.value());
      summary.head_score.back().push_back(head_score.value());
    }
    summary.layer_rate.push_back(layer_rate.value());
    summary.layer_alpha.push_back(layer_alpha.value());
    summary.layer_score.push_back(layer_score.value());
  }
  summary.sink_rate = rate.value();
  summary.sink_rate_incl_self = rate_incl_self.value();
  return summary;
}

}  // namespace onset
