// What a mask changes, unmasked beside masked: what the verbs that take --wemask share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mask_option.h"
#include "onset/base/json.h"
#include "onset/wemask/mask_spec.h"

namespace onset::app {

// mask_for of one of several models: errors name its path.
[[nodiscard]] std::optional<MaskSpec> mask_for_model(const MaskFileOptions& options,
                                                     const Model& model, const std::string& path,
                                                     const Log& log);

// How a number of a column is written.
using NumberText = std::string (*)(double);
[[nodiscard]] std::string three_decimals(double value);

// One quantity of every layer in both runs.
struct MaskedColumn {
  std::string name;
  std::vector<double> unmasked;  // [L]
  std::vector<double> masked;    // [L]
  NumberText text = three_decimals;
};

// A row a layer: of each quantity the two numbers and their difference. The first layers, as far as
// both runs are equal to the last bit, are one row. `notes`, if any, end the rows: one a layer. Two
// quantities fit into 80 columns.
[[nodiscard]] std::string masked_layers_text(const std::vector<MaskedColumn>& columns,
                                             const std::vector<std::string>& notes = {},
                                             const std::string& note_name = {});

// The same with a row for each of `names`, none left out.
[[nodiscard]] std::string masked_rows_text(const std::string& heading,
                                           const std::vector<std::string>& names,
                                           const std::vector<MaskedColumn>& columns);

// A number that is not of one layer.
struct MaskedNumber {
  std::string name;
  double unmasked = 0;
  double masked = 0;
  NumberText text = three_decimals;
};
// A row each: the two numbers and their difference.
[[nodiscard]] std::string masked_numbers_text(const std::vector<MaskedNumber>& numbers);

// "+0.012", "0" where both are equal to the last bit, "-" where one is no number.
[[nodiscard]] std::string difference_text(double unmasked, double masked, NumberText text);

// "144 of 576 dims by weight in layers 12 to 29, ..": the mask in words.
[[nodiscard]] std::string mask_words(const MaskSpec& spec);
// The heading of what stands beside each other: what the mask is.
[[nodiscard]] std::string masked_heading(const MaskSpec& spec);
// What such numbers do not show.
[[nodiscard]] std::string masked_caution();

// The mask, or null.
[[nodiscard]] OrderedJson wemask_json(const std::optional<MaskSpec>& spec);
// `run.paths.wemask`: the mask's file, null where that is empty.
void add_mask_path(OrderedJson& run, const std::string& path);

}  // namespace onset::app
