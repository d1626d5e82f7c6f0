// onset mask: makes a WeMask for a model, and shows what one does.

#include <charconv>
#include <optional>
#include <utility>

#include "inputs.h"
#include "mask_export.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/massive/scan.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_effect.h"
#include "onset/wemask/mask_json.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct MaskVerbOptions {
  MaskOptions mask;
  std::optional<MaskCriterion> criterion;
  std::vector<std::string> dims;
  std::vector<std::string> positions;
  std::string output;
  bool json = false;
  bool quiet = false;
  PromptOptions prompts;
  ComputeOptions compute;

  void declare_making(CommandLine& line);
  void declare_common(CommandLine& line);
  void resolve();
  void check_official_compat() const;
};

void MaskVerbOptions::declare_making(CommandLine& line) {
  line.group("The mask");
  line.choice(criterion, "--criterion",
              {{"weight", MaskCriterion::weight},
               {"activation", MaskCriterion::activation},
               {"magnitude", MaskCriterion::magnitude},
               {"random", MaskCriterion::random},
               {"lowest", MaskCriterion::lowest},
               {"given", MaskCriterion::given}},
              "by what the dims of a layer are chosen; weight, the default, is WeMask, the others "
              "are controls");
  line.integer(mask.k, "--k", "N", "how many dims are masked in a layer", 1, INT64_MAX);
  line.number(mask.rate, "--rate", "X",
              str_cat("the same as a share of the hidden size; ", default_mask_rate,
                      " where neither is given"));
  line.number(mask.gamma, "--gamma", "X", "the dims are multiplied by 1 - gamma");
  line.choice(mask.placement, "--placement",
              {{"post_norm", MaskPlacement::post_norm}, {"pre_norm", MaskPlacement::pre_norm}},
              "on the output of the norm before attention, or on a copy of its input");
  line.choice(mask.tokens, "--token",
              {{"first", MaskTokens::first},
               {"massive", MaskTokens::massive},
               {"positions", MaskTokens::positions}},
              "which tokens are masked");
  line.texts(positions, "--position", "N", "a position for --token positions (repeatable)");
  line.integer(mask.from_layer, "--from-layer", "N",
               "the first masked layer; without it the one behind the ME layer, which a scan finds",
               0, INT64_MAX);
  line.integer(mask.to_layer, "--to-layer", "N",
               "the last masked layer; without it the model's last", 0, INT64_MAX);
  line.texts(dims, "--dims", "LAYER:D,D,..", "dims of a layer for --criterion given (repeatable)");
  line.toggle(mask.official_compat, "--official-compat",
              "mask as the paper's released code does: the first position of every chunk, by the "
              "activation");
  line.path(output, "-o,--output", "FILE", "the file to write, wemask.json; must be given");
}

void MaskVerbOptions::declare_common(CommandLine& line) {
  prompts.declare(line);
  compute.declare(line, "by which --criterion random draws its dims");
  line.group("Output");
  line.toggle(json, "--json", "what the mask does as JSON");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
}

std::int64_t parse_number(std::string_view text, const std::string& option) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (text.empty() || result.ec != std::errc() || result.ptr != end || value < 0) {
    throw usage_error(str_cat(option, ": ", quote(text), " is no number from 0 on"));
  }
  return value;
}

void MaskVerbOptions::resolve() {
  mask.criterion = criterion.value_or(mask.criterion);
  if (mask.official_compat) check_official_compat();
  mask.seed = static_cast<std::uint64_t>(compute.seed);
  for (const auto& text : positions) mask.positions.push_back(parse_number(text, "--position"));
  for (const auto& text : dims) {
    const auto colon = text.find(':');
    if (colon == std::string::npos) {
      throw usage_error(str_cat("--dims ", quote(text), " has no layer"),
                        "write LAYER:D,D,.. such as 12:507,33");
    }
    auto& list = mask.given[parse_number(std::string_view(text).substr(0, colon), "--dims")];
    for (const auto& part : split(text.substr(colon + 1), ',')) {
      list.push_back(parse_number(trim(part), "--dims"));
    }
  }
  if (!dims.empty() && mask.criterion != MaskCriterion::given) {
    throw usage_error("--dims lists dims, but the criterion chooses them",
                      "add --criterion given, or leave --dims out");
  }
  if (!positions.empty() && mask.tokens != MaskTokens::positions) {
    throw usage_error("--position is read with --token positions alone");
  }
}

