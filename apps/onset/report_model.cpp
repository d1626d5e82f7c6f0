#include "report_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::size_t most_sink_samples = 16;

struct Part {
  const char* name;
  bool& (*of)(ReportParts&);
};

const std::array<Part, 8>& part_table() {
  static const std::array<Part, 8> table{{
      {"norm", [](ReportParts& parts) -> bool& { return parts.explain.norm; }},
      {"ffn", [](ReportParts& parts) -> bool& { return parts.explain.ffn; }},
      {"factorial", [](ReportParts& parts) -> bool& { return parts.explain.factorial; }},
      {"fall", [](ReportParts& parts) -> bool& { return parts.explain.fall; }},
      {"vocabulary", [](ReportParts& parts) -> bool& { return parts.explain.vocabulary; }},
      {"dose", [](ReportParts& parts) -> bool& { return parts.explain.dose; }},
      {"rigidity", [](ReportParts& parts) -> bool& { return parts.rigidity; }},
      {"sinks", [](ReportParts& parts) -> bool& { return parts.sinks; }},
  }};
  return table;
}

void scan_for_report(const Model& model, const std::vector<PromptSource>& sources,
                     PromptEncoder& encoder, const ReportOptions& options, const Hooks* masked,
                     const Log& log, ModelScan& scan) {
  for (const auto& source : sources) scan.prompts.push_back(encoder.encode(source));
  scan.bos = encoder.bos();
  scan.model["bos"] = scan.bos ? OrderedJson(*scan.bos) : OrderedJson("none");
  std::vector<ScanPrompt> prompts;
  for (const auto& prompt : scan.prompts) prompts.push_back({prompt.text, prompt.ids});
  const auto run = [&](const Hooks* interventions) {
    auto result = onset::scan(model, prompts, options.scan, log, interventions);
    for (std::size_t i = 0; i < scan.prompts.size(); ++i) {
      result.prompts[i].pieces = scan.prompts[i].pieces;
    }
    return result;
  };
  auto result = run(nullptr);
  if (masked != nullptr) scan.masked = run(masked);
  const auto shown = shown_prompt(result);
  scan.states = observe_states(model, scan.prompts[shown].ids, view_of(result, shown), log,
                               options.scan.without_experts);
  scan.result = std::move(result);
}

Explanation explain_for_report(const Model& model, const ModelScan& scan, PromptEncoder& encoder,
                               const ReportOptions& options, const Log& log) {
  ExplainOptions wanted;
  wanted.parts = options.parts.explain;
  Explanation explanation;
  explanation.path = scan.path;
  explanation.model = scan.model;
  explanation.bos = scan.bos;
  explanation.prompts = scan.prompts;
  explanation.scan = *scan.result;
  const auto target = choose_target(model, explanation.scan, wanted);
  std::optional<ExperimentText> text;
  if (wanted.parts.factorial || wanted.parts.dose) {
    text = experiment_text_of(options.text, model, encoder, log, explanation);
  }
  explanation.result = explain(model, explanation.scan, target, text, wanted, log);
  explanation.mask = scan.mask;
  explanation.masked_scan = scan.masked;
  if (explanation.mask) explain_under_mask(model, text, wanted, log, explanation);
  name_vocabulary(encoder, explanation);
  return explanation;
}

ModelRigidity rigidity_for_report(const Model& model, const ModelScan& scan, const Hooks* masked,
                                  const Log& log) {
  ModelRigidity rigidity;
  rigidity.path = scan.path;
  rigidity.model = scan.model;
  rigidity.bos = scan.bos;
  rigidity.prompts = scan.prompts;
  rigidity.scan = *scan.result;
  auto choice = choose_tokens(rigidity.scan, {});
  if (choice.prompts.size() > most_rigidity_prompts) {
    choice.prompts.resize(most_rigidity_prompts);
    choice.scanned.resize(most_rigidity_prompts);
  }
  rigidity.compared = choice.scanned;
  rigidity.result = measure_rigidity(model, choice.prompts, log);
  rigidity.mask = scan.mask;
  if (masked != nullptr) rigidity.masked = measure_rigidity(model, choice.prompts, log, masked);
  return rigidity;
}

// The samples of `onset sinks` without options: 64 tokens each, the first 16.
SinkSamples sink_samples(const ReportOptions& options, PromptEncoder& encoder) {
  const auto ids = text_ids(options.text, encoder);
  SinkSamples samples;
  samples.source = !options.text.ids.empty()   ? SampleSource::ids
                   : options.text.file.empty() ? SampleSource::built_in
                                               : SampleSource::file;
  samples.bos = encoder.text_bos();
  samples.text_tokens = std::ssize(ids);
  const auto length =
      std::min<std::int64_t>(sink_sample_length, samples.text_tokens + (samples.bos ? 1 : 0));
  require_input(length >= 2, "the text has too few tokens for a sample");
  samples.ids = cut_samples(ids, length, 0, samples.bos);
  samples.text_samples = std::ssize(samples.ids);
  if (samples.ids.size() > most_sink_samples) samples.ids.resize(most_sink_samples);
  return samples;
}

