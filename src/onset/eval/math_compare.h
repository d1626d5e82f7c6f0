// Whether two answers that have been read say the same. Torch-free.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "onset/eval/math_region.h"
#include "onset/eval/math_side.h"

namespace onset {

class MathComparison {
 public:
  MathComparison(MathSide gold, MathSide answer);
  // The conventions are those of docs/grading.md.
  [[nodiscard]] bool same() { return same(gold_.root(), answer_.root()); }

 private:
  using Nodes = std::vector<std::size_t>;

  // math_compare.cpp. In all of these the first node is of the gold answer.
  [[nodiscard]] bool same(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_words(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_collection(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_items(const Nodes& gold, const Nodes& answer);
  [[nodiscard]] bool same_in_order(const Nodes& gold, const Nodes& answer);
  [[nodiscard]] bool same_quantity(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_tuple(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_matrix(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_base(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_scalar(std::size_t gold, std::size_t answer);
  [[nodiscard]] Nodes distinct(MathSide& side, const Nodes& nodes);
  // Numbers, also of one side.
  [[nodiscard]] bool equal_numbers(MathSide& a, std::size_t left, MathSide& b, std::size_t right);

  // math_relation.cpp
  [[nodiscard]] static bool is_name(const MathSide& side, std::size_t node);
  // The value that "x = 5" states; none for other relations.
  [[nodiscard]] std::optional<std::size_t> stated_value(MathSide& side, std::size_t relation);
  [[nodiscard]] bool same_relation(std::size_t gold, std::size_t answer);
  [[nodiscard]] bool same_comparison(std::size_t gold, std::size_t answer);
  [[nodiscard]] static bool is_region(MathSide& side, std::size_t node);
  [[nodiscard]] static bool holds_on(const Region& region, MathSide& side, std::size_t node);
  [[nodiscard]] std::optional<Region> region(MathSide& side, std::size_t node, int depth = 0);
  [[nodiscard]] std::optional<Region> region_of_tuple(MathSide& side, std::size_t node);
  [[nodiscard]] std::optional<Region> region_of_points(MathSide& side, std::size_t node);
  [[nodiscard]] std::optional<Region> region_of_relation(MathSide& side, std::size_t node,
                                                         int depth);
  [[nodiscard]] std::optional<Region> region_of_list(MathSide& side, std::size_t node, int depth);
  [[nodiscard]] std::optional<Region> half_line(MathSide& side, std::size_t left,
                                                const std::string& sign, std::size_t right);
  [[nodiscard]] std::optional<RegionEdge> edge(MathSide& side, std::size_t node);

  MathSide gold_;
  MathSide answer_;
  std::array<MathPoint, math_points> points_;
};

}  // namespace onset
