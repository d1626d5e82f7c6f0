#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "onset/base/error.h"
#include "onset/base/mixing.h"
#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/selection.h"

namespace onset {
namespace {

std::vector<float> gains_of(const Model& model, std::int64_t layer) {
  const at::Tensor gain = model.decoder()
                              .weights()
                              .layers[static_cast<std::size_t>(layer)]
                              .attn_norm.to(at::kCPU, at::kFloat)
                              .contiguous();
  const float* values = gain.const_data_ptr<float>();
  return {values, values + gain.numel()};
}

std::uint64_t hash_of(std::span<const float> values) {
  std::uint64_t hash = fnv1a_begin;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int shift = 0; shift < 32; shift += 8) {
      hash = fnv1a(hash, static_cast<unsigned char>(bits >> shift & 0xFFU));
    }
  }
  return hash;
}

void refuse_without_norm(const ModelConfig& config) {
  if (const auto obstacle = wemask_obstacle(config)) {
    throw input_error("WeMask does not apply: " + *obstacle,
                      "other families have a norm before attention");
  }
}

std::int64_t resolve_k(const MaskOptions& options, std::int64_t hidden) {
  if (options.k && options.rate) {
    throw usage_error("k and rate both say how many dims are masked", "give one of them");
  }
  if (options.k) {
    if (*options.k < 1 || *options.k > hidden) {
      throw usage_error(
          str_cat("k is ", *options.k, ", expected 1 to ", hidden, ", the hidden size"));
    }
    return *options.k;
  }
  const double rate = options.rate.value_or(default_mask_rate);
  if (!(rate > 0 && rate <= 1)) {
    throw usage_error(str_cat("rate is ", rate, ", expected above 0, up to 1"));
  }
  const auto k = static_cast<std::int64_t>(rate * static_cast<double>(hidden));
  if (k == 0) {
    throw usage_error(str_cat("rate ", rate, " of ", hidden, " dims is less than one dim"),
                      str_cat("give at least ", 1.0 / static_cast<double>(hidden), ", or k"));
  }
  return k;
}

void check_from(std::int64_t from_layer, std::int64_t layers) {
  if (from_layer >= 0 && from_layer < layers) return;
  throw usage_error(str_cat("the first masked layer is ", from_layer,
                            ", but the model has layers 0 to ", layers - 1));
}

void check_to(std::int64_t to_layer, std::int64_t from_layer, std::int64_t layers) {
  if (to_layer >= from_layer && to_layer < layers) return;
  throw usage_error(str_cat("the last masked layer is ", to_layer, ", expected ", from_layer,
                            " to ", layers - 1));
}

std::int64_t resolve_from(const MaskOptions& options, std::int64_t layers) {
  if (options.from_layer) {
    check_from(*options.from_layer, layers);
    return *options.from_layer;
  }
  if (!options.me_layer) {
    throw usage_error("no ME layer was found, so there is no first layer to mask",
                      "name it with --from-layer");
  }
  if (*options.me_layer + 1 >= layers) {
    throw usage_error(str_cat("the ME layer is the last, ", *options.me_layer,
                              ": no attention sees the massive value"),
                      "name another first layer with --from-layer");
  }
  return *options.me_layer + 1;
}

std::vector<std::int64_t> chosen_dims(const Model& model, const MaskSpec& spec,
                                      std::int64_t layer) {
  switch (spec.criterion) {
    case MaskCriterion::weight:
      return largest_dims(gains_of(model, layer), spec.k);
    case MaskCriterion::lowest:
      return smallest_dims(gains_of(model, layer), spec.k);
    case MaskCriterion::random:
      return random_dims(spec.seed, layer, spec.model.hidden, spec.k);
    case MaskCriterion::activation:
    case MaskCriterion::magnitude:
    case MaskCriterion::given:
      break;
  }
  return {};
}

void check_given(const std::vector<std::int64_t>& dims, std::int64_t layer, const MaskSpec& spec) {
  for (const std::int64_t dim : dims) {
    if (dim >= 0 && dim < spec.model.hidden) continue;
    throw usage_error(
        str_cat("dim ", dim, " of layer ", layer, " is outside 0 to ", spec.model.hidden - 1));
  }
  std::vector<std::int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw usage_error(str_cat("a dim of layer ", layer, " is listed twice"));
  }
}

// The listed dims of every masked layer, the same number in each.
void take_given(const MaskOptions& options, MaskSpec& spec) {
  for (const auto& [layer, dims] : options.given) {
    if (spec.masks_layer(layer)) continue;
    throw usage_error(str_cat("dims are listed for layer ", layer, ", but the masked layers are ",
                              spec.from_layer, " to ", spec.to_layer));
  }
  std::optional<std::int64_t> count;
  for (std::int64_t layer = spec.from_layer; layer <= spec.to_layer; ++layer) {
    const auto found = options.given.find(layer);
    if (found == options.given.end() || found->second.empty()) {
      throw usage_error(str_cat("no dims are listed for layer ", layer, ", which is masked"));
    }
    check_given(found->second, layer, spec);
    const auto size = static_cast<std::int64_t>(found->second.size());
    if (size != count.value_or(size)) {
      throw usage_error(
          str_cat("layer ", layer, " lists ", size, " dims, the layer before it ", *count),
          "list as many for every layer");
    }
    count = size;
    spec.dims[layer] = found->second;
  }
  spec.k = count.value_or(0);
}

