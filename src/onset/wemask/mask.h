// Making a mask for a model, checking one against it, and putting it into a forward pass.
// Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;
class Hooks;
struct ModelConfig;
struct SiteContext;

struct MaskOptions {
  MaskCriterion criterion = MaskCriterion::weight;
  MaskPlacement placement = MaskPlacement::post_norm;
  MaskTokens tokens = MaskTokens::first;
  std::vector<std::int64_t> positions = {};
  double gamma = 1.0;
  // At most one of the two; without either the rate is default_mask_rate.
  std::optional<std::int64_t> k = std::nullopt;
  std::optional<double> rate = std::nullopt;
  // Without it the layer behind `me_layer`, the first whose attention sees the massive value.
  std::optional<std::int64_t> from_layer = std::nullopt;
  std::optional<std::int64_t> to_layer = std::nullopt;  // without it the last
  std::uint64_t seed = 0;
  bool official_compat = false;
  std::map<std::int64_t, std::vector<std::int64_t>> given = {};  // for criterion `given`
  // What a scan found; for `from_layer` and for tokens `massive`.
  std::optional<std::int64_t> me_layer = std::nullopt;
  std::vector<std::int64_t> massive_dims = {};
  double massive_threshold = 100.0;
};

inline constexpr double default_mask_rate = 0.25;

// Throws a usage error that says what to give instead: k or rate out of range or both, k = 0, gamma
// outside 0 to 1, no ME layer and no from_layer, layers that the model does not have, dims that are
// not listed for a masked layer or listed for another, tokens `massive` without massive dims; an
// input error where WeMask does not apply to the model (wemask_obstacle of model/config.h).
[[nodiscard]] MaskSpec make_mask(const Model& model, const MaskOptions& options);

// What of that can be told without a scan, for those who would scan first: k, rate, gamma,
// positions, and layers that are given.
void check_mask_options(const ModelConfig& config, const MaskOptions& options);

[[nodiscard]] ModelFingerprint fingerprint(const Model& model);

// How a mask fits a model of the same shape.
struct MaskFit {
  bool same_gains = true;
  // Where they differ and the criterion goes by them: overlap (Jaccard) of the mask's dims with
  // those that a mask made anew would have, the mean over the masked layers; else empty.
  std::optional<double> overlap;
};

// Throws an input error, naming both sides, where the shapes differ or the mask's layers or dims
// are outside the model; it begins with `where`, the mask's file.
[[nodiscard]] MaskFit check_mask(const MaskSpec& spec, const Model& model,
                                 const std::string& where = "wemask");
// The same mask with its dims chosen anew by this model's gains.
[[nodiscard]] MaskSpec refreshed(const MaskSpec& spec, const Model& model);

// A token that is masked in a layer, told while a pass runs: its packed row, its dims, and the
// attention input x of the row before the mask, D values.
using MaskObserver =
    std::function<void(const SiteContext& context, std::int64_t row,
                       const std::vector<std::int64_t>& dims, std::span<const float> input)>;

// Which sequences of a call a mask is for, by their index.
using MaskedSequences = std::function<bool(std::size_t sequence)>;

// Masks every pass that is run with the hooks; the model must outlive them. Add it before other
// interventions at `attn_norm`, which then see what attention would. Without `sequences` all of
// them; the dims of official_compat are averaged over the masked sequences alone.
void add_mask(Hooks& hooks, const MaskSpec& spec, const Model& model,
              const MaskObserver& observer = {}, const MaskedSequences& sequences = {});
// Whether the mask changes anything of a sequence's positions [position, position + count): with
// tokens `first` nothing behind position 0.
[[nodiscard]] bool may_mask(const MaskSpec& spec, std::int64_t position, std::int64_t count);

// The mask as hooks of its own, for analyses that take interventions. The model must outlive them.
[[nodiscard]] std::shared_ptr<const Hooks> masking(const MaskSpec& spec, const Model& model);

}  // namespace onset
