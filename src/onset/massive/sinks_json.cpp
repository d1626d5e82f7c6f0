#include "onset/massive/sinks_json.h"

#include <utility>

namespace onset {
namespace {

// Attention is computed in float32: more digits would be noise.
OrderedJson number(double value) { return float_or_null(static_cast<float>(value)); }

OrderedJson numbers(const std::vector<double>& values) {
  OrderedJson row = OrderedJson::array();
  for (const double value : values) row.push_back(number(value));
  return row;
}

}  // namespace

OrderedJson sink_layers_json(const SinksResult& result, std::span<const std::int64_t> windows) {
  OrderedJson rows = OrderedJson::array();
  const auto& summary = result.summary;
  for (std::size_t l = 0; l < summary.layer_rate.size(); ++l) {
    std::int64_t queries = 0;
    std::int64_t unseen = 0;
    for (const auto& sample : result.samples) {
      queries += sample.layers[l].queries;
      unseen += sample.layers[l].unseen;
    }
    const auto& most = result.most_attended[l];
    rows.push_back({{"layer", l},
                    {"window", windows[l] > 0 ? OrderedJson(windows[l]) : OrderedJson(nullptr)},
                    {"queries", queries},
                    {"unseen", unseen},
                    {"sink_rate", number(summary.layer_rate[l])},
                    {"mean_alpha", number(summary.layer_alpha[l])},
                    {"mean_score", number(summary.layer_score[l])},
                    {"uniform_alpha", number(result.uniform_alpha[l])},
                    {"key_max_abs", number(result.key_max_abs[l])},
                    {"most_attended_key", most ? OrderedJson(most->key) : OrderedJson(nullptr)},
                    {"most_attended_mass", most ? number(most->mass) : OrderedJson(nullptr)},
                    {"head_sink_rate", numbers(summary.head_rate[l])},
                    {"head_alpha", numbers(summary.head_alpha[l])},
                    {"head_score", numbers(summary.head_score[l])}});
  }
  return rows;
}

OrderedJson sink_sample_json(const SequenceSinks& sample, double threshold) {
  OrderedJson alpha = OrderedJson::array();
  for (const auto& layer : sample.layers) alpha.push_back(numbers(layer.alpha));
  return {{"sink_rate", number(summarise({&sample, 1}, threshold).sink_rate)},
          {"alpha", std::move(alpha)}};
}

}  // namespace onset
