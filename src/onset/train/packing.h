// Several documents in one row of a batch, so that rows are of about one length. Torch-free.
//
// Documents of a row stay documents: positions begin at 0 in each, none attends to another, and
// WeMask masks the first token of each, since the forward pass takes each as a sequence of its own.
// Packing therefore changes what a step holds, and nothing of what is computed for a document.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/train/examples.h"

namespace onset {

enum class PackingStrategy {
  // Best fit decreasing: the longest first, each into the row with the least room that holds it
  // (TRL's "bfd"). What is longer than a row is cut at its end.
  bfd,
  // The same, but what is longer than a row is split (TRL's "bfd_split").
  bfd_split,
  // One behind the other; a row that is full ends a document, and the rest of it begins the next
  // row. (TRL's "wrapped" also lets documents of a row attend to each other.)
  wrapped,
};

using PackedRow = std::vector<SftExample>;

struct Packed {
  std::vector<PackedRow> rows;  // of at most max_length tokens, in the order they were begun
  std::int64_t tokens = 0;      // in them
  std::int64_t tokens_cut = 0;  // that are in no row
  std::int64_t pieces = 0;      // documents that are no beginning of an example
  // tokens / (rows * max_length)
  [[nodiscard]] double filled(std::int64_t max_length) const;
};

// Examples of one length keep their order. Pieces in which nothing is trained are left out. Throws
// a usage error for a max_length below 2.
[[nodiscard]] Packed pack(std::vector<SftExample> examples, std::int64_t max_length,
                          PackingStrategy strategy);

// One row a document, for data that are not packed.
[[nodiscard]] std::vector<PackedRow> rows_of(std::vector<SftExample> examples);

}  // namespace onset
