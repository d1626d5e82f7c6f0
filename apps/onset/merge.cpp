// onset merge: an adapter folded into its model's weights.

#include <optional>
#include <utility>

#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/runtime.h"
#include "onset/train/merge.h"
#include "options.h"
#include "output.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

enum class MergeType { same, f32, bf16, f16 };

struct MergeVerbOptions {
  std::string output;
  MergeType dtype = MergeType::same;
  MaskFileOptions mask;
  ComputeOptions compute;
  bool json = false;
  bool quiet = false;

  void declare(CommandLine& line);
  [[nodiscard]] std::optional<DType> type() const;
  void check() const;
};

void MergeVerbOptions::declare(CommandLine& line) {
  line.group("Merging");
  line.path(compute.adapter, "--adapter", "DIR", "the LoRA adapter, in PEFT's layout");
  line.path(output, "-o,--output", "DIR",
            "the folder to write, which appears when it is complete; it must not be there yet");
  line.choice(dtype, "--dtype",
              {{"same", MergeType::same},
               {"f32", MergeType::f32},
               {"bf16", MergeType::bf16},
               {"f16", MergeType::f16}},
              "number format of the weights; same: as the model stores them, f32 for a GGUF file");
  mask.declare(line);
  line.group("Computing");
  declare_threads(line, compute.threads);
  line.group("Output");
  line.toggle(json, "--json", "JSON in place of text (fields: docs/json.md)");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.example("onset merge MODEL --adapter runs/lora -o merged", "the model with its adapter");
  line.example("onset merge MODEL --adapter runs/lora --wemask wemask.json -o merged",
               "with the mask beside it");
  line.note(
      "The folder is in Hugging Face layout: weights, config.json with a key \"onset\" that says "
      "what was merged, and the tokenizer's files. A head that was tied to the embedding is "
      "untied where the two differ (docs/adapters.md).");
}

std::optional<DType> MergeVerbOptions::type() const {
  switch (dtype) {
    case MergeType::f32:
      return DType::f32;
    case MergeType::bf16:
      return DType::bf16;
    case MergeType::f16:
      return DType::f16;
    case MergeType::same:
      break;
  }
  return std::nullopt;
}

void MergeVerbOptions::check() const {
  if (compute.adapter.empty()) {
    throw usage_error("onset merge needs the adapter", "give --adapter DIR");
  }
  if (output.empty() || output == "-") {
    throw usage_error("onset merge writes a folder and needs its name", "give -o DIR");
  }
  mask.check();
}

std::string merged_text(const OrderedJson& model, const MergeReport& report,
                        const MergeVerbOptions& options, const TextStyle& style) {
  const auto row = [](const char* name, const std::string& text) {
    return name + wrap(text, 80, 9) + "\n";
  };
  const OrderedJson& adapter = model["adapter"];
  std::string text = row("adapter  ", str_cat("rank ", adapter["rank"].dump(), ", ",
                                              adapter["modules"].get<std::string>()));
  if (report.untied) {
    text +=
        row("untied   ", "head and embedding were one matrix and are two now; config.json says so");
  }
  text += row("folder   ",
              str_cat(printable(options.output, style.utf8), ": ", join(report.files, ", "), "; ",
                      human_bytes(static_cast<double>(report.bytes))));
  return text;
}

}  // namespace

int run_merge(const Invocation& invocation) {
  MergeVerbOptions options;
  CommandLine line("merge", "MODEL --adapter DIR -o DIR [options]",
                   "Folds a LoRA adapter into the weights of its model and writes the result as a "
                   "model of its own.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "merge");
  options.check();
  set_threads(options.compute.thread_count());
  Console console(options.quiet);
  const auto model = open_model(path, options.compute, console.log());
  const auto facts = model_json(model);
  const MergeOptions merging{
      .dtype = options.type(),
      .mask = mask_for(options.mask, model, console.log(), options.compute.adapter)};
  const auto report = merge(model, options.output, merging);

  ResultWriter writer("");
  if (options.json) {
    auto run = run_json(invocation);
    run["threads"] = options.compute.thread_count();
    run["paths"] = {{"model", valid_utf8(path)}, {"output", valid_utf8(options.output)}};
    add_mask_path(run, options.mask.path);
    add_adapter_path(run, options.compute);
    writer.write(json_document({{"run", std::move(run)},
                                {"model", facts},
                                {"wemask", wemask_json(merging.mask)},
                                {"bytes", report.bytes},
                                {"untied", report.untied},
                                {"files", report.files}}));
  } else {
    writer.write(merged_text(facts, report, options, {.utf8 = utf8_locale()}));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
