#include "onset/eval/math_region.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace onset {
namespace {

// -1, 0 or 1 as a lies below, at or above b.
int compare(const RegionEdge& a, const RegionEdge& b) {
  if (a.infinite != 0 || b.infinite != 0) {
    return a.infinite < b.infinite ? -1 : (a.infinite > b.infinite ? 1 : 0);
  }
  const Quad difference = a.value.re - b.value.re;
  if (quad_abs(difference) <= a.value.error + b.value.error) return 0;
  return difference < 0 ? -1 : 1;
}

bool holds_nothing(const RegionPiece& piece) {
  const int order = compare(piece.low, piece.high);
  return order > 0 || (order == 0 && !(piece.low.closed && piece.high.closed));
}

bool begins_before(const RegionPiece& a, const RegionPiece& b) {
  const int order = compare(a.low, b.low);
  return order < 0 || (order == 0 && a.low.closed && !b.low.closed);
}

bool same_edge(const RegionEdge& a, const RegionEdge& b) {
  return compare(a, b) == 0 && (a.infinite != 0 || a.closed == b.closed);
}

}  // namespace

Region::Region(std::vector<RegionPiece> pieces) {
  std::erase_if(pieces, holds_nothing);
  std::stable_sort(pieces.begin(), pieces.end(), begins_before);
  for (RegionPiece& piece : pieces) {
    if (!pieces_.empty()) {
      RegionEdge& end = pieces_.back().high;
      const int order = compare(piece.low, end);
      if (order < 0 || (order == 0 && (piece.low.closed || end.closed))) {
        const int ends = compare(piece.high, end);
        if (ends > 0) end = piece.high;
        if (ends == 0) end.closed = end.closed || piece.high.closed;
        continue;
      }
    }
    pieces_.push_back(piece);
  }
}

Region Region::interval(const RegionEdge& low, const RegionEdge& high) {
  std::vector<RegionPiece> one;
  one.push_back({low, high});
  return Region(std::move(one));
}

Region Region::all() { return interval({-1, {}, false}, {1, {}, false}); }

Region Region::join(const Region& other) const {
  std::vector<RegionPiece> pieces = pieces_;
  pieces.insert(pieces.end(), other.pieces_.begin(), other.pieces_.end());
  return Region(std::move(pieces));
}

Region Region::complement() const {
  std::vector<RegionPiece> gaps;
  RegionEdge from{-1, {}, false};
  for (const RegionPiece& piece : pieces_) {
    RegionEdge to = piece.low;
    to.closed = !to.closed;
    gaps.push_back({from, to});
    from = piece.high;
    from.closed = !from.closed;
  }
  gaps.push_back({from, {1, {}, false}});
  // A gap from -oo to -oo, or from oo to oo, holds nothing whatever its edges say.
  std::erase_if(gaps, [](const RegionPiece& gap) {
    return gap.low.infinite != 0 && gap.low.infinite == gap.high.infinite;
  });
  return Region(std::move(gaps));
}

Region Region::meet(const Region& other) const {
  return complement().join(other.complement()).complement();
}

bool Region::contains(const MathValue& number) const {
  const RegionEdge place{0, number, true};
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const RegionPiece& piece) {
    const int low = compare(place, piece.low);
    const int high = compare(place, piece.high);
    return (low > 0 || (low == 0 && piece.low.closed)) &&
           (high < 0 || (high == 0 && piece.high.closed));
  });
}

std::vector<MathValue> Region::probes() const {
  std::vector<MathValue> edges;
  for (const RegionPiece& piece : pieces_) {
    for (const RegionEdge& edge : {piece.low, piece.high}) {
      if (edge.infinite == 0) edges.push_back(edge.value);
    }
  }
  std::vector<MathValue> found = edges;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const MathValue width = subtract(edges[i + 1], edges[i]);
    for (const long double share :
         {0.001L, 0.03L, 0.14L, 0.29L, 0.43L, 0.61L, 0.78L, 0.9L, 0.999L}) {
      found.push_back(add(edges[i], multiply(width, exact_value(share))));
    }
  }
  const MathValue first = edges.empty() ? exact_value(0) : edges.front();
  const MathValue last = edges.empty() ? exact_value(0) : edges.back();
  for (const long double beyond : {0.001L, 0.3L, 1.1L, 2.7L, 7.3L, 31.0L, 211.0L, 5003.0L}) {
    found.push_back(subtract(first, exact_value(beyond)));
    found.push_back(add(last, exact_value(beyond)));
  }
  return found;
}

bool Region::same(const Region& other) const {
  if (pieces_.size() != other.pieces_.size()) return false;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!same_edge(pieces_[i].low, other.pieces_[i].low)) return false;
    if (!same_edge(pieces_[i].high, other.pieces_[i].high)) return false;
  }
  return true;
}

}  // namespace onset
