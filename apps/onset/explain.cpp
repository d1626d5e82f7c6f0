// onset explain: why a layer, a token and its dims carry a massive activation, and what follows.

#include "onset/massive/explain.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "explain_report.h"
#include "inputs.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "options.h"
#include "output.h"
#include "sample_text.h"
#include "text.h"
#include "text_file.h"
#include "verbs.h"

namespace onset::app {
namespace {

constexpr std::int64_t sink_sample_length = 64;
constexpr std::int64_t most_sink_samples = 8;

struct ExplainVerbOptions {
  std::vector<std::string> layer;
  std::vector<std::string> token;
  std::vector<std::string> dims;
  std::string only;
  std::int64_t top = 10;
  std::string text;
  std::string text_ids;
  std::int64_t text_tokens = 512;
  std::int64_t window = 512;
  ScanOptions scan;
  PromptOptions prompts;
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
  line.text(only, "--only", "PARTS",
            "these parts only, separated by commas: norm, ffn, factorial, fall, vocabulary, dose");
  line.integer(top, "--top", "N", "neurons listed for an entry (JSON)", 1, 100000);
  line.group("The text of the experiments");
  line.path(text, "--text", "FILE", "a text file; without it, a built-in sample");
  line.text(text_ids, "--text-ids", "1,5,9", "the text as token ids, without BOS");
  line.integer(text_tokens, "--text-tokens", "N", "use its first N tokens; 0 is all", 0, INT64_MAX);
  line.integer(window, "--window", "N",
               "tokens of a window in which the perplexity is measured, BOS included", 2, 1 << 20);
  line.group("Detection");
  line.number(scan.min_abs, "--min-abs", "X", "a massive entry is above this");
  line.number(scan.min_ratio, "--min-ratio", "X",
              "and above this many times the median of its layer");
  line.choice(scan.rule, "--rule",
              {{"absolute", ScanRule::absolute}, {"relative", ScanRule::relative}},
              "relative leaves out the absolute threshold and asks that the entry last for a "
              "quarter of the layers");
  prompts.declare(line);
  compute.declare(line);
  output.declare(line);
  line.example("onset explain MODEL", "what scan finds, on eight short built-in texts");
  line.example("onset explain MODEL --only norm,ffn,fall", "the exact parts alone: seconds");
  line.example("onset explain MODEL --layer 2 --token 0 --dim 507", "another layer");
  line.example("onset explain MODEL --text wiki.txt --json -o explain.json",
               "the experiments on a text of yours, every number as JSON");
  line.note(
      "The six parts: the gain of the norm before the FFN; the neurons, super weights and singular "
      "vectors; norm and FFN in a factorial experiment; the fall in the last layers; every "
      "vocabulary token alone; doses of the massive entry. Definitions and how to read them: "
      "docs/explain.md.");
}

struct PartName {
  const char* name;
  bool ExplainParts::*part;
};

constexpr std::array part_names{
    PartName{"norm", &ExplainParts::norm},
    PartName{"ffn", &ExplainParts::ffn},
    PartName{"factorial", &ExplainParts::factorial},
    PartName{"fall", &ExplainParts::fall},
    PartName{"vocabulary", &ExplainParts::vocabulary},
    PartName{"dose", &ExplainParts::dose},
};

ExplainParts parse_parts(const std::string& only) {
  if (only.empty()) return {};
  ExplainParts parts{.norm = false,
                     .ffn = false,
                     .factorial = false,
                     .fall = false,
                     .vocabulary = false,
                     .dose = false};
  std::vector<std::string> known;
  known.reserve(part_names.size());
  for (const auto& part : part_names) known.emplace_back(part.name);
  for (const auto& given : split(only, ',')) {
    const auto name = std::string(trim(given));
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const auto near = nearest(name, known, 1);
      throw usage_error(str_cat("--only: there is no part ", quote(name)),
                        near.empty() ? "parts: " + join(known, ", ") : did_you_mean(near));
    }
    parts.*part_names[static_cast<std::size_t>(found - known.begin())].part = true;
  }
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

std::vector<std::int64_t> text_ids(const ExplainVerbOptions& options, PromptEncoder& encoder) {
  std::vector<std::int64_t> ids;
  if (!options.text_ids.empty()) {
    for (const auto id : parse_ids("--text-ids", options.text_ids)) ids.push_back(id);
    return ids;
  }
  const std::string text =
      options.text.empty() ? std::string(sample_text()) : read_text(options.text, "--text");
  for (const auto id : encoder.tokenizer().encode(text)) ids.push_back(id);
  return ids;
}

// The text of the experiments; nothing, with a warning, where there is no tokenizer for the
// built-in one.
std::optional<ExperimentText> experiment_text_of(const ExplainVerbOptions& options,
                                                 const Model& model, PromptEncoder& encoder,
                                                 const Log& log, Explanation& explanation) {
  std::vector<std::int64_t> ids;
  try {
    ids = text_ids(options, encoder);
  } catch (const Error& error) {
    if (!options.text.empty() || !options.text_ids.empty()) throw;
    log.warning(str_cat("no text for the experiments (", error.what(),
                        "): perplexity, sinks and doses are left out; give --text-ids"));
    return std::nullopt;
  }
  for (const auto id : ids) {
    require_input(id >= 0 && id < model.config().vocabulary, "--text-ids: token id ", id,
                  " is outside the model's vocabulary of ", model.config().vocabulary);
  }
  TextUsed used;
  used.source = !options.text_ids.empty() ? "--text-ids"
                : options.text.empty()    ? "built-in sample"
                                          : options.text;
  if (options.text_tokens > 0 && std::ssize(ids) > options.text_tokens) {
    ids.resize(static_cast<std::size_t>(options.text_tokens));
    used.shortened = true;
  }
  used.tokens = std::ssize(ids);
  used.windows = {.window = options.window, .bos = encoder.text_bos()};
  const auto context = model.config().context;
  if (const auto window = std::min(options.window, used.tokens); context > 0 && window > context) {
    log.warning(str_cat("windows of ", window, " tokens, more than the model's context of ",
                        context, ": it was not trained for the rest; see --window"));
  }
  const auto length =
      std::min<std::int64_t>(sink_sample_length, used.tokens + (used.windows.bos ? 1 : 0));
  auto text = experiment_text(std::move(ids), used.windows, length, most_sink_samples);
  used.sample_length = length;
  used.samples = std::ssize(text.samples);
  explanation.text = used;
  return text;
}

void name_vocabulary(PromptEncoder& encoder, Explanation& explanation) {
  const auto& vocabulary = explanation.result.vocabulary;
  if (!vocabulary) return;
  try {
    const auto& tokenizer = encoder.tokenizer();
    for (const auto* list : {&vocabulary->small, &vocabulary->largest}) {
      for (const auto& token : *list) {
        if (token.id >= tokenizer.vocabulary_size()) continue;
        explanation.pieces[token.id] = tokenizer.piece_bytes(static_cast<TokenId>(token.id));
      }
    }
  } catch (const Error&) {
    explanation.pieces.clear();  // ids say it as well
  }
}

Explanation explain_model(const std::string& path, const std::vector<PromptSource>& sources,
                          const ExplainVerbOptions& options, const ExplainOptions& wanted,
                          const Log& log) {
  // Many passes: what a computation needs converted is kept.
  const auto model = Model::open(
      path, {.compute = options.compute.compute, .residency = Residency::resident}, log);
  Explanation explanation;
  explanation.path = path;
  explanation.model = model_json(model.config(), model.checkpoint());
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
    text = experiment_text_of(options, model, encoder, log, explanation);
  }
  explanation.result = explain(model, explanation.scan, target, text, wanted, log);
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
  if (!options.text.empty() && !options.text_ids.empty()) {
    throw usage_error("--text and --text-ids exclude each other", "leave one of them out");
  }
  InputPaths inputs{.models = {path}, .files = options.prompts.jsonl};
  if (!options.text.empty()) inputs.files.push_back(options.text);
  refuse_overwriting("-o", options.output.output, inputs);
  auto sources = read_prompts(options.prompts);
  if (sources.empty()) {
    for (const auto& text : built_in_texts()) sources.push_back({"built-in text", text});
  }
  ResultWriter writer(options.output.output);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  std::optional<Console> console(std::in_place, options.output.quiet);
  const auto explanation = explain_model(path, sources, options, wanted, console->log());
  console.reset();
  if (options.output.json) {
    OrderedJson run = run_json(invocation);
    add_compute(run, options.compute);
    run["weights"] = "resident";
    run["paths"] = {{"model", valid_utf8(path)},
                    {"text", options.text.empty() ? OrderedJson(nullptr)
                                                  : OrderedJson(valid_utf8(options.text))}};
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
