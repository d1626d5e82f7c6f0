#include "onset/massive/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "onset/base/error.h"
#include "onset/massive/stages.h"
#include "onset/massive/trace.h"
#include "onset/model/model.h"

namespace onset {
namespace {

// |value| / median; infinity over a median of 0, and 0 where both are.
double over_median(float value, float median) {
  const auto size = static_cast<double>(std::fabs(value));
  if (median > 0) return size / static_cast<double>(median);
  return size > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

// Does the entry stay beyond the ratio for a quarter of the layers in a row, this one among them?
// Calls found(layer, entry) for each that does.
template <typename Found>
void for_each_lasting_entry(const PromptTrace& trace, Found&& found) {
  const std::size_t layers = trace.layers.size();
  const std::size_t needed = std::max<std::size_t>(1, (layers + 3) / 4);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::size_t, StateEntry>>>
      by_place;
  for (std::size_t l = 0; l < layers; ++l) {
    for (const StateEntry& entry : trace.layers[l].relative_entries) {
      by_place[{entry.token, entry.dim}].emplace_back(l, entry);
    }
  }
  for (const auto& [place, seen] : by_place) {
    for (std::size_t begin = 0; begin < seen.size();) {
      std::size_t end = begin + 1;
      while (end < seen.size() && seen[end].first == seen[end - 1].first + 1) ++end;
      for (std::size_t i = begin; end - begin >= needed && i < end; ++i) {
        found(seen[i].first, seen[i].second);
      }
      begin = end;
    }
  }
}

std::vector<std::vector<StateEntry>> massive_entries(const PromptTrace& trace, ScanRule rule) {
  std::vector<std::vector<StateEntry>> massive(trace.layers.size());
  if (rule == ScanRule::absolute) {
    for (std::size_t l = 0; l < trace.layers.size(); ++l) {
      massive[l] = trace.layers[l].absolute_entries;
    }
    return massive;
  }
  for_each_lasting_entry(
      trace, [&](std::size_t layer, const StateEntry& entry) { massive[layer].push_back(entry); });
  for (auto& entries : massive) {
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::fabs(a.value) > std::fabs(b.value);
    });
  }
  return massive;
}

std::optional<std::int64_t> first_massive_layer(
    const std::vector<std::vector<StateEntry>>& massive) {
  const auto found = std::find_if(massive.begin(), massive.end(),
                                  [](const auto& entries) { return !entries.empty(); });
  if (found == massive.end()) return std::nullopt;
  return found - massive.begin();
}

// The first layer with the largest entry of all.
std::size_t largest_layer(const PromptTrace& trace) {
  const auto largest =
      std::max_element(trace.layers.begin(), trace.layers.end(), [](const auto& a, const auto& b) {
        return std::fabs(a.statistics.largest.value) < std::fabs(b.statistics.largest.value);
      });
  return static_cast<std::size_t>(largest - trace.layers.begin());
}

// The token whose stages are told: of the largest entry at the ME layer, else of the largest
// anywhere.
std::int64_t stage_token(const PromptTrace& trace, std::optional<std::int64_t> me_layer) {
  if (me_layer) return trace.layers[static_cast<std::size_t>(*me_layer)].statistics.largest.token;
  return trace.layers[largest_layer(trace)].statistics.largest.token;
}

std::optional<std::string> prompt_note(const std::vector<std::int64_t>& ids) {
  if (ids.size() == 1) return "too_short";
  const bool uniform =
      std::adjacent_find(ids.begin(), ids.end(), std::not_equal_to<>()) == ids.end();
  return uniform ? std::optional<std::string>("uniform") : std::nullopt;
}

// The largest entry after that layer: its token's largest, whose parts are traced.
WrittenEntry written_entry(const PromptTrace& trace, std::size_t layer) {
  const StateEntry& entry = trace.layers[layer].statistics.largest;
  const EntryParts& parts =
      trace.layers[layer].tokens[static_cast<std::size_t>(entry.token)].at_largest;
  return {.layer = static_cast<std::int64_t>(layer),
          .token = entry.token,
          .dim = entry.dim,
          .value = entry.value,
          .resid_pre = parts.resid_pre,
          .attn_out = parts.attn_out,
          .ffn_out = parts.ffn_out,
          .experts = parts.experts,
          .shared_out = parts.shared_out};
}

PromptScan analyse(const ScanPrompt& prompt, const PromptTrace& trace, const ScanOptions& options) {
  PromptScan result;
  result.text = prompt.text;
  result.ids = prompt.ids;
  result.note = prompt_note(prompt.ids);
  const auto massive = massive_entries(trace, options.rule);
  result.me_layer = first_massive_layer(massive);
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    LayerStatistics statistics = trace.layers[l].statistics;
    statistics.massive = !massive[l].empty();
    // Of the relative rule those that last, which only the listed ones can be seen to do.
    statistics.massive_count = options.rule == ScanRule::absolute
                                   ? trace.layers[l].absolute_count
                                   : static_cast<std::int64_t>(massive[l].size());
    statistics.massive_entries = massive[l];
    if (statistics.massive) result.last_massive_layer = statistics.layer;
    result.layers.push_back(std::move(statistics));
  }
  if (result.me_layer) {
    result.at_me_layer = written_entry(trace, static_cast<std::size_t>(*result.me_layer));
  }
  result.largest = written_entry(trace, largest_layer(trace));
  result.stages = find_stages(trace, stage_token(trace, result.me_layer), options.min_abs);
  return result;
}

