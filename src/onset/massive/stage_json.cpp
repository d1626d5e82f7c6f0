#include "onset/massive/stage_json.h"

namespace onset {
namespace {

OrderedJson share_json(const std::optional<double>& share) {
  return share ? finite_or_null(*share) : OrderedJson(nullptr);
}

}  // namespace

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
    if (stage.experts.empty() && !stage.shared_out) continue;
    OrderedJson experts = OrderedJson::array();
    for (const ExpertPart& part : stage.experts) {
      experts.push_back({{"expert", part.expert}, {"value", float_or_null(part.value)}});
    }
    rows.back()["experts"] = std::move(experts);
    rows.back()["shared_out"] =
        stage.shared_out ? float_or_null(*stage.shared_out) : OrderedJson(nullptr);
  }
  return rows;
}

}  // namespace onset
