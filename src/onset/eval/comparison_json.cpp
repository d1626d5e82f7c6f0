#include "onset/eval/comparison_json.h"

#include <cmath>

namespace onset {
namespace {

OrderedJson interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return OrderedJson::array({finite_or_null(interval->low), finite_or_null(interval->high)});
}

template <typename Value>
OrderedJson value_or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson row_json(const ComparisonRow& row) {
  const PairedResult& result = row.result;
  OrderedJson json{{"task", row.task}, {"filter", row.filter}, {"metric", row.metric}};
  json["group_tasks"] =
      row.group_tasks.empty() ? OrderedJson(nullptr) : OrderedJson(row.group_tasks);
  json["member_of"] = row.member_of.empty() ? OrderedJson(nullptr) : OrderedJson(row.member_of);
  json["higher_is_better"] = value_or_null(row.higher_is_better);
  json["items"] = row.by_windows ? "windows" : "documents";
  json["n"] = result.n;
  json["a"] = finite_or_null(result.a);
  json["b"] = finite_or_null(result.b);
  json["a_interval"] = interval_json(result.a_interval);
  json["b_interval"] = interval_json(result.b_interval);
  json["difference"] = finite_or_null(result.difference);
  json["interval"] = interval_json(result.interval);
  json["interval_method"] = result.interval ? OrderedJson(name_of(result.method)) : OrderedJson();
  json["bootstrap"] = {{"standard_error", finite_or_null(result.bootstrap.standard_error)},
                       {"percentile", interval_json(result.bootstrap.percentile)},
                       {"bca", interval_json(result.bootstrap.bca)}};
  json["wins"] = result.wins;
  json["losses"] = result.losses;
  json["both_right"] = result.binary ? OrderedJson(result.both_right) : OrderedJson(nullptr);
  json["both_wrong"] = result.binary
                           ? OrderedJson(result.n - result.wins - result.losses - result.both_right)
                           : OrderedJson(nullptr);
  json["test"] = name_of(result.test);
  json["p"] = finite_or_null(result.p);
  json["mid_p"] = value_or_null(result.mid_p);
  json["holm_p"] = finite_or_null(row.holm_p);
  json["family"] = row.family;
  json["detectable"] = value_or_null(result.detectable);
  json["without_score"] = row.without_score;
  if (row.is_nll) {
    json["perplexity_a"] = finite_or_null(std::exp(result.a));
    json["perplexity_b"] = finite_or_null(std::exp(result.b));
  }
  OrderedJson wins = OrderedJson::array();
  OrderedJson losses = OrderedJson::array();
  if (result.binary) {
    for (const ChangedItem& item : row.changed)
      (item.b > item.a ? wins : losses).push_back(item.doc);
  }
  json["won"] = result.binary && row.group_tasks.empty() ? wins : OrderedJson(nullptr);
  json["lost"] = result.binary && row.group_tasks.empty() ? losses : OrderedJson(nullptr);
  return json;
}

}  // namespace

const char* name_of(PairedTest test) {
  switch (test) {
    case PairedTest::mcnemar_exact:
      return "mcnemar_exact";
    case PairedTest::sign_flip_exact:
      return "sign_flip_exact";
    case PairedTest::sign_flip_sampled:
      return "sign_flip_sampled";
  }
  return "";
}

const char* name_of(IntervalMethod method) {
  return method == IntervalMethod::bootstrap_bca ? "bootstrap_bca" : "bonett_price";
}

OrderedJson comparison_json(const Comparison& comparison, const ComparisonOptions& options) {
  OrderedJson settings = OrderedJson::array();
  for (const auto& setting : comparison.settings) {
    settings.push_back({{"name", setting.name}, {"a", setting.a}, {"b", setting.b}});
  }
  OrderedJson pairings = OrderedJson::array();
  for (const auto& pairing : comparison.pairings) {
    pairings.push_back({{"task", pairing.task},
                        {"items", pairing.items},
                        {"only_a", pairing.only_a},
                        {"only_b", pairing.only_b},
                        {"other_prompts", pairing.other_prompts},
                        {"other_documents", pairing.other_documents},
                        {"hashed", pairing.hashed}});
  }
  OrderedJson rows = OrderedJson::array();
  for (const auto& row : comparison.rows) rows.push_back(row_json(row));
  return {{"options",
           {{"alpha", options.paired.alpha},
            {"power", options.paired.power},
            {"resamples", options.paired.resamples},
            {"seed", options.paired.seed}}},
          {"settings", settings},
          {"tasks", pairings},
          {"only_a", comparison.only_a},
          {"only_b", comparison.only_b},
          {"notes", comparison.notes},
          {"comparisons", rows}};
}

}  // namespace onset
