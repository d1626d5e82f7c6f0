#include "options.h"

#include <algorithm>

#include <utility>

#include "onset/base/error.h"
#include "onset/base/processors.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/chat.h"
#include "onset/train/adapt.h"
#include "process.h"
#include "text.h"

namespace onset::app {
namespace {

std::vector<std::pair<std::string, Compute>> compute_names() {
  std::vector<std::pair<std::string, Compute>> names;
  for (const auto compute : {Compute::f32, Compute::bf16, Compute::f64}) {
    names.emplace_back(compute_name(compute), compute);
  }
  return names;
}

// The library knows why float16 is refused, under one name.
void refuse_float16(const std::string& given) {
  if (given == "f16" || given == "fp16" || given == "float16" || given == "half") {
    static_cast<void>(parse_compute("f16"));
  }
}

}  // namespace

std::string chat_format_names() {
  std::string names;
  for (const auto& format : chat_formats()) {
    names.append(names.empty() ? "" : ", ").append(format.name);
  }
  return names;
}

void PromptOptions::declare(CommandLine& line) {
  line.group("Prompts");
  line.texts(texts, "--prompt", "TEXT", "a prompt; may be given several times");
  line.texts(ids, "--ids", "1,5,9",
             "a prompt as token ids, taken as they are; may be given several times");
  line.texts(jsonl, "--jsonl", "FILE",
             "one prompt a line: an object with \"messages\", \"text\" or \"ids\" (the first of "
             "these that it has); may be given several times");
  line.toggle(chat, "--chat",
              "take each text as a user's message and write it in the model's chat format, ending "
              "where the answer begins");
  line.text(chat_format, "--chat-format", "NAME",
            "chat format to use in place of the model's own: " + chat_format_names());
  line.toggle(parse_special, "--parse-special",
              "special tokens are special also where a chat's message spells them; without it they "
              "are text there");
  line.other_name("--text", "--prompt");
  line.choice(bos, "--bos",
              {{"auto", BosChoice::automatic}, {"yes", BosChoice::yes}, {"no", BosChoice::no}},
              "put the BOS token before a prompt: as the tokenizer's configuration says, always, "
              "or never; it is never doubled, and ids get it with yes only");
}

void ComputeOptions::declare(CommandLine& line, const std::string& seed_help) {
  line.group("Computing");
  line.choice(compute, "--compute", compute_names(),
              "number format of the products; the residual stream stays float32 or wider",
              refuse_float16);
  line.add_value("--device",
                 {"", "NAME", "where it is computed: cpu, cuda or cuda:N (docs/device.md)",
                  device_name(device)},
                 false, [this](const std::string& name) { device = parse_device(name); });
  line.path(adapter, "--adapter", "DIR",
            "put a LoRA adapter in PEFT's layout on the model (docs/adapters.md)");
  declare_threads(line, threads);
  line.integer(seed, "--seed", "N", seed_help, 0, INT64_MAX);
}

void declare_threads(CommandLine& line, std::int64_t& threads) {
  line.integer(threads, "--threads", "N",
               "threads; 0 takes the physical cores that this process may use", 0, 4096);
}

int ComputeOptions::thread_count() const {
  return threads > 0 ? static_cast<int>(threads) : available_cores();
}

void ComputeOptions::add_to(InputPaths& inputs) const {
  if (!adapter.empty()) inputs.models.push_back(adapter);
}

void refuse_empty_path(const std::string& path) {
  if (path.empty()) throw usage_error("the name of the model is empty");
}

void add_compute(OrderedJson& run, const ComputeOptions& options) {
  run["threads"] = options.thread_count();
  run["device"] = device_name(options.device);
  run["compute"] = compute_name(options.compute);
  run["seed"] = options.seed;
  // One pass over a model keeps nothing: each layer's pages are read when it runs, then dropped.
  run["weights"] = options.residency == Residency::resident ? "resident" : "streamed";
}

std::string compute_words(const ComputeOptions& options) {
  const bool cpu = options.device.kind == DeviceKind::cpu;
  return str_cat(compute_name(options.compute), cpu ? "" : " on " + device_name(options.device));
}

void add_adapter_path(OrderedJson& run, const ComputeOptions& options) {
  run["paths"]["adapter"] =
      options.adapter.empty() ? OrderedJson() : OrderedJson(valid_utf8(options.adapter));
}

Model open_model(const std::string& path, const ComputeOptions& options, const Log& log) {
  auto model = Model::open(
      path, {.compute = options.compute, .residency = options.residency, .device = options.device},
      log);
  if (!options.adapter.empty()) adapt(model, options.adapter, log);
  return model;
}

void refuse_shared_adapter(const ComputeOptions& options, std::size_t models) {
  if (options.adapter.empty() || models < 2) return;
  throw usage_error(str_cat("--adapter belongs to one model, and ", models, " are given"),
                    "run the verb once for each");
}

void OutputOptions::declare(CommandLine& line) {
  line.group("Output");
  line.toggle(json, "--json", "JSON in place of tables and text (fields: docs/json.md)");
  line.path(output, "-o,--output", "FILE",
            "write the result to FILE, which appears when it is complete; - is standard output");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
}

std::vector<std::string> parts_of_lists(const std::string& option,
                                        const std::vector<std::string>& given,
                                        const std::vector<std::string>& fallback) {
  std::vector<std::string> parts;
  for (const auto& list : given) {
    for (const auto& part : split(list, ',')) {
      const std::string name(trim(part));
      if (name.empty()) throw usage_error(str_cat(option, ": a part of the list is empty"));
      if (std::find(parts.begin(), parts.end(), name) != parts.end()) {
        throw usage_error(str_cat(option, ": ", quote(name), " is there twice"));
      }
      parts.push_back(name);
    }
  }
  return parts.empty() ? fallback : parts;
}

std::string single_model(const CommandLine& line, const std::string& verb) {
  const auto& given = line.positionals();
  if (given.empty()) {
    throw usage_error(str_cat("onset ", verb, " needs a model: a folder or a .gguf file"),
                      str_cat("see: onset ", verb, " --help"));
  }
  if (given.size() > 1) {
    const std::string& extra = given[1];
    const bool of_a_switch =
        extra == "true" || extra == "True" || extra == "false" || extra == "False";
    throw usage_error(
        str_cat("onset ", verb, " takes one model; ", quote(extra), " is one too many"),
        of_a_switch ? "a switch takes no value: leave it out"
                    : str_cat("see: onset ", verb, " --help"));
  }
  refuse_empty_path(given.front());
  return given.front();
}

}  // namespace onset::app
