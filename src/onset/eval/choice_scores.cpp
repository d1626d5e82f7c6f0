#include "onset/eval/choice_scores.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "onset/model/decoder.h"

namespace onset {
namespace {

// Logits of a large vocabulary are the largest tensor of a pass: this many at a time.
constexpr std::int64_t logits_at_once = std::int64_t{16} << 20;

struct Target {
  std::int64_t row = 0;  // packed
  std::int64_t id = 0;
  ChoiceScore* score = nullptr;
};

// Adds to the scores what rows [n, D] say of their targets: `targets` ascend by `row`, which here
// counts in `rows`.
void add_scores(const Decoder& decoder, const at::Tensor& rows, std::span<const Target> targets,
                std::int64_t first_row) {
  // libtorch's own float32 log-softmax loses a little of long sums (log-probabilities come out
  // about 1e-5 high); scores are compared with those of harnesses that use it.
  const at::Tensor logprobs = at::log_softmax(decoder.logits_of(rows), 1);  // [n, V]
  std::vector<std::int64_t> at_row;
  std::vector<std::int64_t> ids;
  for (const Target& target : targets) {
    at_row.push_back(target.row - first_row);
    ids.push_back(target.id);
  }
  const at::Tensor chosen =
      logprobs.index({at::tensor(at_row, at::kLong), at::tensor(ids, at::kLong)}).to(at::kDouble);
  const at::Tensor likeliest = logprobs.argmax(1);
  const double* chosen_logprobs = chosen.const_data_ptr<double>();
  const std::int64_t* best_ids = likeliest.const_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i].score->loglik += chosen_logprobs[i];
    targets[i].score->greedy = targets[i].score->greedy && best_ids[at_row[i]] == ids[i];
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
  const at::Tensor needed = hidden.index_select(0, at::tensor(rows, at::kLong));
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
