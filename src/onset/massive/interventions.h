// Editing entries of the residual stream by name: the interventions of the literature (massive
// entries to zero or to their mean, Sun et al. 2402.17762, section 3) and doses between.
// Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onset/massive/scan.h"

namespace onset {

class Hooks;

// Entries of `layers.LAYER.resid_post`, in every sequence of a pass.
struct EntryChoice {
  std::int64_t layer = 0;
  std::vector<std::int64_t> dims;
  // The token at this absolute position. Without one: every token whose entry is massive by the
  // rule (its magnitude above min_abs and min_ratio times the median of its sequence).
  std::optional<std::int64_t> position = 0;
  double min_abs = 100.0;
  double min_ratio = 1000.0;
};

// What becomes of an entry x in dims[i].
struct EntryEdit {
  double scale = 1.0;               // scale * x ..
  std::vector<double> values = {};  // .. or values[i], where this is not empty
};

// Adds the intervention; the layer must exist, and `values` be empty or one a dim.
void add_entry_edit(Hooks& hooks, const EntryChoice& choice, const EntryEdit& edit);

// The chosen tokens as if the block had not written to them at all: its output there is what went
// into its FFN (resid_mid), or with `attention` what went into the block (resid_pre). The dims only
// serve the rule that chooses.
void remove_write(Hooks& hooks, const EntryChoice& choice, bool attention);

}  // namespace onset