ModelSinks sinks_for_report(const Model& model, const ModelScan& scan, PromptEncoder& encoder,
                            const ReportOptions& options, const Hooks* masked, const Log& log) {
  ModelSinks sinks;
  sinks.path = scan.path;
  sinks.model = scan.model;
  for (const auto& layer : model.config().layers) sinks.windows.push_back(layer.sliding_window);
  sinks.samples = sink_samples(options, encoder);
  sinks.result = measure_sinks(model, sinks.samples.ids, {}, log);
  sinks.mask = scan.mask;
  if (masked != nullptr) {
    sinks.masked = measure_sinks(model, sinks.samples.ids, {}, log, masked);
  }
  auto& control = sinks.control.emplace();
  control.id = most_frequent_token(sinks.samples.ids);
  if (options.text.ids.empty() && control.id < encoder.tokenizer().vocabulary_size()) {
    control.piece = encoder.tokenizer().piece_bytes(static_cast<TokenId>(control.id));
  }
  const std::vector<std::vector<std::int64_t>> repeated{
      std::vector<std::int64_t>(sinks.samples.ids.front().size(), control.id)};
  control.length = std::ssize(repeated.front());
  control.result = measure_sinks(model, repeated, {}, log);
  if (masked != nullptr) control.masked = measure_sinks(model, repeated, {}, log, masked);
  return sinks;
}

// One part; what it cannot do here is said and not the end of the report.
template <typename Result, typename Make>
void attempt(std::optional<Result>& result, const std::string& name, const Log& log,
             std::vector<std::string>& left_out, const Make& make) {
  try {
    result = make();
  } catch (const Error& error) {
    const std::string why = message_text(error.what());
    left_out.push_back(str_cat(name, ": ", why));
    log.warning(str_cat(name, " is left out: ", why));
  }
}

}  // namespace

bool ReportParts::any_explain() const {
  return explain.norm || explain.ffn || explain.factorial || explain.fall || explain.vocabulary ||
         explain.dose;
}

std::vector<std::string> report_part_names() {
  std::vector<std::string> names;
  for (const auto& part : part_table()) names.emplace_back(part.name);
  return names;
}

ReportParts parse_report_parts(const std::string& only, const std::string& skip) {
  if (!only.empty() && !skip.empty()) {
    throw usage_error("--only and --skip exclude each other", "leave one of them out");
  }
  const auto names = report_part_names();
  ReportParts parts;
  if (!only.empty()) {
    for (const auto& part : part_table()) part.of(parts) = false;
    for (const auto at : parse_part_names("--only", only, names)) part_table()[at].of(parts) = true;
  } else if (!skip.empty()) {
    for (const auto at : parse_part_names("--skip", skip, names))
      part_table()[at].of(parts) = false;
  }
  return parts;
}

void measure_report(const std::vector<PromptSource>& sources, const ReportOptions& options,
                    const Log& log, ModelReport& report) {
  auto& scan = report.scan;
  // Many passes: what a computation needs converted is kept.
  const auto model = open_model(scan.path, options.compute, log);
  scan.model = model_json(model);
  scan.mask = mask_for_model(options.mask, model, scan.path, log);
  const auto masked = scan.mask ? masking(*scan.mask, model) : nullptr;
  PromptEncoder encoder(scan.path, options.prompts, model.config(), log);
  if (!options.text.ids.empty()) {
    for (const auto id : parse_ids("--text-ids", options.text.ids)) {
      require_input(id < model.config().vocabulary, "--text-ids: token id ", id,
                    " is outside the model's vocabulary of ", model.config().vocabulary);
    }
  }
  scan_for_report(model, sources, encoder, options, masked.get(), log, scan);

  const auto& parts = options.parts;
  if (scan.result->me_layer) {
    if (parts.any_explain()) {
      attempt(report.explanation, "explain", log, report.left_out,
              [&] { return explain_for_report(model, scan, encoder, options, log); });
    }
    if (parts.rigidity) {
      attempt(report.rigidity, "rigidity", log, report.left_out,
              [&] { return rigidity_for_report(model, scan, masked.get(), log); });
    }
  } else if (parts.any_explain() || parts.rigidity) {
    report.left_out.emplace_back(
        "explain and rigidity: without an ME layer there is no massive token that they could be "
        "about; onset explain --layer N looks at any layer, onset rigidity --token K at any token");
  }
  if (parts.sinks) {
    attempt(report.sinks, "sinks", log, report.left_out,
            [&] { return sinks_for_report(model, scan, encoder, options, masked.get(), log); });
  }
  if (report.explanation && !report.explanation->text &&
      (parts.explain.factorial || parts.explain.dose)) {
    report.left_out.emplace_back(
        "doses, and the perplexity and sinks of the factorial experiment: there is no tokenizer "
        "for the built-in text; give --text-ids");
  }
}

}  // namespace onset::app
