#include "masked_page.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/html.h"
#include "onset/report/masked_figures.h"
#include "onset/report/rigidity_words.h"

namespace onset::app {
namespace {

struct Row {
  std::string name;
  double unmasked = 0;
  double masked = 0;
};

std::string shown(double value) {
  return std::isnan(value) ? std::string("none") : number_text(value);
}

std::string change_text(const Row& row) {
  if (row.unmasked == row.masked) return "0";
  const double change = row.masked - row.unmasked;
  if (std::isnan(change)) return {};
  return (change > 0 ? "+" : "") + number_text(change);
}

double layer_or_none(const std::optional<std::int64_t>& layer) {
  return layer ? static_cast<double>(*layer) : std::nan("");
}

double largest_of(const PromptScan& prompt) {
  double largest = 0;
  for (const auto& layer : prompt.layers) {
    largest = std::max(largest, static_cast<double>(std::fabs(layer.largest.value)));
  }
  return largest;
}

void add_scan_rows(const ModelScan& scan, std::vector<Row>& rows) {
  const auto at = shown_prompt(*scan.result);
  const auto& unmasked = scan.result->prompts[at];
  const auto& masked = scan.masked->prompts[at];
  rows.push_back(
      {"ME layer", layer_or_none(scan.result->me_layer), layer_or_none(scan.masked->me_layer)});
  rows.push_back({"last massive layer", layer_or_none(scan.result->last_massive_layer),
                  layer_or_none(scan.masked->last_massive_layer)});
  rows.push_back({"largest |x| of any layer", largest_of(unmasked), largest_of(masked)});
  rows.push_back({"largest |x| after the last layer",
                  std::fabs(static_cast<double>(unmasked.layers.back().largest.value)),
                  std::fabs(static_cast<double>(masked.layers.back().largest.value))});
}

void add_explanation_rows(const Explanation& explanation, std::vector<Row>& rows) {
  const auto& unmasked = explanation.result.dose;
  const auto& masked = explanation.masked->dose;
  if (!unmasked || !masked) return;
  for (const auto& condition : unmasked->conditions) {
    if (condition.name != "dose" || (condition.dose != 1.0 && condition.dose != 0.0)) continue;
    const auto* other = condition_of(*masked, condition.name, condition.dose);
    if (other == nullptr) continue;
    const std::string entries =
        condition.dose == 1.0 ? "entries as they are" : "massive entries set to 0";
    rows.push_back(
        {"perplexity of the text, " + entries, condition.text.perplexity, other->text.perplexity});
    rows.push_back({"sinks of later layers, " + entries,
                    sinks_behind(condition.text.sinks, unmasked->layer),
                    sinks_behind(other->text.sinks, masked->layer)});
  }
}

// Over the masked layers.
double mean_pairs(const RigidityResult& result, const MaskSpec& mask, std::size_t site) {
  double sum = 0;
  double count = 0;
  for (std::int64_t l = mask.from_layer; l <= mask.to_layer; ++l) {
    const double value = result.sites[site].token.mean_prompts[static_cast<std::size_t>(l)];
    if (std::isnan(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

void add_rigidity_rows(const ModelRigidity& rigidity, std::vector<Row>& rows) {
  if (rigidity.result.prompts.size() < 2) return;
  for (std::size_t s = 0; s < rigidity.result.sites.size(); ++s) {
    rows.push_back({str_cat("cosine between prompts (masked layers): ",
                            site_words(rigidity.result.sites[s].site)),
                    mean_pairs(rigidity.result, *rigidity.mask, s),
                    mean_pairs(*rigidity.masked, *rigidity.mask, s)});
  }
}

std::vector<Row> rows_of(const MaskedParts& parts) {
  std::vector<Row> rows;
  add_scan_rows(parts.scan, rows);
  if (parts.sinks != nullptr) {
    rows.push_back({"sink rate", parts.sinks->result.summary.sink_rate,
                    parts.sinks->masked->summary.sink_rate});
  }
  if (parts.explanation != nullptr) add_explanation_rows(*parts.explanation, rows);
  if (parts.rigidity != nullptr) add_rigidity_rows(*parts.rigidity, rows);
  return rows;
}

}  // namespace

Section masked_section(const MaskedParts& parts) {
  Section section{.id = "masked", .title = "With the mask beside without"};
  section.text.push_back("The mask: " + mask_words(*parts.scan.mask) + ".");
  section.text.push_back(scan_masked_paragraphs(parts.scan).front());
  if (parts.explanation != nullptr) {
    section.text.push_back(explain_masked_paragraphs(*parts.explanation).front());
  }
  section.text.push_back(masked_caution());
  Table table{.caption = {},
              .header = {"", "unmasked", "masked", "change"},
              .numeric = {false, true, true, true},
              .rows = {}};
  for (const Row& row : rows_of(parts)) {
    table.rows.push_back({row.name, shown(row.unmasked), shown(row.masked), change_text(row)});
  }
  section.tables.push_back(std::move(table));
  const auto at = shown_prompt(*parts.scan.result);
  MaskedFiguresInput input{.unmasked = parts.scan.result->prompts[at],
                           .masked = parts.scan.masked->prompts[at],
                           .from_layer = parts.scan.mask->from_layer};
  if (parts.sinks != nullptr) {
    input.sinks = &parts.sinks->result;
    input.masked_sinks = &*parts.sinks->masked;
    input.windows = parts.sinks->windows;
  }
  if (parts.rigidity != nullptr) {
    input.rigidity = &parts.rigidity->result;
    input.masked_rigidity = &*parts.rigidity->masked;
  }
  section.figures = masked_figures(input);
  return section;
}

Fact masked_answer(const MaskedParts& parts) {
  std::vector<std::string> changes;
  for (const Row& row : rows_of(parts)) {
    // What differs by less than is shown goes without saying: the table has it.
    if (shown(row.unmasked) == shown(row.masked)) continue;
    changes.push_back(str_cat(row.name, " ", shown(row.unmasked), " to ", shown(row.masked)));
  }
  std::string text = "The mask is " + mask_words(*parts.scan.mask) + ". ";
  text += changes.empty() ? "None of the numbers measured here changes."
                          : "Without and with it: " + join(changes, "; ") + ".";
  return {"What does the mask change?",
          text + " That is no measure of benefit: it says nothing about answers."};
}

}  // namespace onset::app
