// onset capture: what the forward pass shows at chosen sites, as a safetensors file.

#include "onset/model/capture.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct CaptureOptions {
  std::string sites = "layers.*.resid_post";
  std::string output;
  bool json = false;
  bool quiet = false;
  PromptOptions prompts;
  MaskFileOptions mask;
  ComputeOptions compute;

  void declare(CommandLine& line);
};

std::string site_names() {
  std::string outside;
  std::string inside;
  for (int i = 0; i < site_kind_count; ++i) {
    const auto kind = static_cast<SiteKind>(i);
    auto& names = is_layer_site(kind) ? inside : outside;
    names.append(names.empty() ? "" : ", ").append(site_kind_name(kind));
  }
  return str_cat(
      "Sites: ", outside, ", and in every layer (layers.N.NAME) ", inside,
      ". N is a number, *, a range 2-5 or a list 2|5; negative numbers count from the "
      "end. NAME may hold * for any text: 'layers.3.attn_*', and 'layers.*.*' is all of "
      "every layer; '*' alone is every site. attn_raw and ffn_raw exist in families with "
      "a norm after the module, attn_norm in those with one before attention; router is all "
      "three sites of a mixture's router.");
}

void CaptureOptions::declare(CommandLine& line) {
  line.group("What and where");
  line.text(sites, "--sites", "SITES", "sites to write, separated by commas");
  line.path(output, "-o,--output", "FILE",
            "the safetensors file to write, which appears when it is complete; must be given");
  prompts.declare(line);
  mask.declare(line);
  compute.declare(line);
  line.group("Output");
  line.toggle(json, "--json", "say what was written as JSON");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.example("onset capture MODEL --prompt Hello -o states.safetensors",
               "the residual stream after every layer");
  line.example("onset capture MODEL --sites 'layers.3-5.attn_probs,logits' --ids 1,5,9 -o a.st",
               "attention probabilities of three layers, and the logits");
  line.example("onset capture MODEL --wemask wemask.json --prompt Hello -o masked.st",
               "the masked states, and only these; the file's metadata hold the mask");
  line.note(
      "Tensors are float32 without a batch dimension, named PROMPT.SITE (0.layers.3.resid_post), "
      "and the ids int64, PROMPT.ids. With --wemask all of them are of the masked run: run it once "
      "more without for the others. " +
      site_names());
}

// Texts beyond this stay out of the file: readers accept headers of 100 MB only.
constexpr std::size_t most_text_bytes = 16'000'000;

