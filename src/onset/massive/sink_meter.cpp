#include "onset/massive/sink_meter.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "onset/model/attention.h"
#include "onset/model/hooks.h"

namespace onset {
namespace {

// Scores of a block of queries, over all heads: 16 MiB in float32.
constexpr std::int64_t scores_per_block = std::int64_t{1} << 22;

// Sums over the queries of one layer of one sequence, block by block.
class LayerSums {
 public:
  // `length`: T, counted from position 0.
  LayerSums(std::int64_t key, std::int64_t length, std::int64_t heads, std::int64_t window)
      : key_(key), half_(length / 2), length_(length), window_(window) {
    const auto doubles = at::TensorOptions().dtype(at::kDouble);
    probs_ = at::zeros({heads}, doubles);
    scores_ = at::zeros({heads}, doubles);
    self_ = at::zeros({heads}, doubles);
    mass_ = at::zeros({half_}, doubles);
  }

  // One behind the last query that sees the key.
  [[nodiscard]] std::int64_t end() const {
    return window_ > 0 ? std::min(length_, key_ + window_) : length_;
  }
  // Is there anything to learn from queries [begin, end)?
  [[nodiscard]] bool wants(std::int64_t begin, std::int64_t end_query) const {
    return end_query > half_ || (end_query > key_ && begin < end());
  }

  // Scores and probabilities [H, n, m] of the queries from `query` and the keys from `first_key`.
  void add(const at::Tensor& scores, const at::Tensor& probs, std::int64_t query,
           std::int64_t first_key) {
    const std::int64_t stop = query + probs.size(1);
    const std::int64_t from = std::max(query, key_ + 1);
    const std::int64_t to = std::min(stop, end());
    const std::int64_t column = key_ - first_key;
    if (from < to) {
      const auto rows = [&](const at::Tensor& all) {
        return all.narrow(1, from - query, to - from).select(2, column).sum(1, false, at::kDouble);
      };
      probs_ += rows(probs);
      scores_ += rows(scores);
      queries_ += to - from;
    }
    if (query <= key_ && key_ < stop) {
      self_ += probs.select(1, key_ - query).select(1, column);
      has_self_ = true;
    }
    const std::int64_t late = std::max(query, half_);
    const std::int64_t early = std::min(half_, first_key + probs.size(2));
    if (late < stop && first_key < early) {
      mass_.narrow(0, first_key, early - first_key) += probs.narrow(1, late - query, stop - late)
                                                           .narrow(2, 0, early - first_key)
                                                           .sum({0, 1}, false, at::kDouble);
    }
    late_queries_ += std::max<std::int64_t>(0, stop - late);
  }

  [[nodiscard]] LayerSinks result() const {
    const auto heads = static_cast<double>(probs_.size(0));
    LayerSinks sinks;
    sinks.queries = queries_;
    sinks.unseen = std::max<std::int64_t>(0, length_ - key_ - 1) - queries_;
    sinks.alpha = means(probs_, queries_);
    sinks.score = means(scores_, queries_);
    sinks.alpha_incl_self = means(probs_ + self_, queries_ + (has_self_ ? 1 : 0));
    sinks.key_mass = means(mass_ / heads, late_queries_);
    return sinks;
  }

 private:
  static std::vector<double> means(const at::Tensor& sums, std::int64_t count) {
    const auto size = static_cast<std::size_t>(sums.numel());
    std::vector<double> result(size, std::numeric_limits<double>::quiet_NaN());
    if (count == 0) return result;
    const at::Tensor mean = sums.div(static_cast<double>(count)).contiguous();
    std::copy_n(mean.const_data_ptr<double>(), size, result.begin());
    return result;
  }

  std::int64_t key_;
  std::int64_t half_;
  std::int64_t length_;
  std::int64_t window_;
  std::int64_t queries_ = 0;
  std::int64_t late_queries_ = 0;
  bool has_self_ = false;
  at::Tensor probs_;   // [H]
  at::Tensor scores_;  // [H]
  at::Tensor self_;    // [H]
  at::Tensor mass_;    // [T / 2]
};

}  // namespace

struct SinkMeter::Impl {
  SinkOptions options;
  double scale = 1.0;
  double softcap = 0.0;
  std::vector<std::int64_t> windows;  // [L]
  std::vector<SequenceSinks> sequences;
  std::size_t call_begin = 0;  // the first sequence of the current call
  at::Tensor waiting;          // q until k comes, scores until the probabilities come

