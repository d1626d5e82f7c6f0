// onset generate: text from prompts, without a mask, under one, or both.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "generated.h"
#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/processor_share.h"
#include "onset/base/strings.h"
#include "onset/generate/generator.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "sampling_option.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct GenerateOptions {
  PromptOptions prompts;
  SamplingVerbOptions sampling;
  std::int64_t samples = 1;
  std::string logprobs;
  std::int64_t batch = 32;
  bool show_special = false;
  bool both = false;
  MaskFileOptions mask;
  ComputeOptions compute;
  OutputOptions output;

  void declare(CommandLine& line);
  void check() const;
  [[nodiscard]] std::optional<std::int64_t> alternatives() const;
};

void GenerateOptions::declare(CommandLine& line) {
  prompts.declare(line);
  sampling.declare(line);
  line.integer(samples, "--n", "N", "so many continuations of each prompt", 1, 100000);
  mask.declare(line);
  line.toggle(both, "--both", "every prompt twice: as the model is, and under the mask");
  compute.residency = Residency::resident;
  compute.declare(line, "what the random draws go by; the same seed, the same tokens");
  line.integer(batch, "--batch", "N", "so many sequences at a time", 1, 4096);
  output.declare(line);
  line.text(logprobs, "--logprobs", "N",
            "log-probabilities of the tokens, and of the N most likely ones at each place (JSON)");
  line.toggle(show_special, "--show-special", "special tokens are part of the text");
  line.other_name("--text", "--prompt");
  line.other_name("--max-new-tokens", "--max-tokens");
  line.other_name("--num-samples", "--n");
  line.example("onset generate MODEL --chat --prompt \"What is a residual stream?\"",
               "an answer, as it comes");
  line.example("onset generate MODEL --chat --prompt \"Tell a story.\" --wemask wemask.json --both",
               "the model as it is beside the model under a mask");
  line.example("onset generate MODEL --jsonl prompts.jsonl --n 4 --temperature 0.8 -o out.jsonl",
               "four samples of every line, one line of JSON each");
  line.note(
      "The text of one prompt is written as it comes. With several prompts, --n, "
      "--logprobs, --json or -o there is one line of JSON for each sample, in the order of the "
      "prompts. "
      "--prompt - takes all of standard input as one prompt, --jsonl - its lines. Promises about "
      "randomness and batching: docs/generate.md.");
}

void GenerateOptions::check() const {
  sampling.check();
  mask.check();
  static_cast<void>(alternatives());
  if (prompts.empty()) {
    throw usage_error("onset generate needs a prompt",
                      "give --prompt TEXT, --ids or --jsonl; --prompt - reads standard input");
  }
  if (both && !mask.given()) {
    throw usage_error("--both is about a mask, and none is given", "add --wemask FILE");
  }
  if (samples > 1 && sampling.sampling.temperature == 0) {
    throw usage_error(
        str_cat("--n ", samples, " with temperature 0: all samples would be the same"),
        "add --temperature 0.8");
  }
}

std::optional<std::int64_t> GenerateOptions::alternatives() const {
  if (logprobs.empty()) return std::nullopt;
  return parse_integer("--logprobs", logprobs, 0, 1000);
}

// Requests in the order of the output: by prompt, without and with the mask, by sample.
struct Work {
  std::string path;
  std::vector<PromptSource> sources;
  std::vector<EncodedPrompt> prompts;
  std::vector<std::shared_ptr<const MaskSpec>> masks;  // of each prompt's requests; null: none
  OrderedJson model;
  std::int64_t samples = 1;

  [[nodiscard]] std::size_t per_prompt() const {
    return masks.size() * static_cast<std::size_t>(samples);
  }
  [[nodiscard]] std::size_t rows() const { return prompts.size() * per_prompt(); }
};

const Tokenizer* tokenizer_of(PromptEncoder& encoder, const std::vector<PromptSource>& sources) {
  try {
    return &encoder.tokenizer();
  } catch (const Error&) {
    const bool ids_alone = std::all_of(sources.begin(), sources.end(), [](const auto& source) {
      return std::holds_alternative<std::vector<TokenId>>(source.content);
    });
    if (!ids_alone) throw;
    return nullptr;  // ids to ids
  }
}