// What it fixes cannot be chosen beside it.
void MaskVerbOptions::check_official_compat() const {
  const std::string hint = "leave it or --official-compat out";
  if (criterion.value_or(MaskCriterion::activation) != MaskCriterion::activation) {
    throw usage_error(str_cat("--official-compat masks by the activation, not by --criterion ",
                              name_of(*criterion)),
                      hint);
  }
  if (mask.placement != MaskPlacement::post_norm) {
    throw usage_error("--official-compat masks the norm's output, not --placement pre_norm", hint);
  }
  if (mask.tokens != MaskTokens::first) {
    throw usage_error(
        str_cat("--official-compat masks the first token of every chunk, not --token ",
                name_of(mask.tokens)),
        hint);
  }
}

std::vector<std::vector<std::int64_t>> encoded(const Model& model, const std::string& path,
                                               const PromptOptions& options, const Log& log,
                                               std::vector<ScanPrompt>& prompts) {
  const auto sources = prompts_or_built_in(options);
  PromptEncoder encoder(path, options, model.config(), log);
  std::vector<std::vector<std::int64_t>> ids;
  for (const auto& source : sources) {
    const auto prompt = encoder.encode(source);
    prompts.push_back({prompt.text, prompt.ids});
    ids.push_back(prompt.ids);
  }
  return ids;
}

std::string effect_text(const MaskSpec& spec, const std::vector<MaskedLayer>& effect) {
  std::string text = "mask    " + wrap(mask_words(spec), 80, 8) + "\n\n";
  text += "layer  tokens  energy removed  overlap  first dims\n";
  for (const MaskedLayer& row : effect) {
    std::vector<std::string> dims;
    for (const auto dim : row.first_dims) dims.push_back(str_cat(dim));
    text += pad_left(str_cat(row.layer), 5) + pad_left(str_cat(row.tokens), 8) +
            pad_left(row.tokens > 0 ? percent(row.energy_removed) : "-", 16) +
            pad_left(row.tokens > 0 ? fixed(row.activation_overlap, 3) : "-", 9) + "  " +
            join(dims, " ") + (spec.k > static_cast<std::int64_t>(dims.size()) ? " .." : "") + "\n";
  }
  return text +
         "\nenergy removed: share of the attention input's sum of squares, mean over masked\n"
         "tokens; overlap: Jaccard of the dims with those of the largest |input|\n";
}

OrderedJson effect_json(const std::vector<MaskedLayer>& effect) {
  OrderedJson rows = OrderedJson::array();
  for (const MaskedLayer& row : effect) {
    rows.push_back({{"layer", row.layer},
                    {"tokens", row.tokens},
                    {"energy_removed", finite_or_null(row.energy_removed)},
                    {"activation_overlap", finite_or_null(row.activation_overlap)}});
  }
  return rows;
}

void print_effect(const Invocation& invocation, const MaskVerbOptions& options,
                  const MaskSpec& spec, const std::vector<MaskedLayer>& effect) {
  ResultWriter writer("");
  if (options.json) {
    auto run = run_json(invocation);
    add_compute(run, options.compute);
    writer.write(
        json_document({{"run", run}, {"mask", mask_json(spec)}, {"layers", effect_json(effect)}}));
  } else {
    writer.write(effect_text(spec, effect));
  }
  writer.finish();
}

void prepare(const ComputeOptions& compute) {
  spin_briefly();
  keep_freed_memory();
  set_threads(compute.thread_count());
}

