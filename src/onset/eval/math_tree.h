// An answer as a tree. Torch-free.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

enum class MathKind {
  number,      // text: "12", "0.5", "0.(3)"
  symbol,      // text: "x", "x_1", "pi", "e", "i"
  infinity,    // of the sign plus; minus is its negation
  add,         // children
  negate,      // child
  multiply,    // children
  divide,      // numerator, denominator
  power,       // base, exponent
  root,        // index, radicand
  function,    // text: "sin", "abs", "floor", ...; "log" with base, argument
  factorial,   // child
  binomial,    // n, k
  percent,     // child
  degree,      // child
  plus_minus,  // child: both signs
  minus_plus,  // child: the other sign of plus_minus
  based,       // text: digits; child: the base
  unit,        // child; text: the unit in one spelling
  words,       // text: an answer that is no formula, in lower case
  list,        // children, unordered; text: "," or "and" or "or"
  set,         // children, unordered
  tuple,       // children, ordered; text: its brackets, "(]"
  ratio,       // children a : b
  join,        // union of two children
  meet,        // intersection
  without,     // difference
  matrix,      // children row by row
  relation,    // children; operators between them in `operators`
  empty_set,
  reals,
};

struct MathNode {
  MathKind kind = MathKind::number;
  std::string text = {};
  std::vector<std::size_t> children = {};
  std::size_t columns = 0;                  // of a matrix
  std::vector<std::string> operators = {};  // of a relation: "=", "<", "<=", "in", "!=", ...
  std::size_t first = 0;                    // tokens [first, last) of the answer
  std::size_t last = 0;
};

struct MathTree {
  std::vector<MathNode> nodes;
  std::size_t root = 0;

  [[nodiscard]] const MathNode& at(std::size_t node) const { return nodes[node]; }
  [[nodiscard]] std::size_t child(std::size_t node, std::size_t index = 0) const {
    return nodes[node].children[index];
  }
  std::size_t add(MathNode node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
  }
};

}  // namespace onset
