// How the choices of many items are computed: which beginnings are computed once, and what goes
// into one forward pass. Torch-free.
//
// A choice is a sequence of tokens, its context and its continuation without the last token; the
// rows before each token of the continuation are scored. The sequences of one item share its
// context and whatever their continuations have in common (the root, from which branches go out);
// items with a long beginning in common (few-shot examples) share that (the prefix of a group).
// The plan depends on the sequences alone, not on the order of the items or on who computes which
// part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace onset {

struct ChoiceSequence {
  std::size_t item = 0;
  std::size_t choice = 0;
  std::vector<std::int64_t> input = {};    // context and continuation without its last token
  std::vector<std::int64_t> targets = {};  // the continuation; the last rows of `input` predict it
};

// One target of a choice: the row that predicts it, counted in the tree's own rows (the root
// without the group's prefix, then the branches one after the other).
struct ScoredToken {
  std::size_t choice = 0;  // index into ChoiceTree::choices
  std::int64_t row = 0;
  std::int64_t target = 0;
};

struct ChoiceTree {
  std::vector<std::int64_t> root = {};  // as a whole, the prefix included
  std::vector<std::vector<std::int64_t>> branches = {};
  struct Member {
    std::size_t item = 0;
    std::size_t choice = 0;
  };
  std::vector<Member> choices = {};
  std::vector<ScoredToken> scored = {};
  std::optional<std::size_t> prefix = std::nullopt;  // index into ChoicePlan::prefixes
  std::int64_t prefix_length = 0;
  std::int64_t longest = 0;  // tokens of its longest sequence

  // Rows of a forward pass, without the prefix.
  [[nodiscard]] std::int64_t rows() const;
};

// Trees that are computed in one forward pass.
struct ChoiceBatch {
  std::vector<std::size_t> trees = {};
  std::int64_t rows = 0;
};

// Prefixes that are held at a time, computed in one pass, and the batches that need them.
struct ChoiceWave {
  std::vector<std::size_t> prefixes = {};
  std::vector<ChoiceBatch> batches = {};
};

struct SharedPrefix {
  std::vector<std::int64_t> ids = {};
  std::int64_t longest = 0;  // tokens of the longest sequence that stands behind it
};

struct ChoicePlan {
  std::vector<ChoiceTree> trees = {};
  std::vector<SharedPrefix> prefixes = {};
  std::vector<ChoiceWave> waves = {};
};

struct PlanOptions {
  std::int64_t batch_tokens = 1024;
  bool share = true;  // false: every sequence is computed whole and by itself
  // Whether what was computed for a sequence of one length serves one of the other (same_rope of
  // generate/prefix_cache.h). Empty: always.
  std::function<bool(std::int64_t length, std::int64_t other)> may_share = {};
};

// The trees of one item's choices: one, where all of them begin alike. Inputs and targets are not
// empty, and an input has as many tokens as targets at least.
[[nodiscard]] std::vector<ChoiceTree> choice_trees(std::span<const ChoiceSequence> sequences,
                                                   const PlanOptions& options);
[[nodiscard]] ChoicePlan plan_choices(std::vector<ChoiceTree> trees, const PlanOptions& options);

}  // namespace onset
