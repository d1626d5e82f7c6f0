// Which layer, tokens and dims are explained.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "onset/base/error.h"
#include "onset/massive/block_rows.h"
#include "onset/massive/explain.h"
#include "onset/massive/norm_reading.h"
#include "onset/model/model.h"

namespace onset {
namespace {

constexpr std::size_t most_dims = 8;

Error nothing_found(const ScanResult& scan) {
  std::string hint =
      "name what is to be explained: --layer N, with --token T and --dim D if you "
      "know them";
  if (scan.candidate) {
    const Candidate& near = *scan.candidate;
    hint += str_cat("; the nearest is --layer ", near.layer, " --token ", near.token, " --dim ",
                    near.dim, " (value ", near.value, ")");
  }
  return input_error(str_cat("no ME layer was found", scan.note ? " (" + *scan.note + ")" : "",
                             ", and none is named"),
                     hint);
}

void check_named(const Model& model, const ScanResult& scan, const ExplainOptions& options) {
  const ModelConfig& config = model.config();
  const auto refuse = [](const char* option, std::int64_t value, const char* what,
                         std::int64_t count) {
    if (value >= 0 && value < count) return;
    throw usage_error(
        str_cat(option, " ", value, " is out of range: the ", what, " 0 to ", count - 1));
  };
  if (options.layer) refuse("--layer", *options.layer, "model has layers", config.layer_count());
  for (const std::int64_t dim : options.dims) {
    refuse("--dim", dim, "hidden state has dims", config.hidden);
  }
  std::int64_t longest = 0;
  for (const PromptScan& prompt : scan.prompts) {
    longest = std::max<std::int64_t>(longest, std::ssize(prompt.ids));
  }
  if (options.token) refuse("--token", *options.token, "longest prompt has tokens", longest);
}

std::vector<TargetToken> choose_tokens(const ScanResult& scan, const ExplainOptions& options,
                                       std::int64_t layer) {
  std::vector<TargetToken> tokens;
  for (std::size_t p = 0; p < scan.prompts.size(); ++p) {
    const PromptScan& prompt = scan.prompts[p];
    // Without names, of the prompts that agree; a named layer is looked at in all.
    if (!options.layer && prompt.me_layer != scan.me_layer) continue;
    if (options.token && *options.token >= std::ssize(prompt.ids)) continue;
    const StateEntry& largest = prompt.layers[static_cast<std::size_t>(layer)].largest;
    tokens.push_back({.prompt = p, .token = options.token.value_or(largest.token), .values = {}});
  }
  return tokens;
}

// States of the tokens after the layer, [D] each.
std::vector<at::Tensor> target_states(const Model& model, const ScanResult& scan,
                                      std::int64_t layer, const std::vector<TargetToken>& tokens,
                                      const Hooks* interventions) {
  std::vector<at::Tensor> states;
  for (const TargetToken& token : tokens) {
    const std::vector<BlockPlace> place{{.layer = layer, .token = token.token}};
    states.push_back(capture_block_rows(model, scan.prompts[token.prompt].ids, place, interventions)
                         .front()
                         .at(SiteKind::resid_post)
                         .to(at::kDouble));
  }
  return states;
}

// The massive dims of these tokens, the largest first; without any, the shown token's largest.
std::vector<std::int64_t> choose_dims(const ScanResult& scan, const ExplainTarget& target,
                                      const at::Tensor& shown_state) {
  std::map<std::int64_t, double> sizes;
  for (const TargetToken& token : target.tokens) {
    const auto& layer = scan.prompts[token.prompt].layers[static_cast<std::size_t>(target.layer)];
    for (const StateEntry& entry : layer.massive_entries) {
      if (entry.token != token.token) continue;
      double& size = sizes[entry.dim];
      size = std::max(size, static_cast<double>(std::fabs(entry.value)));
    }
  }
  if (sizes.empty()) return {shown_state.abs().argmax().item<std::int64_t>()};
  std::vector<std::int64_t> dims;
  dims.reserve(sizes.size());
  for (const auto& [dim, size] : sizes) dims.push_back(dim);
  std::stable_sort(dims.begin(), dims.end(),
                   [&](std::int64_t a, std::int64_t b) { return sizes[a] > sizes[b]; });
  dims.resize(std::min(dims.size(), most_dims));
  return dims;
}

// A dim named twice would be edited twice.
std::vector<std::int64_t> without_repeats(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> result;
  for (const std::int64_t dim : dims) {
    if (std::find(result.begin(), result.end(), dim) == result.end()) result.push_back(dim);
  }
  return result;
}

bool has_massive_entry(const ScanResult& scan, const ExplainTarget& target) {
  const TargetToken& shown = target.tokens[target.shown];
  const auto& entries =
      scan.prompts[shown.prompt].layers[static_cast<std::size_t>(target.layer)].massive_entries;
  return std::any_of(entries.begin(), entries.end(), [&](const StateEntry& entry) {
    return entry.token == shown.token &&
           std::find(target.dims.begin(), target.dims.end(), entry.dim) != target.dims.end();
  });
}

// What the states of the tokens and the scan say of the target.
void read_target(const ScanResult& scan, const std::vector<at::Tensor>& states,
                 ExplainTarget& target) {
  target.mean.assign(target.dims.size(), 0.0);
  std::vector<double> medians;
  for (std::size_t i = 0; i < states.size(); ++i) {
    TargetToken& token = target.tokens[i];
    token.values.clear();
    for (std::size_t d = 0; d < target.dims.size(); ++d) {
      token.values.push_back(states[i].select(0, target.dims[d]).item<double>());
      target.mean[d] += token.values.back() / static_cast<double>(states.size());
    }
    medians.push_back(
        scan.prompts[token.prompt].layers[static_cast<std::size_t>(target.layer)].median_abs);
  }
  target.massive = has_massive_entry(scan, target);
  target.threshold =
      std::max(scan.options.min_abs, scan.options.min_ratio * lower_median(std::move(medians)));
}

}  // namespace

ExplainTarget choose_target(const Model& model, const ScanResult& scan,
                            const ExplainOptions& options) {
  check_named(model, scan, options);
  if (!options.layer && !scan.me_layer) throw nothing_found(scan);
  const c10::InferenceMode inference;
  ExplainTarget target;
  target.layer = options.layer.value_or(scan.me_layer.value_or(0));
  target.found = !options.layer && !options.token && options.dims.empty();
  target.tokens = choose_tokens(scan, options, target.layer);
  if (target.tokens.empty()) {
    throw usage_error(str_cat("--token ", options.token.value_or(0),
                              " is beyond every prompt whose ME layer is ", target.layer),
                      "give a longer prompt, or name the layer too: --layer N");
  }
  const std::vector<at::Tensor> states =
      target_states(model, scan, target.layer, target.tokens, nullptr);
  target.dims = options.dims.empty() ? choose_dims(scan, target, states[target.shown])
                                     : without_repeats(options.dims);
  const bool same_position = std::all_of(
      target.tokens.begin(), target.tokens.end(),
      [&](const TargetToken& token) { return token.token == target.tokens.front().token; });
  // Position 0 means the same in every text; another one only where it was named.
  if (same_position && (target.tokens.front().token == 0 || options.token)) {
    target.position = target.tokens.front().token;
  }
  read_target(scan, states, target);
  return target;
}

ExplainTarget same_target(const Model& model, const ScanResult& scan, const ExplainTarget& target,
                          const Hooks* interventions) {
  const c10::InferenceMode inference;
  ExplainTarget again = target;
  read_target(scan, target_states(model, scan, again.layer, again.tokens, interventions), again);
  return again;
}

}  // namespace onset
