// What one run of the blocks leaves behind for detection: statistics of every layer, and for every
// token what stages need. Inside the massive room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/scan.h"

namespace onset {

// The parts of one entry of a block's output: after = (resid_pre + attn_out) + ffn_out.
struct EntryParts {
  std::int64_t dim = 0;
  float resid_pre = 0;
  float attn_out = 0;
  float ffn_out = 0;
  std::vector<ExpertPart> experts = {};  // see Stage
  std::optional<float> shared_out = std::nullopt;
};

// One token at one block, at the two dims that a stage may need.
struct TokenTrace {
  float largest = 0;       // max |entry| after the block
  EntryParts at_largest;   // at the dim of the largest entry after the block
  EntryParts at_previous;  // at the dim of the largest entry before the block
};

struct LayerTrace {
  LayerStatistics statistics;  // massive_entries and massive are filled by detection
  // In falling order; the lists end at a limit, the counts do not.
  std::vector<StateEntry> absolute_entries;  // beyond min_abs and min_ratio times the median
  std::int64_t absolute_count = 0;
  std::vector<StateEntry> relative_entries;  // beyond min_ratio times the median alone
  std::int64_t relative_count = 0;
  std::vector<TokenTrace> tokens;
};

struct PromptTrace {
  std::vector<float> input_largest;  // per token, max |entry| of layers.0.resid_pre
  std::vector<LayerTrace> layers;
};

// Lists of entries end here; a threshold of 0 would else list every entry of every layer.
inline constexpr std::int64_t entry_list_limit = 4096;

// Throws an input error when a state holds NaN or infinity, naming prompt, layer, token and dim.
[[nodiscard]] std::vector<PromptTrace> trace_prompts(const Model& model,
                                                     const std::vector<ScanPrompt>& prompts,
                                                     const ScanOptions& options, const Log& log,
                                                     const Hooks* interventions = nullptr);

}  // namespace onset