void check_tokens(const MaskOptions& options) {
  if (options.tokens == MaskTokens::positions && options.positions.empty()) {
    throw usage_error("no positions are given for the tokens to mask");
  }
  for (const std::int64_t position : options.positions) {
    if (position < 0) throw usage_error(str_cat("position ", position, " is negative"));
  }
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    throw usage_error(str_cat("gamma is ", options.gamma, ", expected 0 to 1"));
  }
}

}  // namespace

ModelFingerprint fingerprint(const Model& model) {
  const ModelConfig& config = model.config();
  ModelFingerprint print{.architecture = config.architecture,
                         .layers = config.layer_count(),
                         .hidden = config.hidden,
                         .heads = config.heads,
                         .kv_heads = config.kv_heads,
                         .head_dim = config.head_dim,
                         .gains = {}};
  for (std::int64_t layer = 0; config.pre_norms && layer < config.layer_count(); ++layer) {
    print.gains.push_back(hash_of(gains_of(model, layer)));
  }
  return print;
}

MaskSpec make_mask(const Model& model, const MaskOptions& options) {
  const ModelConfig& config = model.config();
  refuse_without_norm(config);
  check_tokens(options);
  if (options.tokens == MaskTokens::massive && options.massive_dims.empty()) {
    throw usage_error("tokens are masked where they are massive, but no massive dims are known",
                      "scan the model first, or mask the first token or positions");
  }
  MaskSpec spec;
  spec.model = fingerprint(model);
  spec.criterion = options.criterion;
  spec.placement = options.placement;
  spec.tokens = options.tokens;
  if (spec.tokens == MaskTokens::positions) spec.positions = options.positions;
  if (spec.tokens == MaskTokens::massive) spec.massive_dims = options.massive_dims;
  spec.massive_threshold = options.massive_threshold;
  spec.gamma = options.gamma;
  spec.seed = options.seed;
  spec.official_compat = options.official_compat;
  if (spec.official_compat) {
    spec.criterion = MaskCriterion::activation;
    spec.placement = MaskPlacement::post_norm;
  }
  spec.from_layer = resolve_from(options, config.layer_count());
  spec.to_layer = options.to_layer.value_or(config.layer_count() - 1);
  check_to(spec.to_layer, spec.from_layer, config.layer_count());
  if (spec.criterion == MaskCriterion::given) {
    take_given(options, spec);
    return spec;
  }
  spec.k = resolve_k(options, config.hidden);
  if (!options.k) spec.rate = options.rate.value_or(default_mask_rate);
  for (std::int64_t l = spec.from_layer; l <= spec.to_layer && !spec.is_chosen_by_token(); ++l) {
    spec.dims[l] = chosen_dims(model, spec, l);
  }
  return spec;
}

void check_mask_options(const ModelConfig& config, const MaskOptions& options) {
  refuse_without_norm(config);
  check_tokens(options);
  const std::int64_t layers = config.layer_count();
  if (options.from_layer) check_from(*options.from_layer, layers);
  if (options.to_layer) check_to(*options.to_layer, options.from_layer.value_or(0), layers);
  if (options.criterion != MaskCriterion::given) {
    static_cast<void>(resolve_k(options, config.hidden));
  }
}

MaskFit check_mask(const MaskSpec& spec, const Model& model, const std::string& where) {
  refuse_without_norm(model.config());
  const ModelFingerprint here = fingerprint(model);
  const auto shape = [](const ModelFingerprint& print) {
    return str_cat(print.architecture, ", ", print.layers, " layers, hidden ", print.hidden, ", ",
                   print.heads, " heads and ", print.kv_heads, " KV heads of ", print.head_dim);
  };
  if (!spec.model.same_shape(here)) {
    throw input_error(str_cat(where, ": the mask was made for another model (", shape(spec.model),
                              "), this one is ", shape(here)),
                      "make one for this model: onset mask make MODEL -o wemask.json");
  }
  require_input(
      spec.from_layer >= 0 && spec.from_layer <= spec.to_layer && spec.to_layer < here.layers,
      where, ": the mask is for layers ", spec.from_layer, " to ", spec.to_layer,
      ", but the model has layers 0 to ", here.layers - 1);
  MaskFit fit;
  fit.same_gains = spec.model.gains == here.gains;
  const bool by_gains =
      spec.criterion == MaskCriterion::weight || spec.criterion == MaskCriterion::lowest;
  if (fit.same_gains || !by_gains) return fit;
  const MaskSpec anew = refreshed(spec, model);
  double sum = 0;
  for (const auto& [layer, dims] : spec.dims) sum += jaccard(dims, anew.dims.at(layer));
  fit.overlap = sum / static_cast<double>(spec.dims.size());
  return fit;
}

MaskSpec refreshed(const MaskSpec& spec, const Model& model) {
  MaskSpec anew = spec;
  anew.model = fingerprint(model);
  for (auto& [layer, dims] : anew.dims) {
    if (spec.criterion != MaskCriterion::given) dims = chosen_dims(model, anew, layer);
  }
  return anew;
}

}  // namespace onset
