#include "onset/eval/choice_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

ChoiceSequence sequence_of(std::size_t item, std::size_t choice, const Ids& context,
                           const Ids& continuation) {
  ChoiceSequence sequence{
      .item = item, .choice = choice, .input = context, .targets = continuation};
  sequence.input.insert(sequence.input.end(), continuation.begin(), continuation.end() - 1);
  return sequence;
}

ChoicePlan plan_of(const std::vector<std::vector<ChoiceSequence>>& items,
                   const PlanOptions& options) {
  std::vector<ChoiceTree> trees;
  for (const auto& sequences : items) {
    for (ChoiceTree& tree : choice_trees(sequences, options)) trees.push_back(std::move(tree));
  }
  return plan_choices(std::move(trees), options);
}

// What stands before each scored token, read back from the plan: the tree's rows as the forward
// pass lays them out.
std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<Ids, std::int64_t>>> read_back(
    const ChoicePlan& plan) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<Ids, std::int64_t>>> found;
  for (const ChoiceTree& tree : plan.trees) {
    std::vector<Ids> before;  // of each row, all tokens up to it
    for (std::size_t i = static_cast<std::size_t>(tree.prefix_length); i < tree.root.size(); ++i) {
      before.emplace_back(tree.root.begin(),
                          tree.root.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    for (const Ids& branch : tree.branches) {
      Ids so_far = tree.root;
      for (const std::int64_t id : branch) {
        so_far.push_back(id);
        before.push_back(so_far);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(before.size()), tree.rows());
    if (tree.prefix) {
      const Ids& prefix = plan.prefixes[*tree.prefix].ids;
      EXPECT_EQ(static_cast<std::int64_t>(prefix.size()), tree.prefix_length);
      EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), tree.root.begin()));
      EXPECT_GE(plan.prefixes[*tree.prefix].longest, tree.longest);
    }
    for (const ScoredToken& scored : tree.scored) {
      const auto& member = tree.choices[scored.choice];
      found[{member.item, member.choice}].emplace_back(
          before.at(static_cast<std::size_t>(scored.row)), scored.target);
    }
  }
  return found;
}