// Runs everything; `on_update` is told the row (see Work) that an update belongs to.
void run_all(Generator& generator, const Work& work, const GenerateOptions& options,
             const std::function<void(std::size_t, const GenerationUpdate&)>& on_update,
             const std::function<void()>& on_step) {
  const auto alternatives = options.alternatives();
  for (std::size_t p = 0; p < work.prompts.size(); ++p) {
    for (std::size_t m = 0; m < work.masks.size(); ++m) {
      auto request = options.sampling.request(work.prompts[p].ids, options.compute.seed);
      request.samples = work.samples;
      request.number = p;  // the same draws without and with the mask
      request.show_special = options.show_special;
      request.logprobs = alternatives.has_value();
      request.top_logprobs = alternatives.value_or(0);
      request.mask = work.masks[m];
      const std::size_t first = p * work.per_prompt() + m * static_cast<std::size_t>(work.samples);
      try {
        static_cast<void>(generator.submit(
            std::move(request), [first, &on_update](const GenerationUpdate& update) {
              on_update(first + static_cast<std::size_t>(update.sample), update);
            }));
      } catch (const Error& error) {
        throw Error(error.kind(), str_cat(work.sources[p].where, ": ", error.what()), error.hint());
      }
    }
  }
  // Decoding waits for its threads hundreds of times a token. Spinning is the faster way to wait,
  // unless other processes need the processors.
  ProcessorShare share(threads());
  bool spins = true;
  for (bool any = true; any;) {
    share.begin();
    any = generator.step();
    share.end();
    if (spins && share.is_short()) {
      spin_briefly();
      spins = false;
    }
    on_step();
  }
}

OrderedJson row_json(const Work& work, std::size_t row, const GeneratedSample& sample,
                     const GenerateOptions& options, const OrderedJson& run, bool has_text) {
  const auto samples = static_cast<std::size_t>(work.samples);
  const auto p = row / work.per_prompt();
  const auto m = row % work.per_prompt() / samples;
  std::vector<std::int64_t> ids;
  for (const auto& token : sample.tokens) ids.push_back(token.id);
  OrderedJson json{{"prompt", p}, {"sample", row % samples}};
  json["text"] = has_text ? OrderedJson(valid_utf8(sample.text)) : OrderedJson(nullptr);
  json["ids"] = ids;
  json["finish_reason"] = name_of(*sample.finish);
  if (!sample.error.empty()) json["error"] = valid_utf8(sample.error);
  json["logprobs"] = options.logprobs.empty() ? OrderedJson(nullptr) : logprobs_json(sample);
  json["wemask"] = mask_identity(work.masks[m].get());
  json["prompt_text"] = valid_utf8(work.prompts[p].text);
  json["prompt_ids"] = work.prompts[p].ids;
  json["bos_added"] = work.prompts[p].bos_added;
  json["sampling"] = sampling_json(options.sampling);
  json["model"] = work.model;
  json["run"] = run;
  return json;
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string summary(const Work& work, const GeneratorCounts& counts, double seconds,
                    const GenerateOptions& options) {
  const double rate = static_cast<double>(counts.generated_tokens) / std::max(seconds, 1e-9);
  auto sampling = options.sampling.sampling;
  sampling.seed = static_cast<std::uint64_t>(options.compute.seed);
  std::string text = str_cat(counted(counts.prompt_tokens, "prompt token"), ", ",
                             counted(counts.generated_tokens, "token"), " generated in ",
                             human_seconds(seconds), " (", fixed(rate, 1), " tokens/s, ",
                             compute_words(options.compute), "); ", sampling_words(sampling));
  if (work.masks.back() != nullptr) {
    text += str_cat("; mask ", mask_identity(work.masks.back().get())["id"].get<std::string>());
  }
  return text;
}

// Whether the result is text for people: one prompt with one answer, or two answers beside each
// other.
bool is_text(const GenerateOptions& options, std::size_t prompts) {
  return prompts == 1 && options.samples == 1 && !options.output.json && options.logprobs.empty() &&
         options.output.output.empty();
}

// Reads "-" among the prompts from standard input, which can be read once.
std::vector<PromptSource> read_sources(const PromptOptions& options) {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  PromptOptions given = options;
  std::vector<PromptSource> rows;
  const auto texts = std::count(options.texts.begin(), options.texts.end(), "-");
  const auto files = std::count(options.jsonl.begin(), options.jsonl.end(), "-");
  if (texts + files > 1) {
    throw usage_error("standard input is named more than once", "give one - among the prompts");
  }
  if (texts + files == 0) return read_prompts(options);
  if (is_terminal) write_error_text("onset: reading standard input; end it with Ctrl-D\n");
  StandardInput input;
  if (texts > 0) {
    for (auto& text : given.texts) {
      if (text != "-") continue;
      text = input.rest();
      if (text.ends_with('\n')) text.pop_back();  // of `echo`: a prompt that ends a line is another
      require_input(!text.empty(), "standard input is empty");
    }
    return read_prompts(given);
  }
  std::erase(given.jsonl, "-");
  std::size_t number = 0;
  for (std::string line; input.next_line(line);) {
    ++number;
    if (trim(line).empty()) continue;
    rows.push_back(parse_row(line, str_cat("standard input:", number), RowFields::text_first));
  }
  require_input(!rows.empty(), "standard input holds no prompt");
  auto sources = given.empty() ? std::vector<PromptSource>() : read_prompts(given);
  sources.insert(sources.end(), std::make_move_iterator(rows.begin()),
                 std::make_move_iterator(rows.end()));
  return sources;
}

}  // namespace

