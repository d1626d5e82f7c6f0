// onset sinks: which heads give one token, usually the first, far more attention than its share.

#include <algorithm>
#include <utility>

#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "sample_text.h"
#include "sinks_report.h"
#include "text_file.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct SinksVerbOptions {
  SinkOptions sinks;
  std::int64_t length = 64;
  std::int64_t samples = 16;
  bool repeated = false;
  std::string repeat_id;
  bool explicit_softmax = false;
  std::string text;
  std::vector<std::string> ids;
  BosChoice bos = BosChoice::automatic;
  MaskFileOptions mask;
  ComputeOptions compute;
  OutputOptions output;

  void declare(CommandLine& line);
  void check() const;
};

void SinksVerbOptions::declare(CommandLine& line) {
  line.group("Text");
  line.path(text, "--text", "FILE",
            "a text file in UTF-8, cut into samples; without it the built-in text");
  line.integer(length, "--length", "T", "tokens of a sample, BOS included", 1, INT32_MAX);
  line.integer(samples, "--samples", "N", "take the first N samples of the text; 0 takes all", 0,
               INT64_MAX);
  line.texts(ids, "--ids", "1,5,9",
             "a sample as token ids, taken as they are; may be given several times");
  line.choice(bos, "--bos",
              {{"auto", BosChoice::automatic}, {"yes", BosChoice::yes}, {"no", BosChoice::no}},
              "begin every sample of the text with the BOS token: as the tokenizer's "
              "configuration says, always, or never; ids never get it");
  line.group("Measure");
  line.integer(sinks.key, "--token", "K", "the position whose share of attention is measured", 0,
               INT32_MAX);
  line.number(sinks.threshold, "--threshold", "X", "a head is a sink when its alpha is above this");
  line.toggle(repeated, "--repeated",
              "the control too: one token repeated T times, the most frequent of the samples");
  line.text(repeat_id, "--repeat-id", "ID", "the control with this token");
  line.toggle(explicit_softmax, "--explicit",
              "take the pass's own attention matrices, whole, in place of blocks of queries beside "
              "the fused kernel: the same numbers, more memory");
  mask.declare(line);
  compute.declare(line);
  output.declare(line);
  line.other_name("--prompt", "--text");
  line.other_name("--jsonl", "--text");
  line.example("onset sinks MODEL", "samples of 64 tokens of the built-in text");
  line.example("onset sinks MODEL --text corpus.txt --samples 100 --repeated",
               "a hundred samples of a file, and the control");
  line.example("onset sinks MODEL --text book.txt --length 4096 --samples 1 --json -o sinks.json",
               "one long sample, every head as JSON");
  line.example("onset sinks MODEL --wemask wemask.json", "masked beside unmasked");
  line.note(
      "Alpha of a head is the mean of the attention that the queries after token K give it; sinks "
      "are counted over samples, layers and heads. Queries whose sliding window hides the token "
      "are "
      "left out. Formulas, and what they cannot say: docs/sinks.md.");
}

void SinksVerbOptions::check() const {
  if (length < 2) {
    throw usage_error(str_cat("--length ", length, ": no query of such a sample looks back"),
                      "give at least --length 2; 64 is usual");
  }
  if (ids.empty() && sinks.key > length - 2) {
    throw usage_error(str_cat("--token ", sinks.key, ": no query follows it in samples of ", length,
                              " tokens (0 to ", length - 1, ")"),
                      str_cat("give --token ", length - 2, " or less, or a larger --length"));
  }
  if (sinks.threshold > 1) {
    throw usage_error(
        str_cat("--threshold ", shortest(sinks.threshold), ": alpha is a share of attention"),
        "give a number from 0 to 1; 0.3 is usual");
  }
  if (!ids.empty() && !text.empty()) {
    throw usage_error("--ids and --text exclude each other", "leave one of them out");
  }
}

// Samples of ids as they are given.
SinkSamples given_samples(const SinksVerbOptions& options, const ModelConfig& config) {
  SinkSamples samples{.source = SampleSource::ids, .ids = {}, .bos = {}};
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    const auto where = numbered_option("--ids", i, options.ids.size());
    const auto parsed = parse_ids(where, options.ids[i]);
    auto& ids = samples.ids.emplace_back(parsed.begin(), parsed.end());
    const auto length = static_cast<std::int64_t>(ids.size());
    if (options.sinks.key > length - 2) {
      throw usage_error(str_cat(where, ": ", counted(length, "token"),
                                ", so no query follows token ", options.sinks.key),
                        "give more ids, or a smaller --token");
    }
    for (const auto id : ids) {
      require_input(id < config.vocabulary, where, ": id ", id,
                    " is outside the model's vocabulary of ", config.vocabulary, " (0 to ",
                    config.vocabulary - 1, ")");
    }
  }
  return samples;
}

SinkSamples samples_of_text(const SinksVerbOptions& options, const std::string& text,
                            const Tokenizer& tokenizer) {
  SinkSamples samples{.source = options.text.empty() ? SampleSource::built_in : SampleSource::file,
                      .ids = {},
                      .bos = bos_before_text(options.bos, tokenizer)};
  const auto encoded = tokenizer.encode(text);
  const std::vector<std::int64_t> ids(encoded.begin(), encoded.end());
  samples.text_tokens = static_cast<std::int64_t>(ids.size());
  samples.ids = cut_samples(ids, options.length, 0, samples.bos);
  samples.text_samples = static_cast<std::int64_t>(samples.ids.size());
  if (samples.ids.empty()) {
    const auto name = options.text.empty() ? "the built-in text" : printable(options.text, true);
    const auto least = samples.text_tokens + (samples.bos ? 1 : 0);
    throw input_error(str_cat(name, ": has ", counted(samples.text_tokens, "token"),
                              ", which fill no sample of --length ", options.length),
                      least < 2 ? str_cat("give --text a longer file")
                                : str_cat("give --text a longer file, or --length ", least));
  }
  if (options.samples > 0 && options.samples < samples.text_samples) {
    samples.ids.resize(static_cast<std::size_t>(options.samples));
  }
  return samples;
}