int run_make(const Invocation& invocation) {
  MaskVerbOptions options;
  CommandLine line("mask make", "MODEL -o FILE [options]",
                   "Makes a WeMask: from the layer behind the ME layer on, the dims of the first "
                   "token's attention input with the largest norm gains are masked. Writes it as "
                   "JSON, and prints what it takes away.",
                   invocation.arguments);
  options.declare_making(line);
  options.declare_common(line);
  line.example("onset mask make MODEL -o wemask.json", "a quarter of the dims");
  line.example("onset mask make MODEL --criterion random --k 58 --seed 3 -o random.json",
               "a control of 58 random dims");
  line.note("Definitions: docs/wemask.md.");
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "mask make");
  options.resolve();
  if (options.output.empty()) {
    throw usage_error("onset mask make writes a file and needs its name", "give -o wemask.json");
  }
  refuse_overwriting("-o", options.output, {.models = {path}, .files = options.prompts.jsonl});
  prepare(options.compute);
  Console console(options.quiet);
  const auto model = open_model(path, options.compute, console.log());
  check_mask_options(model.config(), options.mask);
  std::vector<ScanPrompt> prompts;
  const auto ids = encoded(model, path, options.prompts, console.log(), prompts);
  if (!options.mask.from_layer || options.mask.tokens == MaskTokens::massive) {
    const auto found = scan(model, prompts, {}, console.log());
    options.mask.me_layer = found.me_layer;
    options.mask.massive_dims = found.massive_dims;
  }
  const auto spec = make_mask(model, options.mask);
  const auto effect = mask_effect(model, spec, ids, console.log());
  ResultWriter file(options.output);
  file.write(json_document(mask_json(spec)));
  file.finish();
  print_effect(invocation, options, spec, effect);
  if (spec.gamma == 0) console.warn("--gamma 0: the mask changes nothing");
  console.note(str_cat("mask written to ", options.output));
  return 0;
}

int run_show(const Invocation& invocation) {
  MaskVerbOptions options;
  MaskFileOptions file;
  CommandLine line("mask show", "FILE [MODEL] [options]",
                   "Shows a mask; with a model, whether it fits and what it takes away from the "
                   "attention input.",
                   invocation.arguments);
  line.group("Fitting the model");
  file.declare_fit(line);
  options.declare_common(line);
  line.example("onset mask show wemask.json MODEL", "what the mask does to this model");
  if (!line.parse()) return print_help(line);
  const auto& given = line.positionals();
  if (given.empty() || given.size() > 2) {
    throw usage_error("onset mask show takes a mask and, if wanted, a model",
                      "see: onset mask show --help");
  }
  for (const auto& path : given) refuse_empty_path(path);
  file.path = given[0];
  file.check();
  if (given.size() == 1) {
    if (file.strict || file.refresh) {
      throw usage_error("--strict and --refresh are about a model, and none is given",
                        "onset mask show FILE MODEL");
    }
    const auto spec = read_mask(file.path);
    ResultWriter writer("");
    writer.write(options.json ? json_document(mask_json(spec))
                              : "mask    " + wrap(mask_words(spec), 80, 8) + "\n");
    writer.finish();
    return 0;
  }
  prepare(options.compute);
  Console console(options.quiet);
  const auto model = open_model(given[1], options.compute, console.log());
  const auto spec = mask_for(file, model, console.log());
  std::vector<ScanPrompt> prompts;
  const auto ids = encoded(model, given[1], options.prompts, console.log(), prompts);
  print_effect(invocation, options, *spec, mask_effect(model, *spec, ids, console.log()));
  return 0;
}

}  // namespace

int run_mask(const Invocation& invocation) {
  Invocation inner = invocation;
  if (inner.arguments.empty() || inner.arguments.front() == "--help") {
    ResultWriter writer("");
    writer.write(
        "usage: onset mask make MODEL -o FILE [options]\n"
        "       onset mask show FILE [MODEL] [options]\n"
        "       onset mask export MODEL --wemask FILE -o FILE|FOLDER [options]\n\n"
        "onset mask make --help, and so on, tells the options.\n");
    writer.finish();
    return inner.arguments.empty() ? 2 : 0;
  }
  const std::string verb = inner.arguments.front();
  inner.arguments.erase(inner.arguments.begin());
  if (verb == "make") return run_make(inner);
  if (verb == "show") return run_show(inner);
  if (verb == "export") return run_mask_export(inner);
  throw usage_error(str_cat("unknown verb ", quote("mask " + verb)),
                    "it is onset mask make, mask show or mask export");
}

}  // namespace onset::app
