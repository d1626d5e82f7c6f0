// One of the two answers that are compared: its tree, and what has been found out of it.
// Torch-free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onset/eval/exact_number.h"
#include "onset/eval/math_evaluate.h"
#include "onset/eval/math_token.h"
#include "onset/eval/math_tree.h"

namespace onset {

// Where both sides are evaluated: at fixed points, some with negative and some with whole values.
inline constexpr std::size_t math_points = 8;
[[nodiscard]] std::array<MathPoint, math_points> make_math_points(
    const std::set<std::string>& variables);

class MathSide {
 public:
  MathSide(std::vector<MathToken> tokens, MathTree tree)
      : tokens_(std::move(tokens)), tree_(std::move(tree)) {}

  [[nodiscard]] const MathTree& tree() const { return tree_; }
  [[nodiscard]] const MathNode& at(std::size_t node) const { return tree_.at(node); }
  [[nodiscard]] std::size_t root() const { return tree_.root; }
  [[nodiscard]] std::size_t child(std::size_t node, std::size_t index = 0) const {
    return tree_.child(node, index);
  }
  std::size_t make(MathKind kind, std::vector<std::size_t> children, std::string text = {});

  // Variables under the node; e, i and pi are none.
  [[nodiscard]] const std::set<std::string>& variables(std::size_t node);
  // i occurs under the node: complex values are meant.
  [[nodiscard]] bool is_complex(std::size_t node);
  // A literal with more digits than values at points can tell apart.
  [[nodiscard]] bool has_long_literal(std::size_t node);
  [[nodiscard]] const std::optional<Fraction>& exact(std::size_t node);
  [[nodiscard]] const MathValue& value(std::size_t node, std::size_t index, const MathPoint& point);

  // At x for the one variable under the node.
  [[nodiscard]] MathValue value_with(std::size_t node, const std::string& variable,
                                     const MathValue& x);

  // What is written at the node in lower-case words; empty for what is no item.
  [[nodiscard]] std::string words(std::size_t node) const;

  struct Quantity {
    std::size_t value;
    std::string unit;  // empty without
  };
  // The node without its unit, percent or degree sign.
  [[nodiscard]] Quantity quantity(std::size_t node);

  // The items of a list or set, every plus-minus written out; of anything else itself. None when
  // there are too many.
  [[nodiscard]] std::optional<std::vector<std::size_t>> items(std::size_t node);
  [[nodiscard]] bool has_plus_minus(std::size_t node) const;

  // A matrix, also with a factor before or a divisor behind it; none for anything else.
  [[nodiscard]] std::optional<std::size_t> matrix(std::size_t node);

 private:
  struct Facts {
    std::set<std::string> variables;
    bool is_complex = false;
    bool has_long_literal = false;
    std::optional<std::optional<Fraction>> exact;
    std::map<std::size_t, MathValue> values;
  };

  [[nodiscard]] Facts& facts(std::size_t node);
  void gather(std::size_t node, Facts& facts) const;
  [[nodiscard]] Quantity split(std::size_t node);
  void count_signs(std::size_t node, std::size_t& plus_minus, std::size_t& minus_plus) const;
  [[nodiscard]] std::size_t with_signs(std::size_t node, unsigned signs, std::size_t& next,
                                       bool together);

  std::vector<MathToken> tokens_;
  MathTree tree_;
  std::int64_t steps_ = evaluation_steps;
  std::unordered_map<std::size_t, Facts> facts_;
  std::unordered_map<std::size_t, Quantity> quantities_;
};

}  // namespace onset
