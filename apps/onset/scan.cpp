// onset scan: where massive activations are born, in which token and dimensions, and which part
// writes them.

#include <charconv>
#include <optional>
#include <utility>

#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/report/states.h"
#include "onset/wemask/mask.h"
#include "options.h"
#include "output.h"
#include "scan_report.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct ScanVerbOptions {
  ScanOptions scan;
  bool csv = false;
  std::string report;
  PromptOptions prompts;
  MaskFileOptions mask;
  ComputeOptions compute;
  OutputOptions output;

  std::vector<std::string> without_experts;

  void declare(CommandLine& line);
};

// "3.17": expert 17 of layer 3.
ExpertId parse_expert(const std::string& text) {
  ExpertId id;
  const char* end = text.data() + text.size();
  const auto layer = std::from_chars(text.data(), end, id.layer);
  const bool dotted = layer.ec == std::errc() && layer.ptr != end && *layer.ptr == '.';
  const auto expert = std::from_chars(dotted ? layer.ptr + 1 : end, end, id.expert);
  if (!dotted || expert.ec != std::errc() || expert.ptr != end) {
    throw usage_error(str_cat("--without-expert ", quote(text), " is no LAYER.EXPERT"),
                      "write 3.17 for expert 17 of layer 3");
  }
  return id;
}

void ScanVerbOptions::declare(CommandLine& line) {
  line.group("Detection");
  line.number(scan.min_abs, "--min-abs", "X",
              "a massive entry is above this, and so is what counts as a rise or fall");
  line.number(scan.min_ratio, "--min-ratio", "X",
              "and above this many times the median of its layer");
  line.choice(scan.rule, "--rule",
              {{"absolute", ScanRule::absolute}, {"relative", ScanRule::relative}},
              "relative leaves out the absolute threshold and asks that the entry last for a "
              "quarter of the layers");
  line.texts(without_experts, "--without-expert", "LAYER.EXPERT",
             "this expert of a mixture adds nothing (repeatable)");
  line.integer(scan.top, "--top", "N", "largest entries listed for each layer (JSON)", 0,
               INT64_MAX);
  prompts.declare(line);
  mask.declare(line);
  compute.declare(line);
  output.declare(line);
  line.toggle(csv, "--csv", "comma-separated values in place of the table");
  line.path(report, "--report", "FILE.html",
            "write the pictures too: one page that needs no network (docs/report.md)");
  line.example("onset scan MODEL", "eight short built-in texts");
  line.example("onset scan MODEL --prompt \"My favorite color is Dark Blue.\"", "one prompt");
  line.example("onset scan MODEL --ids 1,17,9 --ids 1,4 --json -o scan.json",
               "two prompts of ids, everything about every layer as JSON");
  line.example("onset scan MODEL --report scan.html", "the table, and the pictures to look at");
  line.example("onset scan A B C.gguf", "one row for each model");
  line.example("onset scan MODEL --wemask wemask.json", "masked beside unmasked");
  line.note(
      "MODEL is a Hugging Face folder or a .gguf file. Layers, tokens and dimensions count from "
      "0; |x| is an entry of the residual stream after a layer. Definitions: docs/scan.md.");
}

std::vector<ScanPrompt> scan_prompts(const std::vector<EncodedPrompt>& encoded) {
  std::vector<ScanPrompt> prompts;
  prompts.reserve(encoded.size());
  for (const auto& prompt : encoded) prompts.push_back({prompt.text, prompt.ids});
  return prompts;
}

void name_pieces(const ModelScan& scan, ScanResult& result) {
  for (std::size_t i = 0; i < scan.prompts.size(); ++i) {
    result.prompts[i].pieces = scan.prompts[i].pieces;
  }
}

// Fills `scan` as far as it gets, so that what is known of a failed model can be told.
void scan_model(const std::vector<PromptSource>& sources, const ScanVerbOptions& options,
                const Log& log, ModelScan& scan) {
  const auto model = open_model(scan.path, options.compute, log);
  scan.mask = mask_for_model(options.mask, model, scan.path, log);
  scan.model = model_json(model);
  PromptEncoder encoder(scan.path, options.prompts, model.config(), log);
  for (const auto& source : sources) scan.prompts.push_back(encoder.encode(source));
  scan.bos = encoder.bos();
  scan.model["bos"] = scan.bos ? OrderedJson(*scan.bos) : OrderedJson("none");
  scan.result = onset::scan(model, scan_prompts(scan.prompts), options.scan, log);
  name_pieces(scan, *scan.result);
  if (scan.mask) {
    scan.masked = onset::scan(model, scan_prompts(scan.prompts), options.scan, log,
                              masking(*scan.mask, model).get());
    name_pieces(scan, *scan.masked);
  }
  if (options.report.empty()) return;
  const auto shown = shown_prompt(*scan.result);
  scan.states = observe_states(model, scan.prompts[shown].ids, view_of(*scan.result, shown), log,
                               options.scan.without_experts);
}

