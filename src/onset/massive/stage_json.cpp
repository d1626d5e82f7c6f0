#include "onset/massive/stage_json.h"

#include <utility>

namespace onset {
namespace {

OrderedJson share_json(const std::optional<double>& share) {
  return share ? finite_or_null(*share) : OrderedJson(nullptr);
}

// In a mixture alone.
void add_experts(OrderedJson& row, const std::vector<ExpertPart>& parts,
                 const std::optional<float>& shared_out) {
  if (parts.empty() && !shared_out) return;
  OrderedJson experts = OrderedJson::array();
  for (const ExpertPart& part : parts) {
    experts.push_back({{"expert", part.expert}, {"value", float_or_null(part.value)}});
  }
  row["experts"] = std::move(experts);
  row["shared_out"] = shared_out ? float_or_null(*shared_out) : OrderedJson(nullptr);
}

OrderedJson written_json(const WrittenEntry& entry) {
  OrderedJson row{{"layer", entry.layer},
                  {"token", entry.token},
                  {"dim", entry.dim},
                  {"value", float_or_null(entry.value)},
                  {"parts",
                   {{"resid_pre", float_or_null(entry.resid_pre)},
                    {"attn_out", float_or_null(entry.attn_out)},
                    {"ffn_out", float_or_null(entry.ffn_out)}}}};
  add_experts(row, entry.experts, entry.shared_out);
  return row;
}

}  // namespace

OrderedJson largest_json(const PromptScan& prompt) {
  return {
      {"me_layer", prompt.at_me_layer ? written_json(*prompt.at_me_layer) : OrderedJson(nullptr)},
      {"all_layers", written_json(prompt.largest)}};
}

OrderedJson stages_json(const std::vector<Stage>& stages) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& stage : stages) {
    rows.push_back({{"layer", stage.layer},
                    {"kind", stage.kind == StageKind::rise ? "rise" : "fall"},
                    {"token", stage.token},
                    {"dim", stage.dim},
                    {"before", float_or_null(stage.before)},
                    {"after", float_or_null(stage.after)},
                    {"resid_pre", float_or_null(stage.resid_pre)},
                    {"attn_out", float_or_null(stage.attn_out)},
                    {"ffn_out", float_or_null(stage.ffn_out)},
                    {"resid_post", float_or_null(stage.resid_post())},
                    {"attn_share", share_json(stage.attn_share)},
                    {"ffn_share", share_json(stage.ffn_share)}});
    add_experts(rows.back(), stage.experts, stage.shared_out);
  }
  return rows;
}

}  // namespace onset