// The most frequent value; the lower on ties; nothing when there is none.
std::optional<std::int64_t> most_frequent(const std::vector<std::optional<std::int64_t>>& values,
                                          std::int64_t& count) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto& value : values) {
    if (value) ++counts[*value];
  }
  count = 0;
  std::optional<std::int64_t> best;
  for (const auto& [value, times] : counts) {
    if (times <= count) continue;
    best = value;
    count = times;
  }
  return best;
}

// Where every prompt is made of massive tokens alone the largest rise of a token counts, else the
// entry that comes nearest to the rule.
Candidate find_candidate(const ScanResult& result, const std::vector<PromptTrace>& traces,
                         bool by_rise) {
  Candidate best;
  double best_score = -1;
  for (std::size_t p = 0; p < traces.size(); ++p) {
    const std::int64_t token = stage_token(traces[p], std::nullopt);
    auto before = static_cast<double>(traces[p].input_largest[static_cast<std::size_t>(token)]);
    for (std::size_t l = 0; l < traces[p].layers.size(); ++l) {
      const LayerStatistics& layer = result.prompts[p].layers[l];
      const TokenTrace& at = traces[p].layers[l].tokens[static_cast<std::size_t>(token)];
      const double score = by_rise ? static_cast<double>(at.largest) - before : layer.ratio();
      before = static_cast<double>(at.largest);
      if (!(score > best_score)) continue;
      best_score = score;
      StateEntry entry = layer.largest;
      if (by_rise) {
        const EntryParts& parts = at.at_largest;
        entry = {.token = token,
                 .dim = parts.dim,
                 .value = (parts.resid_pre + parts.attn_out) + parts.ffn_out};
      }
      best = {.prompt = static_cast<std::int64_t>(p),
              .layer = layer.layer,
              .token = entry.token,
              .dim = entry.dim,
              .value = entry.value,
              .ratio = over_median(entry.value, layer.median_abs)};
    }
  }
  return best;
}

void explain_absence(ScanResult& result, const std::vector<PromptTrace>& traces) {
  const auto noted = [&](const char* note) {
    return std::all_of(result.prompts.begin(), result.prompts.end(),
                       [&](const PromptScan& prompt) { return prompt.note == note; });
  };
  const bool no_yardstick =
      std::all_of(result.prompts.begin(), result.prompts.end(),
                  [](const PromptScan& prompt) { return prompt.note.has_value(); });
  result.note = "below_rule";
  if (no_yardstick) result.note = noted("too_short") ? "too_short" : "uniform";
  result.candidate = find_candidate(result, traces, no_yardstick);
  result.stages = result.prompts[static_cast<std::size_t>(result.candidate->prompt)].stages;
}