std::int64_t repeated_id(const SinksVerbOptions& options, const SinkSamples& samples,
                         const ModelConfig& config) {
  if (options.repeat_id.empty()) return most_frequent_token(samples.ids);
  return parse_integer("--repeat-id", options.repeat_id, 0, config.vocabulary - 1);
}

void warn_of_length(const SinkSamples& samples, const ModelConfig& config, const Log& log) {
  std::size_t longest = 0;
  for (const auto& ids : samples.ids) longest = std::max(longest, ids.size());
  if (config.context <= 0 || static_cast<std::int64_t>(longest) <= config.context) return;
  log.warning(str_cat("samples of ", longest, " tokens are longer than the model's context of ",
                      config.context, ": it was not trained for the rest"));
}

// The bytes of the token at the measured position, where it is the same in all samples.
std::optional<std::string> key_piece(const SinkSamples& samples, std::int64_t key,
                                     const Tokenizer& tokenizer) {
  const auto at = static_cast<std::size_t>(key);
  const auto id = samples.ids.front()[at];
  const bool shared = std::all_of(samples.ids.begin(), samples.ids.end(),
                                  [&](const auto& ids) { return ids[at] == id; });
  if (!shared || id >= tokenizer.vocabulary_size()) return std::nullopt;
  return tokenizer.piece_bytes(static_cast<TokenId>(id));
}

ModelSinks measure(const std::string& path, const std::string& text,
                   const SinksVerbOptions& options, const Log& log) {
  const auto model = open_model(path, options.compute, log);
  const auto& config = model.config();
  ModelSinks sinks;
  sinks.mask = mask_for(options.mask, model, log);
  sinks.path = path;
  sinks.model = model_json(model);
  for (const auto& layer : config.layers) sinks.windows.push_back(layer.sliding_window);
  std::optional<Tokenizer> tokenizer;
  if (options.ids.empty()) {
    tokenizer = open_tokenizer(path, "without a tokenizer, give token ids: --ids 1,5,9");
    sinks.samples = samples_of_text(options, text, *tokenizer);
    sinks.key_piece = key_piece(sinks.samples, options.sinks.key, *tokenizer);
  } else {
    sinks.samples = given_samples(options, config);
  }
  sinks.model["bos"] = sinks.samples.bos ? OrderedJson(*sinks.samples.bos) : OrderedJson("none");
  warn_of_length(sinks.samples, config, log);

  SinkOptions measured = options.sinks;
  measured.route = options.explicit_softmax ? SinkRoute::explicit_softmax : SinkRoute::blocks;
  const auto masked = sinks.mask ? masking(*sinks.mask, model) : nullptr;
  sinks.result = measure_sinks(model, sinks.samples.ids, measured, log);
  if (masked) sinks.masked = measure_sinks(model, sinks.samples.ids, measured, log, masked.get());
  if (options.repeated || !options.repeat_id.empty()) {
    auto& control = sinks.control.emplace();
    control.id = repeated_id(options, sinks.samples, config);
    if (tokenizer && control.id < tokenizer->vocabulary_size()) {
      control.piece = tokenizer->piece_bytes(static_cast<TokenId>(control.id));
    }
    const std::vector<std::vector<std::int64_t>> repeated{
        std::vector<std::int64_t>(sinks.samples.ids.front().size(), control.id)};
    control.length = static_cast<std::int64_t>(repeated.front().size());
    control.result = measure_sinks(model, repeated, measured, log);
    if (masked) control.masked = measure_sinks(model, repeated, measured, log, masked.get());
  }
  return sinks;
}

OrderedJson run_object(const Invocation& invocation, const SinksVerbOptions& options,
                       const std::string& path) {
  OrderedJson run = run_json(invocation);
  add_compute(run, options.compute);
  run["paths"] = {{"model", valid_utf8(path)}, {"text", nullptr}};
  if (!options.text.empty()) run["paths"]["text"] = valid_utf8(options.text);
  add_mask_path(run, options.mask.path);
  add_adapter_path(run, options.compute);
  return run;
}

}  // namespace

int run_sinks(const Invocation& invocation) {
  SinksVerbOptions options;
  CommandLine line("sinks", "MODEL [options]",
                   "Measures attention sinks: how much of their attention the heads of every layer "
                   "give the first token, or another, over samples of a text.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "sinks");
  options.check();
  options.mask.check();
  InputPaths inputs{.models = {path}};
  options.compute.add_to(inputs);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  if (!options.text.empty()) inputs.files.push_back(options.text);
  refuse_overwriting("-o", options.output.output, inputs);
  const auto text =
      options.text.empty() ? std::string(sample_text()) : read_text(options.text, "--text");

  ResultWriter writer(options.output.output);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  Console console(options.output.quiet);
  const auto sinks = measure(path, text, options, console.log());
  console.erase();
  if (options.output.json) {
    OrderedJson document{{"run", run_object(invocation, options, path)}};
    document.update(sinks_json(sinks));
    writer.write(json_document(document));
  } else {
    writer.write(
        sinks_text(sinks, {.utf8 = utf8_locale(), .colour = colour_wanted(options.output.output)}));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
