#include "onset/model/decoder_pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "onset/base/error.h"
#include "onset/model/placement.h"
#include "onset/model/rope.h"

namespace onset {
namespace {

void check_beginning(std::span<const SequenceInput> batch, std::size_t index) {
  const SequenceInput& input = batch[index];
  const int beginnings =
      (input.cache != nullptr ? 1 : 0) + (input.prefix != nullptr ? 1 : 0) + (input.behind ? 1 : 0);
  if (beginnings > 1) throw std::logic_error("a sequence with several beginnings");
  if (input.behind && (*input.behind >= index || batch[*input.behind].cache != nullptr)) {
    throw std::logic_error("a sequence behind one that is later or has a cache");
  }
}

std::vector<SequenceRows> pack(std::span<const SequenceInput> batch, const ModelConfig& config) {
  std::vector<SequenceRows> sequences;
  std::int64_t row = 0;
  for (const SequenceInput& input : batch) {
    require_input(!input.ids.empty(), "a sequence without tokens");
    for (const std::int64_t id : input.ids) {
      if (id >= 0 && id < config.vocabulary) continue;
      throw input_error(
          str_cat("token id ", id, " is outside the vocabulary of ", config.vocabulary),
          "do tokenizer and model belong together?");
    }
    const auto count = static_cast<std::int64_t>(input.ids.size());
    check_beginning(batch, sequences.size());
    std::int64_t position = 0;
    if (input.cache != nullptr) position = input.cache->length();
    if (input.prefix != nullptr) position = input.prefix->length();
    if (input.behind) position = sequences[*input.behind].position + sequences[*input.behind].count;
    sequences.push_back({.row = row, .count = count, .position = position});
    row += count;
  }
  return sequences;
}

}  // namespace

at::ScalarType residual_type(Compute compute) {
  return compute == Compute::f64 ? at::kDouble : at::kFloat;
}

std::int64_t rope_length(const SequenceInput& input) {
  const std::int64_t before = input.cache == nullptr ? 0 : input.cache->length();
  return std::max(before + static_cast<std::int64_t>(input.ids.size()), input.planned_length);
}

Decoder::Pass::Pass(const Decoder& decoder, std::span<const SequenceInput> inputs,
                    const Hooks* asked)
    : batch(inputs),
      sequences(pack(inputs, decoder.config_)),
      layers(decoder.config_.layer_count()),
      hooks(asked) {
  rows = sequences.back().row + sequences.back().count;
  for (const RopeConfig& rope : decoder.config_.ropes) {
    std::vector<RopeFrequencies> frequencies;
    for (std::size_t s = 0; s < inputs.size(); ++s) {
      const std::int64_t length = sequences[s].position + sequences[s].count;
      frequencies.push_back(rope_frequencies(rope, std::max(length, inputs[s].planned_length)));
    }
    ropes.push_back(
        rope_table(frequencies, sequences,
                   at::TensorOptions(residual_type(decoder.compute())).device(decoder.device())));
  }
}

void Decoder::Pass::keep_batch() {
  kept.assign(batch.begin(), batch.end());
  batch = kept;
  for (const SequenceInput& input : kept) {
    if (input.cache != nullptr || input.prefix != nullptr) {
      throw std::logic_error("a pass with a cache cannot be computed again");
    }
  }
}

}  // namespace onset
