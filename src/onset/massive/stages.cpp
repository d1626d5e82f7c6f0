#include "onset/massive/stages.h"

#include <cmath>

#include "onset/base/log.h"

namespace onset {
namespace {

// Below this the shares of a change say nothing.
constexpr double smallest_change = 1.0;

std::optional<double> share(float part, const EntryParts& parts) {
  const double change = static_cast<double>(parts.attn_out) + static_cast<double>(parts.ffn_out);
  if (std::fabs(change) < smallest_change) return std::nullopt;
  return static_cast<double>(part) / change;
}

Stage make_stage(StageKind kind, std::int64_t layer, std::int64_t token, float before, float after,
                 const EntryParts& parts) {
  return {.layer = layer,
          .kind = kind,
          .token = token,
          .dim = parts.dim,
          .before = before,
          .after = after,
          .resid_pre = parts.resid_pre,
          .attn_out = parts.attn_out,
          .ffn_out = parts.ffn_out,
          .attn_share = share(parts.attn_out, parts),
          .ffn_share = share(parts.ffn_out, parts),
          .experts = parts.experts,
          .shared_out = parts.shared_out};
}

}  // namespace

std::vector<Stage> find_stages(const PromptTrace& trace, std::int64_t token, double min_abs) {
  std::vector<Stage> stages;
  const auto t = static_cast<std::size_t>(token);
  float before = trace.input_largest[t];
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const TokenTrace& at = trace.layers[l].tokens[t];
    const auto m_before = static_cast<double>(before);
    const auto m_after = static_cast<double>(at.largest);
    const auto layer = static_cast<std::int64_t>(l);
    if (m_after >= 2 * m_before && m_after > min_abs) {
      stages.push_back(
          make_stage(StageKind::rise, layer, token, before, at.largest, at.at_largest));
    } else if (m_after <= m_before / 2 && m_before > min_abs) {
      stages.push_back(
          make_stage(StageKind::fall, layer, token, before, at.largest, at.at_previous));
    }
    before = at.largest;
  }
  return stages;
}

std::vector<Stage> token_stages(const Model& model, const ScanPrompt& prompt, std::int64_t token,
                                const ScanOptions& options, const Hooks* interventions) {
  const auto traces = trace_prompts(model, {prompt}, options, {}, interventions);
  return find_stages(traces.front(), token, options.min_abs);
}

}  // namespace onset