TEST(ChoicePlan, EveryTargetIsPredictedByTheRowOfAllThatStandsBeforeIt) {
  std::mt19937_64 random(3);
  const auto below = [&](std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const PlanOptions options{.batch_tokens = 1 + below(80), .share = below(4) > 0};
    Ids examples(static_cast<std::size_t>(below(40)));
    std::iota(examples.begin(), examples.end(), 100);
    std::vector<std::vector<ChoiceSequence>> items;
    for (std::int64_t i = below(12); i >= 0; --i) {
      Ids context = examples;
      if (below(5) == 0) context.resize(static_cast<std::size_t>(below(8)));
      for (std::int64_t n = below(6); n >= 0; --n) context.push_back(below(2));
      std::vector<ChoiceSequence> sequences;
      for (std::int64_t c = below(4); c >= 0; --c) {
        Ids continuation;
        for (std::int64_t n = below(4); n >= 0; --n) continuation.push_back(below(2));
        // Cut from the left, as an overlong one is.
        Ids own = context;
        if (below(6) == 0) own.erase(own.begin(), own.end() - 1);
        sequences.push_back(sequence_of(items.size(), sequences.size(), own, continuation));
      }
      items.push_back(std::move(sequences));
    }
    const ChoicePlan plan = plan_of(items, options);
    const auto found = read_back(plan);
    for (const auto& sequences : items) {
      for (const ChoiceSequence& sequence : sequences) {
        const auto& scored = found.at({sequence.item, sequence.choice});
        ASSERT_EQ(scored.size(), sequence.targets.size());
        const std::size_t first = sequence.input.size() - sequence.targets.size();
        for (std::size_t t = 0; t < scored.size(); ++t) {
          const Ids before(sequence.input.begin(),
                           sequence.input.begin() + static_cast<std::ptrdiff_t>(first + t) + 1);
          EXPECT_EQ(scored[t].first, before);
          EXPECT_EQ(scored[t].second, sequence.targets[t]);
        }
      }
    }
    // Every tree is in one batch, within the budget unless it is alone, and behind its prefix.
    std::vector<int> times(plan.trees.size());
    for (const ChoiceWave& wave : plan.waves) {
      for (const ChoiceBatch& batch : wave.batches) {
        std::int64_t rows = 0;
        for (const std::size_t t : batch.trees) {
          ++times[t];
          rows += plan.trees[t].rows();
          if (!plan.trees[t].prefix) continue;
          EXPECT_EQ(std::count(wave.prefixes.begin(), wave.prefixes.end(), *plan.trees[t].prefix),
                    1);
        }
        EXPECT_EQ(rows, batch.rows);
        EXPECT_TRUE(rows <= options.batch_tokens || batch.trees.size() == 1);
      }
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), static_cast<int>(times.size()));
    if (!options.share) {
      EXPECT_TRUE(plan.prefixes.empty());
      for (const ChoiceTree& tree : plan.trees) EXPECT_EQ(tree.choices.size(), 1U);
    }
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(ChoicePlan, SingleTokensAreOneSequenceAndExamplesAreComputedOnce) {
  Ids examples(50);
  std::iota(examples.begin(), examples.end(), 100);
  std::vector<std::vector<ChoiceSequence>> items;
  for (std::size_t i = 0; i < 6; ++i) {
    Ids context = examples;
    context.insert(context.end(), {static_cast<std::int64_t>(i), 9});
    std::vector<ChoiceSequence> sequences;
    for (std::size_t c = 0; c < 4; ++c) {
      sequences.push_back(sequence_of(i, c, context, {static_cast<std::int64_t>(200 + c)}));
    }
    items.push_back(std::move(sequences));
  }
  const ChoicePlan plan = plan_of(items, {});
  ASSERT_EQ(plan.trees.size(), 6U);
  ASSERT_EQ(plan.prefixes.size(), 1U);
  EXPECT_EQ(plan.prefixes[0].ids, examples);
  ASSERT_EQ(plan.waves.size(), 1U);
  EXPECT_EQ(plan.waves[0].batches.front().rows, 12);
  for (const ChoiceTree& tree : plan.trees) EXPECT_TRUE(tree.branches.empty());
}

TEST(ChoicePlan, DoesNotDependOnTheOrderOfItems) {
  std::vector<std::vector<ChoiceSequence>> items;
  for (std::size_t i = 0; i < 5; ++i) {
    const Ids context{1, 2, static_cast<std::int64_t>(i) % 3, 4};
    items.push_back({sequence_of(i, 0, context, {5, 6}), sequence_of(i, 1, context, {5, 7, 8})});
  }
  const PlanOptions options{.batch_tokens = 13};
  const ChoicePlan plan = plan_of(items, options);
  std::reverse(items.begin(), items.end());
  const ChoicePlan other = plan_of(items, options);
  ASSERT_EQ(plan.trees.size(), other.trees.size());
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    EXPECT_EQ(plan.trees[t].root, other.trees[t].root);
    EXPECT_EQ(plan.trees[t].branches, other.trees[t].branches);
  }
  ASSERT_EQ(plan.waves.size(), other.waves.size());
  for (std::size_t w = 0; w < plan.waves.size(); ++w) {
    ASSERT_EQ(plan.waves[w].batches.size(), other.waves[w].batches.size());
    for (std::size_t b = 0; b < plan.waves[w].batches.size(); ++b) {
      EXPECT_EQ(plan.waves[w].batches[b].trees, other.waves[w].batches[b].trees);
    }
  }
}

TEST(ChoicePlan, LengthsThatTurnOtherwiseAreNotShared) {
  const PlanOptions options{.may_share = [](std::int64_t length, std::int64_t other) {
    return (length > 5) == (other > 5);
  }};
  const Ids context{1, 2, 3, 4};
  const std::vector<ChoiceSequence> sequences{sequence_of(0, 0, context, {5}),
                                              sequence_of(0, 1, context, {5, 6, 7, 8})};
  EXPECT_EQ(choice_trees(sequences, options).size(), 2U);
  EXPECT_EQ(choice_trees(sequences, {}).size(), 1U);
}

}  // namespace
}  // namespace onset::testing
