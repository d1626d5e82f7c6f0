// What `onset sinks` found, and its forms: JSON and a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/sinks.h"
#include "onset/wemask/mask_spec.h"
#include "text.h"

namespace onset::app {

enum class SampleSource { built_in, file, ids };

// The samples of a model, in its tokens.
struct SinkSamples {
  SampleSource source = SampleSource::built_in;
  std::vector<std::vector<std::int64_t>> ids;
  std::optional<std::int64_t> bos;  // at the beginning of each sample
  std::int64_t text_tokens = 0;     // of the whole text, without BOS; 0 for ids
  std::int64_t text_samples = 0;    // that the text would have given; 0 for ids
};

// The control input: one token, repeated.
struct SinkControl {
  std::int64_t id = 0;
  std::optional<std::string> piece;  // bytes of the token; nothing without a tokenizer
  std::int64_t length = 0;
  SinksResult result;
  std::optional<SinksResult> masked;
};

struct ModelSinks {
  std::string path;                   // as given on the command line
  OrderedJson model;                  // the `model` object
  std::vector<std::int64_t> windows;  // of each layer; 0: none
  SinkSamples samples;
  std::optional<std::string> key_piece;  // bytes of the key's token, where all samples share it
  SinksResult result;
  std::optional<SinkControl> control;
  std::optional<MaskSpec> mask;
  std::optional<SinksResult> masked;  // the same samples under the mask
};

// Everything but `run`: the fields that docs/json.md lists.
[[nodiscard]] OrderedJson sinks_json(const ModelSinks& sinks);
// A line a layer and a verdict in words, 80 columns wide.
[[nodiscard]] std::string sinks_text(const ModelSinks& sinks, const TextStyle& style);
// Of measured sinks with a mask: the layers without and with it, and the change in words.
[[nodiscard]] std::string sinks_masked_text(const ModelSinks& sinks);
// What the mask changes, in words: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> sinks_masked_paragraphs(const ModelSinks& sinks);

}  // namespace onset::app
