#include "onset/eval/choice_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace onset {
namespace {

// A shared beginning must save more than it costs: a segment of its own in every attention.
constexpr std::int64_t least_prefix = 8;
constexpr std::int64_t least_saving = 32;

using Ids = std::vector<std::int64_t>;

std::int64_t length_of(const Ids& ids) { return static_cast<std::int64_t>(ids.size()); }

std::int64_t common_beginning(const Ids& a, const Ids& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

bool may_share(const PlanOptions& options, std::int64_t length, std::int64_t other) {
  return options.share && (!options.may_share || options.may_share(length, other));
}

// Of sequences of one item that share their first `shared` tokens.
ChoiceTree make_tree(std::span<const ChoiceSequence> sequences, std::int64_t shared) {
  ChoiceTree tree;
  const Ids& first = sequences.front().input;
  tree.root.assign(first.begin(), first.begin() + shared);
  std::int64_t branch_row = shared;
  for (const ChoiceSequence& sequence : sequences) {
    const std::size_t choice = tree.choices.size();
    tree.choices.push_back({sequence.item, sequence.choice});
    const std::int64_t length = length_of(sequence.input);
    tree.longest = std::max(tree.longest, length);
    const std::int64_t first_row = length - length_of(sequence.targets);
    for (std::int64_t t = 0; t < length_of(sequence.targets); ++t) {
      const std::int64_t position = first_row + t;
      const std::int64_t row = position < shared ? position : branch_row + position - shared;
      tree.scored.push_back({choice, row, sequence.targets[static_cast<std::size_t>(t)]});
    }
    if (length == shared) continue;
    tree.branches.emplace_back(sequence.input.begin() + shared, sequence.input.end());
    branch_row += length - shared;
  }
  return tree;
}

// How many tokens of the tree others may share: the row before the first target is its own.
std::int64_t shareable(const ChoiceTree& tree) {
  std::int64_t first = length_of(tree.root) - 1;
  for (const ScoredToken& scored : tree.scored) first = std::min(first, scored.row);
  return first;
}

struct Group {
  std::size_t end = 0;      // one behind its last tree
  std::int64_t prefix = 0;  // tokens, 0 for none
};

// The trees from `begin` on that together save most.
Group group_from(const std::vector<ChoiceTree>& trees, std::size_t begin,
                 const PlanOptions& options) {
  Group group{.end = begin + 1};
  std::int64_t saved = 0;
  std::int64_t shared = shareable(trees[begin]);
  for (std::size_t end = begin + 1; end < trees.size(); ++end) {
    shared = std::min(
        {shared, shareable(trees[end]), common_beginning(trees[end - 1].root, trees[end].root)});
    if (shared < least_prefix || !may_share(options, trees[begin].longest, trees[end].longest)) {
      break;
    }
    const std::int64_t now = static_cast<std::int64_t>(end - begin) * shared;
    if (now < saved) break;
    saved = now;
    group = {.end = end + 1, .prefix = shared};
  }
  return saved >= least_saving ? group : Group{.end = begin + 1};
}

// Trees lie in the order of their roots, so that those that begin alike follow one another.
void share_prefixes(ChoicePlan& plan, const PlanOptions& options) {
  for (std::size_t begin = 0; begin < plan.trees.size();) {
    const Group group = group_from(plan.trees, begin, options);
    if (group.prefix > 0) {
      const Ids& root = plan.trees[begin].root;
      SharedPrefix prefix{.ids = {root.begin(), root.begin() + group.prefix}};
      for (std::size_t t = begin; t < group.end; ++t) {
        ChoiceTree& tree = plan.trees[t];
        tree.prefix = plan.prefixes.size();
        tree.prefix_length = group.prefix;
        for (ScoredToken& scored : tree.scored) scored.row -= group.prefix;
        prefix.longest = std::max(prefix.longest, tree.longest);
      }
      plan.prefixes.push_back(std::move(prefix));
    }
    begin = group.end;
  }
}

void divide_into_waves(ChoicePlan& plan, std::int64_t batch_tokens) {
  std::int64_t held = 0;  // tokens of the wave's prefixes
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    const ChoiceTree& tree = plan.trees[t];
    const bool known = !plan.waves.empty() && tree.prefix && !plan.waves.back().prefixes.empty() &&
                       plan.waves.back().prefixes.back() == *tree.prefix;
    const std::int64_t more = known ? 0 : tree.prefix_length;
    if (plan.waves.empty() || (held > 0 && more > 0 && held + more > batch_tokens)) {
      plan.waves.emplace_back();
      held = 0;
    }
    ChoiceWave& wave = plan.waves.back();
    if (more > 0) wave.prefixes.push_back(*tree.prefix);
    held += more;
    if (wave.batches.empty() || wave.batches.back().rows + tree.rows() > batch_tokens) {
      wave.batches.emplace_back();
    }
    wave.batches.back().trees.push_back(t);
    wave.batches.back().rows += tree.rows();
  }
}

}  // namespace

std::int64_t ChoiceTree::rows() const {
  std::int64_t sum = length_of(root) - prefix_length;
  for (const Ids& branch : branches) sum += length_of(branch);
  return sum;
}

std::vector<ChoiceTree> choice_trees(std::span<const ChoiceSequence> sequences,
                                     const PlanOptions& options) {
  std::vector<ChoiceTree> trees;
  for (std::size_t begin = 0; begin < sequences.size();) {
    std::int64_t shared = length_of(sequences[begin].input);
    std::size_t end = begin + 1;
    for (; end < sequences.size(); ++end) {
      const std::int64_t common =
          std::min(shared, common_beginning(sequences[begin].input, sequences[end].input));
      if (common == 0 ||
          !may_share(options, length_of(sequences[begin].input), length_of(sequences[end].input))) {
        break;
      }
      shared = common;
    }
    trees.push_back(make_tree(sequences.subspan(begin, end - begin), shared));
    begin = end;
  }
  return trees;
}

ChoicePlan plan_choices(std::vector<ChoiceTree> trees, const PlanOptions& options) {
  ChoicePlan plan{.trees = std::move(trees)};
  std::stable_sort(plan.trees.begin(), plan.trees.end(), [](const auto& a, const auto& b) {
    return std::tie(a.root, a.branches) < std::tie(b.root, b.branches);
  });
  if (options.share) share_prefixes(plan, options);
  divide_into_waves(plan, options.batch_tokens);
  return plan;
}

}  // namespace onset
