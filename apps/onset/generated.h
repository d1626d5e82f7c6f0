// What generate writes: rows of JSON in the order of the input, or text as it comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/generate/generator.h"
#include "onset/wemask/mask_spec.h"
#include "output.h"

namespace onset::app {

// One sample of one prompt, with or without the mask, as it grows.
struct GeneratedSample {
  std::vector<GeneratedToken> tokens;
  std::string text;
  std::optional<FinishReason> finish;
  std::string error;

  void add(const GenerationUpdate& update);
};

// What tells one mask from another without listing its dims: `id`, the FNV-1a hash of its JSON, and
// the fields that made it. Null for none.
[[nodiscard]] OrderedJson mask_identity(const MaskSpec* mask);

[[nodiscard]] OrderedJson logprobs_json(const GeneratedSample& sample);

// Writes each row as soon as all rows before it are there, a whole line at a time.
class RowsInOrder {
 public:
  RowsInOrder(ResultWriter& writer, std::size_t count) : writer_(writer), rows_(count) {}
  void put(std::size_t index, const OrderedJson& row);

 private:
  ResultWriter& writer_;
  std::vector<std::optional<std::string>> rows_;
  std::size_t written_ = 0;
};

// Text of a model for a terminal: line breaks and tabs stay, other control characters are escaped.
[[nodiscard]] std::string terminal_text(std::string_view text, bool utf8);

// Two answers next to each other in columns, or one below the other where there is no room.
[[nodiscard]] std::string side_by_side(const std::string& left_title, std::string_view left,
                                       const std::string& right_title, std::string_view right,
                                       std::size_t width, bool utf8);

}  // namespace onset::app