int run_generate(const Invocation& invocation) {
  GenerateOptions options;
  CommandLine line("generate", "MODEL [options]",
                   "Continues prompts: as the model is, under a mask, or both.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  Work work;
  work.path = single_model(line, "generate");
  work.samples = options.samples;
  options.check();
  InputPaths inputs{.models = {work.path}, .files = options.prompts.jsonl};
  options.compute.add_to(inputs);
  if (options.mask.given()) inputs.files.push_back(options.mask.path);
  refuse_overwriting("-o", options.output.output, inputs);
  work.sources = read_sources(options.prompts);
  ResultWriter writer(options.output.output);

  keep_freed_memory();
  set_threads(options.compute.thread_count());
  Console console(options.output.quiet);
  const auto model = open_model(work.path, options.compute, console.log());
  const auto mask = mask_for(options.mask, model, console.log(), options.compute.adapter);
  if (!mask || options.both) work.masks.push_back(nullptr);
  if (mask) work.masks.push_back(std::make_shared<const MaskSpec>(*mask));
  PromptEncoder encoder(work.path, options.prompts, model.config(), console.log());
  const Tokenizer* tokenizer = tokenizer_of(encoder, work.sources);
  for (const auto& source : work.sources) work.prompts.push_back(encoder.encode(source));
  work.model = model_json(model);
  work.model["bos"] = encoder.bos() ? OrderedJson(*encoder.bos()) : OrderedJson("none");

  Generator generator(model, tokenizer, {.max_rows = options.batch});
  std::vector<GeneratedSample> samples(work.rows());
  const bool as_text = is_text(options, work.prompts.size()) && tokenizer != nullptr;
  const bool streams = as_text && samples.size() == 1;
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  RowsInOrder rows(writer, samples.size());
  std::size_t done = 0;
  std::size_t failed = 0;
  const auto started = std::chrono::steady_clock::now();
  run_all(
      generator, work, options,
      [&](std::size_t row, const GenerationUpdate& update) {
        GeneratedSample& sample = samples[row];
        sample.add(update);
        if (streams && !update.text.empty()) {
          console.erase();
          writer.write(on_terminal ? terminal_text(update.text, utf8_locale()) : update.text);
          writer.flush();
        }
        if (!sample.finish) return;
        ++done;
        if (*sample.finish == FinishReason::failed) {
          ++failed;
          console.warn(str_cat(work.sources[row / work.per_prompt()].where, ": ", sample.error));
        }
        if (as_text) return;
        auto run = run_json(invocation);
        add_compute(run, options.compute);
        run["paths"] = {{"model", valid_utf8(work.path)}};
        add_mask_path(run, options.mask.path);
        add_adapter_path(run, options.compute);
        rows.put(row, row_json(work, row, sample, options, run, tokenizer != nullptr));
        sample.tokens.clear();
      },
      [&] {
        if (!streams && samples.size() > 1) {
          console.progress("samples", static_cast<std::int64_t>(done),
                           static_cast<std::int64_t>(samples.size()));
        }
      });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
  console.erase();
  if (streams) {
    writer.write("\n");
  } else if (as_text) {
    writer.write(side_by_side("unmasked", samples[0].text, "masked", samples[1].text,
                              on_terminal ? terminal_width() : 80, utf8_locale()));
  }
  writer.finish();
  console.note(summary(work, generator.counts(), elapsed.count(), options));
  return failed > 0 ? 1 : 0;
}

}  // namespace onset::app
