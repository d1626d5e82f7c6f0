// onset explain: why a layer, a token and its dims carry a massive activation, and what follows.

#include "onset/massive/explain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "explain_report.h"
#include "explain_text.h"
#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "options.h"
#include "output.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

const std::vector<std::string> part_names{"norm", "ffn", "factorial", "fall", "vocabulary", "dose"};
constexpr std::array part_fields{&ExplainParts::norm,       &ExplainParts::ffn,
                                 &ExplainParts::factorial,  &ExplainParts::fall,
                                 &ExplainParts::vocabulary, &ExplainParts::dose};

struct ExplainVerbOptions {
  std::vector<std::string> layer;
  std::vector<std::string> token;
  std::vector<std::string> dims;
  std::string only;
  std::int64_t top = 10;
  ExperimentTextOptions text;
  ScanOptions scan;
  PromptOptions prompts;
  MaskFileOptions mask;
  ComputeOptions compute;
  OutputOptions output;

  void declare(CommandLine& line);
};

void ExplainVerbOptions::declare(CommandLine& line) {
  line.group("What is explained");
  line.texts(layer, "--layer", "N", "this layer, in all prompts; without it, the ME layer");
  line.texts(token, "--token", "T",
             "the token at this position; without it, the one with the largest entry at the layer");
  line.texts(dims, "--dim", "D",
             "this dim of the hidden state; may be given several times; without it, those that are "
             "massive there");
  line.filled_text(only, "--only", "PARTS",
                   str_cat("these parts only, separated by commas: ", join(part_names, ", ")),
                   "parts: " + join(part_names, ", "));
  line.integer(top, "--top", "N", "neurons listed for an entry (JSON)", 1, 100000);
  text.declare(line);
  line.group("Detection");
  line.number(scan.min_abs, "--min-abs", "X", "a massive entry is above this");
  line.number(scan.min_ratio, "--min-ratio", "X",
              "and above this many times the median of its layer");
  line.choice(scan.rule, "--rule",
              {{"absolute", ScanRule::absolute}, {"relative", ScanRule::relative}},
              "relative leaves out the absolute threshold and asks that the entry last for a "
              "quarter of the layers");
  prompts.declare(line);
  mask.declare(line);
  compute.residency = Residency::resident;
  compute.declare(line);
  output.declare(line);
  line.example("onset explain MODEL", "what scan finds, on eight short built-in texts");
  line.example("onset explain MODEL --only norm,ffn,fall", "the exact parts alone: seconds");
  line.example("onset explain MODEL --layer 2 --token 0 --dim 507", "another layer");
  line.example("onset explain MODEL --text wiki.txt --json -o explain.json",
               "the experiments on a text of yours, every number as JSON");
  line.example("onset explain MODEL --wemask wemask.json --only fall,dose",
               "masked beside unmasked, of these parts");
  line.note(
      "The six parts: the gain of the norm before the FFN; the neurons, super weights and singular "
      "vectors; norm and FFN in a factorial experiment; the fall in the last layers; every "
      "vocabulary token alone; doses of the massive entry. Definitions and how to read them: "
      "docs/explain.md.");
}

ExplainParts parse_parts(const std::string& only) {
  if (only.empty()) return {};
  ExplainParts parts;
  for (const auto field : part_fields) parts.*field = false;
  for (const auto part : parse_part_names("--only", only, part_names))
    parts.*part_fields[part] = true;
  return parts;
}

std::optional<std::int64_t> single_number(const std::vector<std::string>& given,
                                          const std::string& option) {
  if (given.empty()) return std::nullopt;
  if (given.size() > 1) throw usage_error(option + " may be given once");
  return parse_integer(option, given.front(), 0, INT64_MAX);
}

ExplainOptions library_options(const ExplainVerbOptions& options) {
  ExplainOptions result;
  result.layer = single_number(options.layer, "--layer");
  result.token = single_number(options.token, "--token");
  for (const auto& dim : options.dims) {
    result.dims.push_back(parse_integer("--dim", dim, 0, INT64_MAX));
  }
  result.parts = parse_parts(options.only);
  result.top = options.top;
  return result;
}

