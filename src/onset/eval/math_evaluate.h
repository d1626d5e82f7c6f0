// The value of a tree: exactly where it is a fraction, else at points. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "onset/eval/exact_number.h"
#include "onset/eval/math_tree.h"
#include "onset/eval/math_value.h"

namespace onset {

// What each variable stands for. e, i and pi are constants.
using MathPoint = std::unordered_map<std::string, MathValue>;

[[nodiscard]] bool is_constant_name(const std::string& symbol);

// Steps that the evaluation of an answer may take in all, some microseconds for ten: no answer is
// worth more. Without any left, there is no value.
inline constexpr std::int64_t evaluation_steps = 30'000;

// None for what is no fraction of bounded size by its form: pi, \sqrt{2}, x; and \sqrt{4}. Takes
// the steps it needs off `steps`.
[[nodiscard]] std::optional<Fraction> exact_value_of(const MathTree& tree, std::size_t node,
                                                     std::int64_t& steps);

// Undefined for what is no number (sets, words), and outside a function's domain. Takes the steps
// it needs off `steps`.
[[nodiscard]] MathValue value_at(const MathTree& tree, std::size_t node, const MathPoint& point,
                                 std::int64_t& steps);

}  // namespace onset
