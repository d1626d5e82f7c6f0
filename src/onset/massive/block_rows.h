// What a block shows of one token: the rows that attributions are made from. Inside the massive
// room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "onset/model/sites.h"

namespace onset {

class Hooks;
class Model;
struct FfnWeights;

// One token at the sites of one block.
struct BlockRow {
  std::int64_t layer = 0;
  std::int64_t token = 0;
  std::map<SiteKind, at::Tensor> sites;                // without the token's axis: [D], [F], [H, K]
  std::map<std::int64_t, at::Tensor> expert_products;  // [F] of each expert the token is sent to

  [[nodiscard]] bool has(SiteKind kind) const { return sites.contains(kind); }
  [[nodiscard]] const at::Tensor& at(SiteKind kind) const { return sites.at(kind); }
  // One entry of a [D] row, as it is in float32.
  [[nodiscard]] float value(SiteKind kind, std::int64_t dim) const;
};

struct BlockPlace {
  std::int64_t layer = 0;
  std::int64_t token = 0;
};

// One pass over the prompt up to the last block that is asked for; a row for each place, in their
// order. `interventions`: what edits the pass.
[[nodiscard]] std::vector<BlockRow> capture_block_rows(const Model& model,
                                                       const std::vector<std::int64_t>& ids,
                                                       std::span<const BlockPlace> places,
                                                       const Hooks* interventions = nullptr);

// One gated FFN as it acts on one token: its output is factor * (W_down product + bias). A dense
// block has one; a mixture has the experts that the token is sent to and the shared expert.
struct FfnModule {
  std::string name;  // "ffn"; in mixtures "experts.E", "shared"
  const FfnWeights* weights = nullptr;
  at::Tensor input;     // [D]
  at::Tensor gate;      // [F], before the activation
  at::Tensor up;        // [F]
  at::Tensor product;   // [F], the input of the down projection
  double factor = 1.0;  // the router's weight, or the gate of the shared expert
};

// Their outputs sum to what the block's FFN puts out (before a post-norm).
[[nodiscard]] std::vector<FfnModule> ffn_modules(const Model& model, const BlockRow& row);

}  // namespace onset
