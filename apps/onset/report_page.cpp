#include "report_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "explain_words_parts.h"
#include "masked.h"
#include "masked_page.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/comparison_figures.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"
#include "onset/report/rigidity_figures.h"
#include "onset/report/sinks_figures.h"
#include "report_words.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr TextStyle style{.utf8 = true, .colour = false};
constexpr std::size_t label_letters = 48;

void add(std::vector<Section>& sections, Section section) {
  if (section.figures.empty() && section.text.empty()) return;
  sections.push_back(std::move(section));
}

// The parts of an explanation, where there are any.
void add_explanation(const ModelReport& report, std::vector<Section>& sections) {
  if (!report.explanation) return;
  const auto& explanation = *report.explanation;
  const auto words = explain_words(explanation, style);
  std::map<std::int64_t, std::string> pieces;
  for (const auto& [id, bytes] : explanation.pieces) pieces[id] = printable(bytes, true);
  const auto& target = explanation.result.target;
  const auto& shown = target.tokens[target.shown];
  const auto& prompt = explanation.prompts[shown.prompt];
  const auto at = static_cast<std::size_t>(shown.token);
  std::string token = str_cat("token ", shown.token);
  if (at < prompt.shown.size()) {
    token += str_cat(" (\"", fit(printable(prompt.shown[at], true), 24, true), "\")");
  }
  const ExplainFiguresInput input{.result = explanation.result,
                                  .layers = std::ssize(explanation.scan.prompts.front().layers),
                                  .token = token,
                                  .pieces = pieces};
  const auto layer = str_cat("layer ", target.layer);
  add(sections, {.id = "norm",
                 .title = "What the norm before the FFN of " + layer + " does",
                 .text = words.norm,
                 .figures = norm_figures(input)});
  add(sections, {.id = "writers",
                 .title = "Which neurons write it",
                 .text = words.ffn,
                 .figures = neuron_figures(input)});
  add(sections, {.id = "experiment",
                 .title = "The norm, the FFN, or both: an experiment",
                 .text = words.factorial,
                 .figures = factorial_figures(input)});
  add(sections, {.id = "removal",
                 .title = "What takes it away again",
                 .text = words.fall,
                 .figures = fall_figures(input)});
  add(sections, {.id = "tokens-that-can",
                 .title = "Which tokens can carry it",
                 .text = words.vocabulary,
                 .figures = vocabulary_figures(input)});
}

void add_rigidity(const ModelReport& report, std::vector<Section>& sections) {
  if (!report.rigidity) return;
  const auto& rigidity = *report.rigidity;
  std::vector<std::string> prompts;
  for (const auto p : rigidity.compared) {
    prompts.push_back(shortened(printable(rigidity.prompts[p].text, true), label_letters));
  }
  add(sections,
      {.id = "rigidity",
       .title = "How rigid the massive token's state is",
       .text = rigidity_paragraphs(rigidity),
       .figures = rigidity_figures({.result = rigidity.result,
                                    .me_layer = rigidity.scan.me_layer,
                                    .last_massive_layer = rigidity.scan.last_massive_layer,
                                    .prompts = std::move(prompts)})});
}

void add_sinks(const ModelReport& report, std::vector<Section>& sections) {
  if (!report.sinks) return;
  const auto& sinks = *report.sinks;
  SinksFiguresInput input{.result = sinks.result,
                          .windows = sinks.windows,
                          .me_layer = report.scan.result->me_layer,
                          .last_massive_layer = report.scan.result->last_massive_layer};
  if (sinks.control) {
    input.control = &sinks.control->result;
    input.control_token = sinks.control->piece
                              ? str_cat("\"", printable(*sinks.control->piece, true), "\"")
                              : str_cat("id ", sinks.control->id);
  }
  add(sections, {.id = "sinks",
                 .title = "Attention sinks",
                 .text = sinks_paragraphs(sinks),
                 .figures = {sink_heads_figure(input), sink_layers_figure(input)}});
}

void add_doses(const ModelReport& report, std::vector<Section>& sections) {
  if (!report.explanation || !report.explanation->result.dose) return;
  const std::map<std::int64_t, std::string> none;
  add(sections,
      {.id = "doses",
       .title = "Dose and response: are the sinks their consequence?",
       .text = explain_words(*report.explanation, style).dose,
       .figures = dose_figures(
           {.result = report.explanation->result, .layers = 0, .token = {}, .pieces = none})});
}

MaskedParts masked_parts_of(const ModelReport& report) {
  const auto pointer = [](const auto& part) { return part ? &*part : nullptr; };
  return {.scan = report.scan,
          .explanation = pointer(report.explanation),
          .rigidity = pointer(report.rigidity),
          .sinks = pointer(report.sinks)};
}

