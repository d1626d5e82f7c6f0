// Sets of real numbers made of intervals: (-oo, 2) U {3} U [5, oo). Torch-free.
#pragma once

#include <vector>

#include "onset/eval/math_value.h"

namespace onset {

struct RegionEdge {
  int infinite = 0;  // -1 or 1, or 0 for the number below
  MathValue value = {};
  bool closed = false;  // the number itself belongs to the region
};

struct RegionPiece {
  RegionEdge low;
  RegionEdge high;
};

class Region {
 public:
  Region() = default;  // empty
  // Pieces in any order; those that hold nothing vanish, those that touch become one.
  explicit Region(std::vector<RegionPiece> pieces);
  [[nodiscard]] static Region interval(const RegionEdge& low, const RegionEdge& high);
  [[nodiscard]] static Region all();

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] bool contains(const MathValue& number) const;
  // Numbers that show a set apart from others: its edges, and some between and beyond them.
  [[nodiscard]] std::vector<MathValue> probes() const;
  [[nodiscard]] Region join(const Region& other) const;
  [[nodiscard]] Region meet(const Region& other) const;
  [[nodiscard]] Region complement() const;
  // The same numbers: edges agree as far as their errors go, and are open or closed alike.
  [[nodiscard]] bool same(const Region& other) const;

 private:
  std::vector<RegionPiece> pieces_;  // ascending, apart from each other
};

}  // namespace onset