// Of a model that makes one wait for the experiments, before they begin.
void note_long_work(const ExplainParts& parts, const Model& model, Console& console) {
  constexpr std::int64_t quick = 50'000'000;  // parameters: seconds
  if (!parts.factorial && !parts.vocabulary && !parts.dose) return;
  const auto parameters = parameter_count(model.checkpoint());
  if (parameters < quick) return;
  console.note(
      str_cat("the vocabulary and the experiments take about a minute for 135 million "
              "parameters on 2 cores; this model has ",
              std::llround(static_cast<double>(parameters) / 1e6),
              " million, and a longer text takes longer"));
}

Explanation explain_model(const std::string& path, const std::vector<PromptSource>& sources,
                          const ExplainVerbOptions& options, const ExplainOptions& wanted,
                          Console& console) {
  const Log log = console.log();
  // Many passes: what a computation needs converted is kept.
  const auto model = open_model(path, options.compute, log);
  Explanation explanation;
  explanation.mask = mask_for(options.mask, model, log);
  explanation.path = path;
  explanation.model = model_json(model);
  PromptEncoder encoder(path, options.prompts, model.config(), log);
  std::vector<ScanPrompt> prompts;
  for (const auto& source : sources) {
    explanation.prompts.push_back(encoder.encode(source));
    prompts.push_back({explanation.prompts.back().text, explanation.prompts.back().ids});
  }
  explanation.bos = encoder.bos();
  explanation.model["bos"] = explanation.bos ? OrderedJson(*explanation.bos) : OrderedJson("none");
  explanation.scan = onset::scan(model, prompts, options.scan, log);
  const auto target = choose_target(model, explanation.scan, wanted);
  std::optional<ExperimentText> text;
  if (wanted.parts.factorial || wanted.parts.dose) {
    text = experiment_text_of(options.text, model, encoder, log, explanation);
  }
  note_long_work(wanted.parts, model, console);
  explanation.result = explain(model, explanation.scan, target, text, wanted, log);
  if (explanation.mask) explain_under_mask(model, text, wanted, log, explanation);
  name_vocabulary(encoder, explanation);
  return explanation;
}

}  // namespace

int run_explain(const Invocation& invocation) {
  ExplainVerbOptions options;
  CommandLine line("explain", "MODEL [options]",
                   "Says why a massive activation appears where it does: what the norm and the "
                   "neurons of that layer do, what takes it away again, which tokens can carry "
                   "it, and what follows from it.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "explain");
  const auto wanted = library_options(options);
  options.text.check();
  options.mask.check();
  InputPaths inputs{.models = {path}, .files = options.prompts.jsonl};
  options.compute.add_to(inputs);
  if (!options.text.file.empty()) inputs.files.push_back(options.text.file);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  refuse_overwriting("-o", options.output.output, inputs);
  const auto sources = prompts_or_built_in(options.prompts);
  ResultWriter writer(options.output.output);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  std::optional<Console> console(std::in_place, options.output.quiet);
  const auto explanation = explain_model(path, sources, options, wanted, *console);
  console.reset();
  if (options.output.json) {
    OrderedJson run = run_json(invocation);
    add_compute(run, options.compute);
    run["paths"] = {
        {"model", valid_utf8(path)},
        {"text", options.text.file.empty() ? OrderedJson(nullptr)
                                           : OrderedJson(valid_utf8(options.text.file))}};
    add_mask_path(run, options.mask.path);
    add_adapter_path(run, options.compute);
    OrderedJson document{{"run", std::move(run)}};
    document.update(explanation_json(explanation));
    writer.write(json_document(document));
  } else {
    const TextStyle style{.utf8 = utf8_locale(), .colour = colour_wanted(options.output.output)};
    writer.write(explanation_text(explanation, style));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
