// onset rigidity: how little the massive token's state changes, over layers and over prompts.

#include <utility>

#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask.h"
#include "options.h"
#include "output.h"
#include "rigidity_report.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct RigidityVerbOptions {
  std::string token;
  std::string baseline_token;
  PromptOptions prompts;
  MaskFileOptions mask;
  ComputeOptions compute;
  OutputOptions output;

  void declare(CommandLine& line);
  [[nodiscard]] RigidityTokens named() const;
};

void RigidityVerbOptions::declare(CommandLine& line) {
  line.group("Tokens");
  line.text(
      token, "--token", "K",
      "the position that is compared, in every prompt; without it each prompt's massive token, "
      "in the prompts that agree with the ME layer");
  line.text(baseline_token, "--baseline-token", "K",
            "the ordinary position beside it, in every prompt; without it one near the middle of "
            "each prompt, without a massive entry");
  prompts.declare(line);
  mask.declare(line);
  compute.declare(line);
  output.declare(line);
  line.example("onset rigidity MODEL", "the massive tokens of eight short built-in texts");
  line.example("onset rigidity MODEL --token 0 --baseline-token 3",
               "the first token beside the fourth, whatever is massive");
  line.example("onset rigidity MODEL --jsonl prompts.jsonl --json -o rigidity.json",
               "every cosine matrix, over the prompts of a file");
  line.example("onset rigidity MODEL --wemask wemask.json", "masked beside unmasked");
  line.note(
      "Compared are the states of one token at four sites: the residual stream after each layer, "
      "the attention input, and keys and values of all heads. Formulas, and what they cannot say: "
      "docs/rigidity.md.");
}

RigidityTokens RigidityVerbOptions::named() const {
  RigidityTokens tokens;
  if (!token.empty()) tokens.token = parse_integer("--token", token, 0, INT32_MAX);
  if (!baseline_token.empty()) {
    tokens.baseline = parse_integer("--baseline-token", baseline_token, 0, INT32_MAX);
  }
  if (tokens.token && tokens.token == tokens.baseline) {
    throw usage_error(str_cat("--token and --baseline-token are both ", *tokens.token),
                      "the baseline is a token to compare with: name another");
  }
  return tokens;
}

ModelRigidity measure(const std::string& path, const std::vector<PromptSource>& sources,
                      const RigidityVerbOptions& options, const Log& log) {
  const auto model = open_model(path, options.compute, log);
  ModelRigidity rigidity;
  rigidity.mask = mask_for(options.mask, model, log);
  rigidity.path = path;
  rigidity.model = model_json(model);
  rigidity.named = options.named();
  PromptEncoder encoder(path, options.prompts, model.config(), log);
  std::vector<ScanPrompt> prompts;
  for (const auto& source : sources) {
    const auto& encoded = rigidity.prompts.emplace_back(encoder.encode(source));
    prompts.push_back({encoded.text, encoded.ids});
  }
  rigidity.bos = encoder.bos();
  rigidity.model["bos"] = rigidity.bos ? OrderedJson(*rigidity.bos) : OrderedJson("none");
  rigidity.scan = scan(model, prompts, {}, log);
  const auto choice = choose_tokens(rigidity.scan, rigidity.named);
  rigidity.compared = choice.scanned;
  rigidity.result = measure_rigidity(model, choice.prompts, log);
  if (rigidity.mask) {
    rigidity.masked =
        measure_rigidity(model, choice.prompts, log, masking(*rigidity.mask, model).get());
  }
  return rigidity;
}

OrderedJson run_object(const Invocation& invocation, const RigidityVerbOptions& options,
                       const std::string& path) {
  OrderedJson run = run_json(invocation);
  add_compute(run, options.compute);
  OrderedJson jsonl = OrderedJson::array();
  for (const auto& file : options.prompts.jsonl) jsonl.push_back(valid_utf8(file));
  run["paths"] = {{"model", valid_utf8(path)}, {"jsonl", jsonl}};
  add_mask_path(run, options.mask.path);
  add_adapter_path(run, options.compute);
  return run;
}

}  // namespace

int run_rigidity(const Invocation& invocation) {
  RigidityVerbOptions options;
  CommandLine line("rigidity", "MODEL [options]",
                   "Compares the state of the massive token between layers and between prompts, "
                   "beside an ordinary token: does it keep one direction whatever comes in?",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "rigidity");
  static_cast<void>(options.named());
  options.mask.check();
  InputPaths inputs{.models = {path}, .files = options.prompts.jsonl};
  options.compute.add_to(inputs);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  refuse_overwriting("-o", options.output.output, inputs);
  const auto sources = prompts_or_built_in(options.prompts);
  if (sources.size() > most_rigidity_prompts) {
    throw usage_error(str_cat(sources.size(),
                              " prompts are given; onset rigidity compares each with "
                              "every other and takes at most ",
                              most_rigidity_prompts),
                      "give fewer prompts");
  }

  ResultWriter writer(options.output.output);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  Console console(options.output.quiet);
  const auto rigidity = measure(path, sources, options, console.log());
  console.erase();
  if (options.output.json) {
    OrderedJson document{{"run", run_object(invocation, options, path)}};
    document.update(rigidity_json(rigidity));
    writer.write(json_document(document));
  } else {
    writer.write(rigidity_text(
        rigidity, {.utf8 = utf8_locale(), .colour = colour_wanted(options.output.output)}));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