void collect_places(ScanResult& result) {
  std::set<std::int64_t> dims;
  std::set<std::pair<std::int64_t, std::int64_t>> tokens;  // position, id
  for (const PromptScan& prompt : result.prompts) {
    for (const LayerStatistics& layer : prompt.layers) {
      for (const StateEntry& entry : layer.massive_entries) {
        dims.insert(entry.dim);
        tokens.emplace(entry.token,
                       entry.token == 0 ? -1 : prompt.ids[static_cast<std::size_t>(entry.token)]);
      }
    }
  }
  result.massive_dims.assign(dims.begin(), dims.end());
  for (const auto& [position, id] : tokens) {
    result.massive_tokens.push_back({.first = position == 0, .position = position, .id = id});
  }
}

std::string layer_words(std::optional<std::int64_t> layer) {
  return layer ? str_cat("layer ", *layer) : "no ME layer";
}

// What the other rule would say of the same run.
std::string other_rule(const ScanResult& result, const std::vector<PromptTrace>& traces,
                       const ScanOptions& options) {
  const bool relative = options.rule == ScanRule::absolute;
  std::vector<std::optional<std::int64_t>> layers;
  layers.reserve(traces.size());
  for (const PromptTrace& trace : traces) {
    layers.push_back(first_massive_layer(
        massive_entries(trace, relative ? ScanRule::relative : ScanRule::absolute)));
  }
  std::int64_t count = 0;
  const auto layer = most_frequent(layers, count);
  if (layer == result.me_layer) return {};
  return str_cat("the ", relative ? "relative" : "absolute", " rule finds ", layer_words(layer),
                 ", the ", relative ? "absolute" : "relative", " rule ",
                 layer_words(result.me_layer));
}

void require_expert(const ModelConfig& config, const ExpertId& asked) {
  const std::string name = str_cat("expert ", asked.expert, " of layer ", asked.layer);
  const std::string model = config.architecture;
  if (config.mixture.experts == 0) {
    throw usage_error(str_cat("there is no ", name, ": ", model, " is no mixture of experts"));
  }
  if (asked.layer < 0 || asked.layer >= config.layer_count()) {
    throw usage_error(
        str_cat("there is no ", name, ": the model has layers 0 to ", config.layer_count() - 1));
  }
  if (!config.is_mixture(asked.layer)) {
    throw usage_error(str_cat("there is no ", name, ": that layer of the model is dense"));
  }
  if (asked.expert < 0 || asked.expert >= config.mixture.experts) {
    throw usage_error(
        str_cat("there is no ", name, ": the model has experts 0 to ", config.mixture.experts - 1));
  }
}

}  // namespace

double LayerStatistics::ratio() const { return over_median(largest.value, median_abs); }

ScanResult scan(const Model& model, const std::vector<ScanPrompt>& prompts,
                const ScanOptions& options, const Log& log, const Hooks* interventions) {
  if (prompts.empty()) throw usage_error("scan needs at least one prompt");
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    if (prompts[p].ids.empty()) {
      throw usage_error(str_cat("prompt ", p, " has no tokens"), "give a text or ids");
    }
  }
  for (const ExpertId& off : options.without_experts) require_expert(model.config(), off);
  const std::vector<PromptTrace> traces =
      trace_prompts(model, prompts, options, log, interventions);
  ScanResult result;
  result.options = options;
  std::vector<std::optional<std::int64_t>> firsts;
  std::vector<std::optional<std::int64_t>> lasts;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    result.prompts.push_back(analyse(prompts[p], traces[p], options));
    firsts.push_back(result.prompts.back().me_layer);
    lasts.push_back(result.prompts.back().last_massive_layer);
  }
  std::int64_t count = 0;
  result.me_layer = most_frequent(firsts, count);
  result.agreement = static_cast<double>(count) / static_cast<double>(prompts.size());
  result.last_massive_layer = most_frequent(lasts, count);
  collect_places(result);
  if (result.me_layer) {
    const auto agrees =
        std::find_if(result.prompts.begin(), result.prompts.end(),
                     [&](const auto& prompt) { return prompt.me_layer == result.me_layer; });
    result.stages = agrees->stages;
  } else {
    explain_absence(result, traces);
  }
  result.rule_disagreement = other_rule(result, traces, options);
  return result;
}

}  // namespace onset