OrderedJson run_object(const Invocation& invocation, const ScanVerbOptions& options,
                       const std::vector<ModelScan>& scans) {
  OrderedJson run = run_json(invocation);
  add_compute(run, options.compute);
  OrderedJson models = OrderedJson::array();
  for (const auto& scan : scans) models.push_back(valid_utf8(scan.path));
  OrderedJson jsonl = OrderedJson::array();
  for (const auto& path : options.prompts.jsonl) jsonl.push_back(valid_utf8(path));
  run["paths"] = {{"models", models}, {"jsonl", jsonl}};
  add_mask_path(run, options.mask.path);
  add_adapter_path(run, options.compute);
  return run;
}

OrderedJson document(const OrderedJson& run, const std::vector<ModelScan>& scans) {
  OrderedJson result{{"run", run}};
  if (scans.size() == 1) {
    result.update(scan_json(scans.front()));
    return result;
  }
  result["models"] = OrderedJson::array();
  for (const auto& scan : scans) result["models"].push_back(scan_json(scan));
  return result;
}

std::string rendered(const Invocation& invocation, const ScanVerbOptions& options,
                     const std::vector<ModelScan>& scans) {
  if (options.output.json) {
    return json_document(document(run_object(invocation, options, scans), scans));
  }
  if (options.csv) return scan_csv(scans);
  const TextStyle style{.utf8 = utf8_locale(), .colour = colour_wanted(options.output.output)};
  return scans.size() == 1 ? scan_text(scans.front(), style) : models_text(scans, style);
}

// A page shows one model, and is a file of its own.
void refuse_unfit_report(const ScanVerbOptions& options, const std::vector<std::string>& models) {
  const auto& report = options.report;
  if (report.empty()) return;
  if (models.size() > 1) {
    throw usage_error("--report shows one model; " + str_cat(models.size()) + " are given",
                      "run onset scan --report once for each model");
  }
  if (report == "-") {
    throw usage_error("--report needs a file: standard output is for the table",
                      "for example --report scan.html");
  }
  if (!options.output.output.empty() && same_output(report, options.output.output)) {
    throw usage_error("--report and --output name the same file", "give them different names");
  }
}

}  // namespace

int run_scan(const Invocation& invocation) {
  ScanVerbOptions options;
  CommandLine line("scan", "MODEL... [options]",
                   "Finds the layer where massive activations are born: the first with an entry of "
                   "the residual stream far above all others; says in which token and dimensions, "
                   "and whether attention or the FFN writes it.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  for (const auto& text : options.without_experts) {
    options.scan.without_experts.push_back(parse_expert(text));
  }
  if (line.positionals().empty()) {
    throw usage_error("onset scan needs a model: a folder or a .gguf file",
                      "see: onset scan --help");
  }
  for (const auto& path : line.positionals()) refuse_empty_path(path);
  if (options.csv && options.output.json) {
    throw usage_error("--csv and --json exclude each other", "leave one of them out");
  }
  refuse_unfit_report(options, line.positionals());
  refuse_shared_adapter(options.compute, line.positionals().size());
  options.mask.check();
  InputPaths inputs{.models = line.positionals(), .files = options.prompts.jsonl};
  options.compute.add_to(inputs);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  refuse_overwriting("-o", options.output.output, inputs);
  refuse_overwriting("--report", options.report, inputs);
  const auto sources = prompts_or_built_in(options.prompts);

  ResultWriter writer(options.output.output);
  std::optional<ResultWriter> page;
  if (!options.report.empty()) page.emplace(options.report);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  std::vector<ModelScan> scans;
  int exit_code = 0;
  for (const auto& path : line.positionals()) {
    Console console(options.output.quiet);
    auto& scan = scans.emplace_back();
    scan.path = path;
    try {
      scan_model(sources, options, console.log(), scan);
    } catch (...) {
      // Among several models one that fails does not hide the others.
      if (line.positionals().size() == 1) throw;
      console.erase();
      scan.result.reset();
      scan.failure = current_failure();
      report(scan.failure);
      exit_code = 1;
    }
  }
  std::size_t page_bytes = 0;
  if (page) {
    const auto html = scan_html(scans.front(), run_object(invocation, options, scans));
    page_bytes = html.size();
    page->write(html);
    page->finish();
  }
  writer.write(rendered(invocation, options, scans));
  writer.finish();
  if (page) {
    Console(options.output.quiet)
        .note(str_cat("report written to ", options.report, " (",
                      human_bytes(static_cast<double>(page_bytes)), ")"));
  }
  return exit_code;
}

}  // namespace onset::app
