// What a scan found, in words.

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "scan_report.h"
#include "text.h"

namespace onset::app {
namespace {

std::string block_text(std::int64_t layer, std::size_t layers) {
  return str_cat("layer ", layer, " (block ", layer + 1, " of ", layers, ")");
}

std::string token_name(const EncodedPrompt& prompt, std::int64_t token, const TextStyle& style) {
  const auto at = static_cast<std::size_t>(token);
  std::string text = str_cat("token ", token);
  if (at < prompt.shown.size()) {
    text += " (\"" + fit(printable(prompt.shown[at], style.utf8), 24, style.utf8) + "\")";
  } else if (at < prompt.ids.size()) {
    text += str_cat(" (id ", prompt.ids[at], ")");
  }
  return text;
}

// "its FFN (100.0 %)", "its attention": the part of what the block added, with its share.
std::string part_text(const Stage& stage, bool ffn) {
  const auto& share = ffn ? stage.ffn_share : stage.attn_share;
  const std::string expert = ffn ? main_expert(stage) : "";
  std::string text = ffn ? "its FFN" : "its attention";
  if (share)
    text += str_cat(" (", percent(*share), expert.empty() ? "" : ", most of it ", expert, ")");
  if (!share && !expert.empty()) text += ", most of it " + expert;
  return text;
}

// "LEAD by its FFN (100.0 %)": the larger part; both of them where neither has 60 %, without the
// lead.
std::string writer_text(const Stage& stage, const std::string& lead) {
  const bool ffn = std::abs(stage.ffn_out) >= std::abs(stage.attn_out);
  const auto& share = ffn ? stage.ffn_share : stage.attn_share;
  if (!share || *share > 0.6 || *share < 0.4) return lead + "by " + part_text(stage, ffn);
  return "half by " + part_text(stage, false) + ", half by " + part_text(stage, true);
}

// What "times" counts: "10587 times the layer's median".
std::string ratio_text(const LayerStatistics& layer) {
  return compact(layer.ratio()) + " times the layer's median";
}

std::int64_t prompts_with(const ScanResult& result, const std::optional<std::string>& note) {
  return std::count_if(result.prompts.begin(), result.prompts.end(),
                       [&note](const PromptScan& prompt) { return prompt.note == note; });
}

// "; 8 of 8 prompts agree": of those that can be judged, and how many cannot.
std::string agreement_text(const ScanResult& result) {
  const auto count = static_cast<std::int64_t>(result.prompts.size());
  if (count == 1) return "";
  const auto agreeing = std::llround(result.agreement * static_cast<double>(count));
  const auto judged = prompts_with(result, std::nullopt);
  const auto agreeing_judged = std::count_if(
      result.prompts.begin(), result.prompts.end(),
      [&result](const auto& prompt) { return !prompt.note && prompt.me_layer == result.me_layer; });
  if (judged == count || judged == 0) {
    return str_cat("; ", agreeing, " of ", count, " prompts agree");
  }
  std::string text =
      str_cat("; ", agreeing_judged, " of ", counted(judged, "prompt"), " that can be judged ",
              judged == 1 && agreeing_judged == 1 ? "agrees" : "agree", " (");
  const auto too_short = prompts_with(result, "too_short");
  const auto uniform = prompts_with(result, "uniform");
  if (too_short > 0) text += str_cat(too_short, " too short");
  if (too_short > 0 && uniform > 0) text += ", ";
  if (uniform > 0) text += str_cat(uniform, " of one repeated token");
  return text + ")";
}

const Stage* stage_at(const PromptScan& prompt, std::int64_t layer, StageKind kind) {
  for (const auto& stage : prompt.stages) {
    if (stage.layer == layer && stage.kind == kind) return &stage;
  }
  return nullptr;
}

std::string birth_sentence(const ModelScan& scan, const PromptScan& prompt,
                           const EncodedPrompt& encoded, const TextStyle& style) {
  const auto me = *prompt.me_layer;
  const auto& layer = prompt.layers[static_cast<std::size_t>(me)];
  std::string text = str_cat(
      "Massive activations are born in ", block_text(me, prompt.layers.size()), ": ",
      token_name(encoded, layer.largest.token, style), " reaches ", compact(layer.largest.value),
      " in dimension ", layer.largest.dim, ", ", ratio_text(layer));
  if (const auto* stage = stage_at(prompt, me, StageKind::rise)) {
    text += ", written " + writer_text(*stage, "");
  } else {
    text += ", without doubling in this one layer";
  }
  return text + agreement_text(*scan.result) + ".";
}

// " in 7 of 8 prompts, to layer 28 in 1": where the prompts differ in their last massive layer.
std::string spread_text(const ScanResult& result, std::int64_t last) {
  std::vector<std::int64_t> others;
  std::int64_t agreeing = 0;
  for (const auto& prompt : result.prompts) {
    if (prompt.last_massive_layer == last) {
      ++agreeing;
    } else if (prompt.last_massive_layer) {
      others.push_back(*prompt.last_massive_layer);
    }
  }
  const auto count = static_cast<std::int64_t>(result.prompts.size());
  if (agreeing == count) return "";
  std::string text = str_cat(" in ", agreeing, " of ", count, " prompts");
  if (others.empty()) return text;
  const auto [low, high] = std::minmax_element(others.begin(), others.end());
  text +=
      *low == *high ? str_cat(", to layer ", *low) : str_cat(", to layers ", *low, " to ", *high);
  return text + str_cat(" in ", others.size());
}

std::string end_sentence(const ScanResult& result, const PromptScan& prompt) {
  const auto last = prompt.last_massive_layer.value_or(*prompt.me_layer);
  const auto layers = static_cast<std::int64_t>(prompt.layers.size());
  const auto spread = spread_text(result, last);
  if (last == layers - 1) return "They last to the end of the model" + spread + ".";
  const auto where = block_text(last, prompt.layers.size()) + spread;
  if (const auto* fall = stage_at(prompt, last + 1, StageKind::fall)) {
    return str_cat("They last to ", where, "; layer ", fall->layer, " takes token ", fall->token,
                   " in dimension ", fall->dim, " from ", compact(fall->resid_pre), " to ",
                   compact(fall->resid_post()), ", ", writer_text(*fall, "most of it "), ".");
  }
  // Nothing takes them away: the median has grown, or the entry has shrunk a little.
  const auto& next = prompt.layers[static_cast<std::size_t>(last + 1)];
  return str_cat("They pass the rule up to ", where, "; after layer ", last + 1,
                 " the largest entry is still ", compact(next.largest.value), ", ",
                 ratio_text(next), ".");
}

std::string rise_sentence(const PromptScan& prompt) {
  const Stage* largest = nullptr;
  for (const auto& stage : prompt.stages) {
    const bool larger =
        largest == nullptr || stage.after - stage.before > largest->after - largest->before;
    if (stage.kind == StageKind::rise && larger) largest = &stage;
  }
  if (largest == nullptr) return "No layer makes an entry rise twofold above the threshold.";
  return str_cat("The largest rise is in ", block_text(largest->layer, prompt.layers.size()),
                 ": the largest entry of token ", largest->token, " goes from ",
                 compact(largest->before), " to ", compact(largest->after), ", in dimension ",
                 largest->dim, ", written ", writer_text(*largest, ""), ".");
}

// Why there is no ME layer, and what comes nearest.
std::string absence(const ModelScan& scan, const TextStyle& style) {
  const auto& result = *scan.result;
  const auto shown = shown_prompt(result);
  const auto& prompt = result.prompts[shown];
  std::string text = "No ME layer. ";
  if (result.note == "too_short") {
    return text +
           "With one token every entry belongs to what may be the massive token, so the median is "
           "no yardstick and the rule cannot find it. " +
           rise_sentence(prompt);
  }
  if (result.note == "uniform") {
    return text +
           "One token is repeated throughout, so every position may be massive and the median is "
           "no yardstick. " +
           rise_sentence(prompt);
  }
  text += result.options.rule == ScanRule::absolute
              ? str_cat("No entry is above ", shortest(result.options.min_abs), " and above ",
                        shortest(result.options.min_ratio), " times the median of its layer.")
              : str_cat("No entry stays above ", shortest(result.options.min_ratio),
                        " times the layer's median for a quarter of the layers.");
  if (const auto& candidate = result.candidate) {
    text += str_cat(" The nearest is ", compact(candidate->value), " after ",
                    block_text(candidate->layer, prompt.layers.size()), ", ",
                    token_name(scan.prompts[shown], candidate->token, style), ", dimension ",
                    candidate->dim, ": ", compact(candidate->ratio), " times the layer's median.");
  }
  return text;
}

}  // namespace

std::vector<std::string> verdict_paragraphs(const ModelScan& scan, const TextStyle& style) {
  const auto& result = *scan.result;
  std::vector<std::string> paragraphs;
  if (result.me_layer) {
    const auto shown = shown_prompt(result);
    const auto& prompt = result.prompts[shown];
    paragraphs.push_back(birth_sentence(scan, prompt, scan.prompts[shown], style) + " " +
                         end_sentence(result, prompt));
  } else {
    paragraphs.push_back(absence(scan, style));
  }
  if (const auto& obstacle = scan.model.at("wemask_obstacle"); !obstacle.is_null()) {
    paragraphs.push_back("WeMask does not apply to this model: " + obstacle.get<std::string>() +
                         ".");
  }
  if (!result.rule_disagreement.empty()) paragraphs.push_back("Note: " + result.rule_disagreement);
  return paragraphs;
}

std::string scan_verdict(const ModelScan& scan, const TextStyle& style) {
  return wrap(join(verdict_paragraphs(scan, style), "\n"), 80, 0) + "\n";
}

}  // namespace onset::app