std::vector<Fact> answers_of(const ModelReport& report) {
  auto answers = report_answers(report);
  if (report.scan.masked) answers.push_back(masked_answer(masked_parts_of(report)));
  return answers;
}

// The sections of one model in the order of the questions; `scanned` are those of its scan.
std::vector<Section> model_sections(const ModelReport& report, std::vector<Section> scanned) {
  std::vector<Section> sections;
  std::vector<Section> last;
  for (auto& section : scanned) {
    if (section.id == "method" && report.explanation && report.explanation->text) {
      section.facts.push_back({"experiments", text_words(*report.explanation->text, style)});
    }
    const bool reference =
        section.id == "prompt" || section.id == "prompts" || section.id == "method";
    (reference ? last : sections).push_back(std::move(section));
  }
  add_explanation(report, sections);
  add_rigidity(report, sections);
  add_sinks(report, sections);
  add_doses(report, sections);
  if (report.scan.masked) sections.push_back(masked_section(masked_parts_of(report)));
  if (!report.left_out.empty()) {
    sections.push_back({.id = "left-out", .title = "What is left out", .text = report.left_out});
  }
  std::move(last.begin(), last.end(), std::back_inserter(sections));
  return sections;
}

Page one_model(const ModelReport& report, const OrderedJson& run) {
  Page page = scan_page(scan_page_input(report.scan, run));
  page.kind = "onset report: massive activations";
  page.highlights = report_highlights(report);
  page.answers = answers_of(report);
  page.sections = model_sections(report, std::move(page.sections));
  return page;
}

// ---- several models

std::string failure_words(const ModelReport& report) {
  const auto& failure = report.scan.failure;
  return message_text(failure.message) +
         (failure.hint.empty() ? "" : " (" + message_text(failure.hint) + ")");
}

Table comparison_table(const std::vector<ModelReport>& reports) {
  Table table{
      .caption = {},
      .header = {"model", "layers", "ME layer", "depth", "to layer", "dims", "largest |x|",
                 "written by", "neurons", "sinks", "sinks at 0", "note"},
      .numeric = {false, true, true, true, true, false, true, false, true, true, true, false},
      .rows = {}};
  for (const auto& report : reports) {
    const auto name = model_name(report.scan.path);
    if (!report.scan.result) {
      std::vector<std::string> row(table.header.size());
      row.front() = name;
      row.back() = "failed: " + message_text(report.scan.failure.message);
      table.rows.push_back(std::move(row));
      continue;
    }
    const auto& scan = *report.scan.result;
    const auto& prompt = scan.prompts[shown_prompt(scan)];
    const auto layers = prompt.layers.size();
    double largest = 0;
    for (const auto& layer : prompt.layers) {
      largest = std::max(largest, static_cast<double>(std::fabs(layer.largest.value)));
    }
    std::string dims;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, scan.massive_dims.size()); ++i) {
      dims += str_cat(i == 0 ? "" : ", ", scan.massive_dims[i]);
    }
    std::string writer;
    for (const auto& stage : prompt.stages) {
      if (stage.kind != StageKind::rise || stage.layer != prompt.me_layer) continue;
      const bool ffn = std::fabs(stage.ffn_out) >= std::fabs(stage.attn_out);
      const auto& share = ffn ? stage.ffn_share : stage.attn_share;
      writer = (ffn ? "FFN" : "attention") + (share ? ", " + share_text(*share) : "");
    }
    const auto* explained = report.explanation ? &report.explanation->result : nullptr;
    std::string neurons;
    if (explained != nullptr && explained->ffn && !explained->ffn->entries.empty()) {
      const auto& entry = explained->ffn->entries.front();
      neurons = str_cat(entry.neurons_for_90_percent, " of ", entry.neuron_count);
    }
    std::string at_zero;
    if (explained != nullptr && explained->dose) {
      for (const auto& condition : explained->dose->conditions) {
        if (condition.dose != 0.0) continue;
        at_zero = share_text(sinks_behind(condition.text.sinks, explained->dose->layer));
      }
    }
    const double depth =
        scan.me_layer ? static_cast<double>(*scan.me_layer + 1) / static_cast<double>(layers) : 0;
    table.rows.push_back({name, str_cat(layers), scan.me_layer ? str_cat(*scan.me_layer) : "none",
                          scan.me_layer ? share_text(depth) : "",
                          scan.last_massive_layer ? str_cat(*scan.last_massive_layer) : "", dims,
                          number_text(largest), writer, neurons,
                          report.sinks ? share_text(report.sinks->result.summary.sink_rate) : "",
                          at_zero, scan.note.value_or("")});
  }
  return table;
}