// Ids go into the file as tensors.
OrderedJson prompts_json(const std::vector<EncodedPrompt>& prompts, bool with_ids) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& prompt : prompts) {
    OrderedJson row{{"text", valid_utf8(prompt.text)}};
    if (with_ids) row["ids"] = prompt.ids;
    row["bos_added"] = prompt.bos_added;
    row["beyond_context"] = prompt.beyond_context;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Experts that were asked for and that no token of any prompt was sent to have no tensors.
void note_absent_experts(const SiteSet& sites, std::size_t prompts, const std::string& path,
                         Console& console) {
  std::set<std::string> written;
  for (const auto& tensor : read_safetensors(path).tensors) written.insert(tensor.name);
  std::vector<std::string> absent;
  for (const auto site : sites.list()) {
    if (!is_expert_site(site.kind)) continue;
    bool found = false;
    for (std::size_t p = 0; p < prompts && !found; ++p) {
      found = written.contains(str_cat(p, ".", site_name(site)));
    }
    if (!found) absent.push_back(site_name(site));
  }
  if (absent.empty()) return;
  constexpr std::size_t most = 4;
  const auto count = absent.size();
  absent.resize(std::min(count, most));
  console.note(str_cat("no token was sent to the experts of ", join(absent, ", "),
                       count > most ? str_cat(" and ", count - most, " more") : "",
                       ": the file has no tensors of these"));
}

struct Captured {
  OrderedJson model;
  std::optional<MaskSpec> mask;
  std::vector<std::string> sites;
  std::vector<EncodedPrompt> prompts;
  CaptureSummary summary;
};

Captured capture_model(const std::string& path, const std::vector<PromptSource>& sources,
                       const CaptureOptions& options) {
  Console console(options.quiet);
  const auto model = open_model(path, options.compute, console.log());
  const auto& config = model.config();
  const auto sites = SiteSet::parse(options.sites, config);
  Captured captured{.model = model_json(model),
                    .mask = mask_for(options.mask, model, console.log()),
                    .sites = {},
                    .prompts = {},
                    .summary = {}};
  PromptEncoder encoder(path, options.prompts, model.config(), console.log());
  std::vector<std::vector<std::int64_t>> ids;
  for (const auto& source : sources) {
    captured.prompts.push_back(encoder.encode(source));
    ids.push_back(captured.prompts.back().ids);
  }
  captured.model["bos"] = encoder.bos() ? OrderedJson(*encoder.bos()) : OrderedJson("none");
  for (const auto site : sites.list()) captured.sites.push_back(site_name(site));
  std::map<std::string, std::string> metadata{{"version", ONSET_VERSION},
                                              {"model", valid_utf8(path)}};
  auto texts = prompts_json(captured.prompts, false).dump();
  if (texts.size() <= most_text_bytes) {
    metadata["prompts"] = std::move(texts);
  } else {
    console.warn("the texts of the prompts are too long for the file's header and are left out");
  }
  if (captured.mask) metadata["wemask"] = wemask_json(captured.mask).dump();
  if (!model.adaptation().is_null()) metadata["adapter"] = model.adaptation().dump();
  if (!model.adaptation().is_null()) metadata["adapter"] = model.adaptation().dump();
  const auto masked = captured.mask ? masking(*captured.mask, model) : nullptr;
  captured.summary =
      capture(model, ids, sites, options.output, console.log(), metadata, masked.get());
  note_absent_experts(sites, ids.size(), options.output, console);
  return captured;
}

OrderedJson captured_json(const Captured& captured, OrderedJson run) {
  return {{"run", std::move(run)},
          {"model", captured.model},
          {"wemask", wemask_json(captured.mask)},
          {"sites", captured.sites},
          {"tensors", captured.summary.tensors},
          {"bytes", captured.summary.bytes},
          {"prompts", prompts_json(captured.prompts, true)}};
}

void check(const CaptureOptions& options) {
  if (options.output.empty() || options.output == "-") {
    throw usage_error("onset capture writes a file and needs its name", "give -o FILE.safetensors");
  }
  if (is_special_file(options.output)) {
    throw usage_error(str_cat("-o ", quote(options.output), " is no file"),
                      "give the name of a file: the result is written in parts, then renamed");
  }
  if (options.prompts.empty()) {
    throw usage_error("onset capture needs a prompt", "give --prompt TEXT, --ids or --jsonl");
  }
}

}  // namespace

int run_capture(const Invocation& invocation) {
  CaptureOptions options;
  CommandLine line("capture", "MODEL -o FILE [options]",
                   "Runs prompts through a model and writes the tensors at the chosen sites of the "
                   "forward pass to a safetensors file, as they are made.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto model = single_model(line, "capture");
  check(options);
  options.mask.check();
  InputPaths inputs{.models = {model}, .files = options.prompts.jsonl};
  options.compute.add_to(inputs);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  refuse_overwriting("-o", options.output, inputs);
  const auto sources = read_prompts(options.prompts);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const Captured captured = capture_model(model, sources, options);

  ResultWriter writer("");
  if (options.json) {
    auto run = run_json(invocation);
    add_compute(run, options.compute);
    run["paths"] = {{"model", valid_utf8(model)}, {"output", valid_utf8(options.output)}};
    add_mask_path(run, options.mask.path);
    add_adapter_path(run, options.compute);
    writer.write(json_document(captured_json(captured, std::move(run))));
  } else {
    writer.write(str_cat(counted(captured.summary.tensors, "tensor"), ", ",
                         human_bytes(static_cast<double>(captured.summary.bytes)), ", written to ",
                         printable(options.output, utf8_locale()), "\n"));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
