#include <algorithm>
#include <array>
#include <charconv>

#include "onset/base/error.h"
#include "onset/base/sha256.h"
#include "onset/eval/results.h"

namespace onset {
namespace {

// As Python writes a float: the shortest digits that read back.
std::string python_number(double value) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

OrderedJson arguments_json(const EvalItem& item) {
  OrderedJson json = OrderedJson::object();
  const auto name = [](std::size_t i) { return str_cat("gen_args_", i); };
  switch (item.kind) {
    case ItemKind::choice:
      for (std::size_t i = 0; i < item.choices.size(); ++i) {
        json[name(i)] = {{"arg_0", item.context}, {"arg_1", item.choices[i].continuation}};
      }
      break;
    case ItemKind::generation:
      json[name(0)] = {{"arg_0", item.context},
                       {"arg_1", {{"until", item.stop}, {"max_gen_toks", item.max_new_tokens}}}};
      break;
    case ItemKind::text:
      json[name(0)] = {{"arg_0", item.context}};
      break;
  }
  return json;
}

// The answers, one for each request: [log-likelihood, is greedy] of a choice, a text, or the
// log-likelihood of a text.
OrderedJson responses_json(const EvalItem& item, const ItemAnswer& answer) {
  OrderedJson list = OrderedJson::array();
  if (item.kind == ItemKind::generation) {
    list.push_back(answer.text);
  } else if (item.kind == ItemKind::text) {
    list.push_back(python_number(-answer.nll));
  } else {
    for (std::size_t i = 0; i < answer.loglik.size(); ++i) {
      list.push_back({python_number(answer.loglik[i]), answer.greedy[i] ? "True" : "False"});
    }
  }
  return list;
}

// What onset adds to lm-eval's layout.
void add_details(OrderedJson& line, const EvalItem& item, const ItemAnswer& answer) {
  line["context_tokens"] = answer.context_tokens;
  switch (item.kind) {
    case ItemKind::choice:
      line["loglik"] = answer.loglik;
      line["choice_tokens"] = answer.choice_tokens;
      break;
    case ItemKind::generation:
      line["new_tokens"] = answer.new_tokens;
      line["finish_reason"] = name_of(answer.finish);
      line["truncated"] = answer.truncated;
      break;
    case ItemKind::text:
      line["scored_tokens"] = answer.scored_tokens;
      line["nll_per_window"] = answer.nll_per_window;
      break;
  }
  line["skipped"] = answer.skipped;
  line["cut"] = answer.cut;
}

OrderedJson value_json(const DocumentValue& value) {
  if (!value.units) return finite_or_null(value.value);
  return OrderedJson::array({finite_or_null(value.value), finite_or_null(*value.units)});
}

OrderedJson line_json(const EvalItem& item, const ItemAnswer& answer,
                      const FilteredScores& scores) {
  OrderedJson line{{"doc_id", item.doc},
                   {"doc", item.document},
                   {"target", item.target},
                   {"arguments", arguments_json(item)}};
  const auto responses = responses_json(item, answer);
  OrderedJson each = OrderedJson::array();  // one repetition of each request
  for (const auto& response : responses) each.push_back(OrderedJson::array({response}));
  line["resps"] = std::move(each);
  line["filtered_resps"] = item.kind == ItemKind::generation ? OrderedJson::array({scores.answer})
                                                             : OrderedJson(responses);
  line["filter"] = scores.filter;
  OrderedJson metrics = OrderedJson::array();
  for (const auto& value : scores.values) metrics.push_back(value.metric);
  line["metrics"] = std::move(metrics);
  line["doc_hash"] = document_hash(item.document);
  line["prompt_hash"] = sha256(item.context);
  line["target_hash"] = sha256(item.target);
  for (const auto& value : scores.values) line[value.metric] = value_json(value);
  add_details(line, item, answer);
  return line;
}

}  // namespace

std::string samples_jsonl(const AnsweredTask& task) {
  std::vector<std::string> filters;
  for (const auto& filter : task.result.task.filters) filters.push_back(filter.name);
  if (filters.empty()) filters.emplace_back("none");
  std::string text;
  for (std::size_t f = 0; f < filters.size(); ++f) {
    for (std::size_t i = 0; i < task.items.size(); ++i) {
      FilteredScores scores{.filter = filters[f], .answer = {}, .values = {}};
      if (!task.answers[i].skipped) scores = task.scores[i].at(f);
      const auto line = line_json(task.items[i], task.answers[i], scores);
      text += line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      text += '\n';
    }
  }
  return text;
}

}  // namespace onset