Section comparison_section(const std::vector<ModelReport>& reports) {
  std::vector<ComparedModel> compared;
  for (const auto& report : reports) {
    if (!report.scan.result) continue;
    compared.push_back({.name = model_name(report.scan.path),
                        .scan = *report.scan.result,
                        .prompt = shown_prompt(*report.scan.result)});
  }
  Section section{.id = "comparison", .title = "The models beside each other"};
  if (!compared.empty()) section.figures.push_back(comparison_figure(compared));
  section.tables.push_back(comparison_table(reports));
  section.remark =
      "Depth is the share of blocks up to the ME layer. \"Sinks\" is the share of (sample, layer, "
      "head) that give the first token more than 0.3 of their attention, \"sinks at 0\" that of "
      "the "
      "layers after the ME layer with the massive entries set to 0; \"neurons\" write "
      "nine "
      "tenths of what is written into the first massive dim.";
  return section;
}

std::vector<std::string> comparison_lead(const std::vector<ModelReport>& reports) {
  std::size_t measured = 0;
  std::size_t with = 0;
  std::vector<std::string> single;
  for (const auto& report : reports) {
    if (!report.scan.result) continue;
    ++measured;
    if (!report.scan.result->me_layer) continue;
    ++with;
    single.push_back(str_cat(model_name(report.scan.path), ": layer ",
                             *report.scan.result->me_layer, " of ",
                             report.scan.model["layers"].dump()));
  }
  std::string text = str_cat("Massive activations are born in one layer in ", with, " of ",
                             counted(static_cast<std::int64_t>(measured), "model"), " (",
                             join(single, "; "), ").");
  if (with == 0) text = str_cat("None of ", measured, " models has an ME layer.");
  std::vector<std::string> lead{text};
  if (measured < reports.size()) {
    lead.push_back(str_cat(counted(static_cast<std::int64_t>(reports.size() - measured), "model"),
                           " could not be measured; the table says why."));
  }
  return lead;
}

Page several_models(const std::vector<ModelReport>& reports, const OrderedJson& run) {
  Page page{.kind = "onset report: massive activations",
            .heading = str_cat(reports.size(), " models"),
            .lead = comparison_lead(reports),
            .highlights = {},
            .sections = {},
            .shared = nullptr};
  page.sections.push_back(comparison_section(reports));
  page.scopes.emplace_back(nullptr);
  for (std::size_t m = 0; m < reports.size(); ++m) {
    const auto& report = reports[m];
    const auto prefix = str_cat("m", m, "-");
    Section chapter{.id = prefix + "model",
                    .title = model_name(report.scan.path),
                    .chapter = true,
                    .scope = page.scopes.size()};
    if (!report.scan.result) {
      chapter.text = {"This model could not be measured: " + failure_words(report)};
      page.sections.push_back(std::move(chapter));
      continue;
    }
    Page scanned = scan_page(scan_page_input(report.scan, run));
    page.scopes.push_back(std::move(scanned.shared));
    chapter.text = std::move(scanned.lead);
    chapter.highlights = report_highlights(report);
    chapter.answers = answers_of(report);
    page.sections.push_back(std::move(chapter));
    for (auto& section : model_sections(report, std::move(scanned.sections))) {
      section.id = prefix + section.id;
      section.scope = page.scopes.size() - 1;
      for (auto& figure : section.figures) figure.id = prefix + figure.id;
      page.sections.push_back(std::move(section));
    }
  }
  return page;
}

}  // namespace

Page report_page(const std::vector<ModelReport>& reports, const OrderedJson& run) {
  return reports.size() == 1 ? one_model(reports.front(), run) : several_models(reports, run);
}

OrderedJson report_json(const ModelReport& report) {
  OrderedJson json{{"path", valid_utf8(report.scan.path)},
                   {"wemask", wemask_json(report.scan.mask)},
                   {"scan", scan_json(report.scan)}};
  json["explain"] =
      report.explanation ? explanation_json(*report.explanation) : OrderedJson(nullptr);
  json["rigidity"] = report.rigidity ? rigidity_json(*report.rigidity) : OrderedJson(nullptr);
  json["sinks"] = report.sinks ? sinks_json(*report.sinks) : OrderedJson(nullptr);
  json["left_out"] = OrderedJson::array();
  for (const auto& sentence : report.left_out) json["left_out"].push_back(valid_utf8(sentence));
  return json;
}

}  // namespace onset::app
