#include "onset/eval/choice_scores.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "onset/model/decoder.h"
#include "onset/model/placement.h"

namespace onset {
namespace {

// Logits of a large vocabulary are the largest tensor of a pass: this many at a time.
constexpr std::int64_t logits_at_once = std::int64_t{16} << 20;

struct Target {
  std::int64_t row = 0;  // packed
  std::int64_t id = 0;
  ChoiceScore* score = nullptr;
};

// Whether value `id` is the largest of the row, the first of several.
template <typename Value>
bool is_first_of_largest(std::span<const Value> row, std::size_t id) {
  constexpr std::size_t part = 1024;  // of a row, looked at before the next is read
  const Value largest = row[id];
  for (std::size_t begin = 0; begin < row.size(); begin += part) {
    const std::size_t end = std::min(begin + part, row.size());
    int larger = 0;
    for (std::size_t i = begin; i < end; ++i) larger |= row[i] > largest ? 1 : 0;
    if (larger != 0) return false;
  }
  const auto own = row.begin() + static_cast<std::ptrdiff_t>(id);
  return std::find(row.begin(), own, largest) == own;
}

// Adds to the scores what log-probabilities [n, V] of rows [first_row, first_row + n) say of their
// targets.
template <typename Value>
void add_scores(const at::Tensor& logprobs, std::span<const Target> targets,
                std::int64_t first_row) {
  const auto size = static_cast<std::size_t>(logprobs.size(1));
  const Value* values = logprobs.const_data_ptr<Value>();
  struct Found {
    double logprob = 0;
    bool likeliest = false;
  };
  std::vector<Found> found(targets.size());
  at::parallel_for(0, std::ssize(targets), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Target& target = targets[static_cast<std::size_t>(i)];
      const std::span row(values + (target.row - first_row) * logprobs.size(1), size);
      const auto id = static_cast<std::size_t>(target.id);
      found[static_cast<std::size_t>(i)] = {.logprob = static_cast<double>(row[id]),
                                            .likeliest = is_first_of_largest(row, id)};
    }
  });
  for (std::size_t i = 0; i < targets.size(); ++i) {
    ChoiceScore& score = *targets[i].score;
    score.loglik += found[i].logprob;
    score.greedy = score.greedy && found[i].likeliest;
  }
}

// The same of rows [n, D] that leave the last block.
void add_scores(const Decoder& decoder, const at::Tensor& rows, std::span<const Target> targets,
                std::int64_t first_row) {
  // libtorch's own float32 log-softmax loses a little of long sums (log-probabilities come out
  // about 1e-5 high); scores are compared with those of harnesses that use it.
  const at::Tensor logprobs = at::log_softmax(decoder.logits_of(rows), 1).cpu();
  if (logprobs.scalar_type() == at::kDouble) {
    add_scores<double>(logprobs, targets, first_row);
  } else {
    add_scores<float>(logprobs, targets, first_row);
  }
}

// The rows of `hidden` that some target needs, a part at a time.
void score_targets(const Decoder& decoder, const at::Tensor& hidden, std::vector<Target> targets) {
  std::stable_sort(targets.begin(), targets.end(),
                   [](const Target& a, const Target& b) { return a.row < b.row; });
  std::vector<std::int64_t> rows;
  for (Target& target : targets) {
    if (rows.empty() || rows.back() != target.row) rows.push_back(target.row);
    target.row = static_cast<std::int64_t>(rows.size()) - 1;
  }
  const at::Tensor needed = hidden.index_select(0, indices(rows, hidden));
  const std::int64_t most = std::max<std::int64_t>(1, logits_at_once / decoder.config().vocabulary);
  std::size_t done = 0;
  for (std::int64_t begin = 0; begin < needed.size(0); begin += most) {
    const std::int64_t count = std::min(most, needed.size(0) - begin);
    std::size_t end = done;
    while (end < targets.size() && targets[end].row < begin + count) ++end;
    add_scores(decoder, needed.narrow(0, begin, count),
               std::span(targets).subspan(done, end - done), begin);
    done = end;
  }
}

}  // namespace

struct ChoiceScorer::Impl {
  const Model& model;
  const ChoicePlan& plan;
  std::shared_ptr<const Hooks> hooks;
  std::map<std::size_t, KvCache> prefixes = {};
};

ChoiceScorer::ChoiceScorer(const Model& model, const ChoicePlan& plan,
                           std::shared_ptr<const Hooks> hooks)
    : impl_(std::make_unique<Impl>(Impl{model, plan, std::move(hooks)})) {}

ChoiceScorer::~ChoiceScorer() = default;

void ChoiceScorer::prepare(const ChoiceWave& wave) {
  impl_->prefixes.clear();
  if (wave.prefixes.empty()) return;
  const c10::InferenceMode inference;
  const Decoder& decoder = impl_->model.decoder();
  std::vector<SequenceInput> batch;
  for (const std::size_t index : wave.prefixes) {
    const SharedPrefix& prefix = impl_->plan.prefixes[index];
    KvCache& cache = impl_->prefixes.emplace(index, decoder.new_cache()).first->second;
    batch.push_back({.ids = prefix.ids, .cache = &cache, .planned_length = prefix.longest});
  }
  static_cast<void>(decoder.forward(batch, LogitRows::none, impl_->hooks.get()));
}

std::vector<std::vector<ChoiceScore>> ChoiceScorer::score(const ChoiceBatch& batch) const {
  const c10::InferenceMode inference;
  const Decoder& decoder = impl_->model.decoder();
  std::vector<SequenceInput> sequences;
  std::vector<std::vector<ChoiceScore>> scores;
  std::vector<Target> targets;
  std::int64_t row = 0;
  for (const std::size_t index : batch.trees) {
    const ChoiceTree& tree = impl_->plan.trees[index];
    SequenceInput root{.ids = {tree.root.begin() + tree.prefix_length, tree.root.end()},
                       .planned_length = tree.longest};
    if (tree.prefix) root.prefix = &impl_->prefixes.at(*tree.prefix);
    const std::size_t root_index = sequences.size();
    sequences.push_back(std::move(root));
    for (const auto& branch : tree.branches) {
      sequences.push_back({.ids = branch, .planned_length = tree.longest, .behind = root_index});
    }
    scores.emplace_back(tree.choices.size());
    for (const ScoredToken& scored : tree.scored) {
      targets.push_back(
          {.row = row + scored.row, .id = scored.target, .score = &scores.back()[scored.choice]});
    }
    row += tree.rows();
  }
  const ForwardResult result = decoder.forward(sequences, LogitRows::none, impl_->hooks.get());
  score_targets(decoder, result.hidden, std::move(targets));
  return scores;
}

}  // namespace onset
