// Rigidity: how little the state of the massive token changes, from layer to layer and from prompt
// to prompt, beside an ordinary token of the same prompts ("directional rigidity" of arXiv
// 2605.08504). Formulas: docs/rigidity.md. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/massive/scan.h"
#include "onset/model/sites.h"

namespace onset {

class Hooks;
class Model;

// Positions in one prompt that are compared with those of the other prompts.
struct RigidityPrompt {
  std::vector<std::int64_t> ids;
  std::int64_t token = 0;
  std::optional<std::int64_t> baseline = {};  // an ordinary token; nothing: the prompt has none
};

struct RigidityTokens {
  std::optional<std::int64_t> token = {};     // in every prompt; nothing: the massive token of each
  std::optional<std::int64_t> baseline = {};  // in every prompt; nothing: chosen
};

// The prompts that can be compared, and where they stand in the scan.
struct RigidityChoice {
  std::vector<RigidityPrompt> prompts;
  std::vector<std::size_t> scanned;  // [P] index into ScanResult::prompts
};

// Without a named token: the prompts that agree with the ME layer, and of each the token with the
// largest entry there. Without a named baseline: of each prompt the position nearest to its middle
// (the later on a tie) that has no massive entry in any layer and is not the token.
// Throws a usage error where a named position lies outside a prompt or both are the same, and where
// there is no ME layer and no named token.
[[nodiscard]] RigidityChoice choose_tokens(const ScanResult& scan, const RigidityTokens& named);

// How many different ids[0 .. token] the prompts have. In a causal model equal prefixes give equal
// states, whatever follows: of those no cosine says anything about rigidity.
[[nodiscard]] std::size_t distinct_prefixes(std::span<const RigidityPrompt> prompts);

// Cosines; NaN where a state is zero. Symmetric, rows and columns alike.
using CosineMatrix = std::vector<std::vector<double>>;

// One token of each of P prompts at one site, over L layers. x[p, l] is its state: [D], or all
// heads of k or v one after the other.
struct StateRigidity {
  std::vector<CosineMatrix> layers;   // [P] of [L, L]: cos(x[p, l], x[p, m])
  CosineMatrix mean_layers;           // [L, L], the mean over prompts
  std::vector<CosineMatrix> prompts;  // [L] of [P, P]: cos(x[p, l], x[q, l])
  std::vector<double> mean_prompts;   // [L] mean over pairs p != q; NaN for one prompt
  std::vector<double> min_prompts;    // [L]
  // [L] exp of the entropy of s / sum(s), s the singular values of the matrix [P, D] of the
  // prompts' states (Roy and Vetterli 2007): 1 when all point one way, at most P. NaN for one
  // prompt.
  std::vector<double> effective_rank;
};

struct SiteRigidity {
  SiteKind site = SiteKind::resid_post;
  StateRigidity token;
  std::optional<StateRigidity> baseline;  // over the prompts that have one
};

struct RigidityResult {
  std::vector<RigidityPrompt> prompts;
  std::vector<SiteRigidity> sites;  // resid_post, attn_norm where the model has it, k_pre, v
};

// All pairs of prompts are compared, so their number is limited.
inline constexpr std::size_t most_rigidity_prompts = 128;

// Runs the prompts through the blocks and compares. `interventions`: what edits the passes (its
// observers are not called), for a masked run beside an unmasked one. Throws a usage error for no
// prompt or too many, and an input error where a state is not finite.
[[nodiscard]] RigidityResult measure_rigidity(const Model& model,
                                              const std::vector<RigidityPrompt>& prompts,
                                              const Log& log = {},
                                              const Hooks* interventions = nullptr);

// The parts, for other states: n vectors of one size each. Both need at least one.
[[nodiscard]] CosineMatrix cosine_matrix(std::span<const std::vector<float>> vectors);
// NaN when all are zero.
[[nodiscard]] double effective_rank(std::span<const std::vector<float>> vectors);

}  // namespace onset