  void see(const SiteContext& context, const at::Tensor& tensor) {
    switch (context.site.kind) {
      case SiteKind::q:
        begin_layer(context);
        waiting = tensor;
        break;
      case SiteKind::k:
        add_blocks(context, tensor);
        waiting.reset();
        break;
      case SiteKind::attn_scores:
        if (context.sequence == 0) begin_layer(context);
        waiting = tensor;
        break;
      default:
        add_explicit(context, tensor);
        waiting.reset();
        break;
    }
  }

  void begin_layer(const SiteContext& context) {
    if (context.site.layer != 0) return;
    call_begin = sequences.size();
    for (std::size_t s = 0; s < context.sequences.size(); ++s) {
      sequences.emplace_back().layers.resize(windows.size());
    }
  }

  [[nodiscard]] LayerSinks& at(std::size_t sequence, std::int64_t layer) {
    return sequences[call_begin + sequence].layers[static_cast<std::size_t>(layer)];
  }

  void add_blocks(const SiteContext& context, const at::Tensor& keys) {
    const std::int64_t window = windows[static_cast<std::size_t>(context.site.layer)];
    for (std::size_t s = 0; s < context.sequences.size(); ++s) {
      const SequenceRows& rows = context.sequences[s];
      if (rows.position != 0) {
        throw std::logic_error("a sink meter of blocks sees a sequence that continues a cache");
      }
      const at::Tensor q = waiting.narrow(0, rows.row, rows.count);               // [T, H, K]
      const at::Tensor k = keys.narrow(0, rows.row, rows.count).transpose(0, 1);  // [G, T, K]
      const std::int64_t heads = q.size(1);
      const std::int64_t block = std::max<std::int64_t>(1, scores_per_block / (heads * rows.count));
      LayerSums sums(options.key, rows.count, heads, window);
      for (std::int64_t begin = 0; begin < rows.count; begin += block) {
        const std::int64_t end = std::min(rows.count, begin + block);
        if (!sums.wants(begin, end)) continue;
        const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, begin - window + 1) : 0;
        const at::Tensor scores = attention_scores({.q = q.narrow(0, begin, end - begin),
                                                    .k = k.narrow(1, first, end - first),
                                                    .v = {},
                                                    .scale = scale,
                                                    .window = window,
                                                    .softcap = softcap});
        sums.add(scores, at::softmax(scores, -1), begin, first);
      }
      at(s, context.site.layer) = sums.result();
    }
  }

  void add_explicit(const SiteContext& context, const at::Tensor& probs) {
    const auto s = static_cast<std::size_t>(context.sequence);
    const SequenceRows& rows = context.sequences[s];
    LayerSums sums(options.key, rows.position + rows.count, probs.size(0),
                   windows[static_cast<std::size_t>(context.site.layer)]);
    sums.add(waiting, probs, rows.position, 0);
    at(s, context.site.layer) = sums.result();
  }
};

SinkMeter::SinkMeter(const ModelConfig& config, const SinkOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->scale = config.attention_scale;
  impl_->softcap = config.attention_softcap;
  for (const LayerConfig& layer : config.layers) impl_->windows.push_back(layer.sliding_window);
}

SinkMeter::~SinkMeter() = default;
SinkMeter::SinkMeter(SinkMeter&&) noexcept = default;
SinkMeter& SinkMeter::operator=(SinkMeter&&) noexcept = default;

void SinkMeter::observe(Hooks& hooks) {
  SiteSet sites(static_cast<std::int64_t>(impl_->windows.size()));
  const bool blocks = impl_->options.route == SinkRoute::blocks;
  sites.add_all_layers(blocks ? SiteKind::q : SiteKind::attn_scores);
  sites.add_all_layers(blocks ? SiteKind::k : SiteKind::attn_probs);
  hooks.observe(sites, [impl = impl_.get()](const SiteContext& context, const at::Tensor& tensor) {
    impl->see(context, tensor);
  });
}

const std::vector<SequenceSinks>& SinkMeter::sequences() const { return impl_->sequences; }

void SinkMeter::clear() { impl_->sequences.clear(); }

const SinkOptions& SinkMeter::options() const { return impl_->options; }

}  // namespace onset
