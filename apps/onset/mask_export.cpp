// onset mask export: the keys and values of the masked first token, for engines that take a prefix.

#include "mask_export.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "inputs.h"
#include "mask_option.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/runtime.h"
#include "onset/wemask/kv_prefix.h"
#include "onset/wemask/mask_json.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "text.h"

namespace onset::app {
namespace {

struct ExportOptions {
  MaskFileOptions mask;
  std::vector<std::string> token_ids;
  std::string output;
  bool json = false;
  bool quiet = false;
  PromptOptions prompts;
  ComputeOptions compute;

  void declare(CommandLine& line);
  void check() const;
  [[nodiscard]] bool into_one_file() const { return output.ends_with(".safetensors"); }
};

void ExportOptions::declare(CommandLine& line) {
  mask.declare(line);
  line.group("First tokens");
  line.texts(token_ids, "--token-id", "N",
             "a first token; may be given several times. Without it, those that the prompts begin "
             "with: the BOS where texts get one");
  prompts.declare(line);
  compute.declare(line);
  line.group("Output");
  line.path(output, "-o,--output", "FILE|FOLDER",
            "NAME.safetensors for one first token; else a folder, which gets token-N.safetensors "
            "for each; must be given");
  line.toggle(json, "--json", "say what was written as JSON");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.example("onset mask export MODEL --wemask wemask.json -o bos.safetensors",
               "where texts begin with a BOS: the prefix for all of them");
  line.example(
      "onset mask export MODEL --wemask wemask.json --chat --prompt Hello -o chat.safetensors",
      "for chats, which all begin alike");
  line.note(
      "At position 0 a token attends to itself alone, so its keys and values depend on its id and "
      "the mask only. An engine that begins a text with them runs under the mask. Layout, and a "
      "loader for transformers: docs/wemask.md.");
}

void ExportOptions::check() const {
  if (!mask.given()) {
    throw usage_error("onset mask export needs a mask", "give --wemask FILE, made by mask make");
  }
  mask.check();
  if (output.empty() || output == "-") {
    throw usage_error("onset mask export writes files and needs a name",
                      "give -o NAME.safetensors, or -o FOLDER");
  }
  if (is_special_file(output)) {
    throw usage_error(str_cat("-o ", quote(output), " is neither a file nor a folder"));
  }
  if (!token_ids.empty() && !prompts.empty()) {
    throw usage_error("--token-id and prompts both say which token comes first",
                      "give one of them");
  }
}

// A token that texts begin with.
struct FirstToken {
  std::int64_t id = 0;
  std::string piece;  // empty without a tokenizer
  std::string shown;
  std::string file;
};

std::vector<PromptSource> sources_of(const ExportOptions& options) {
  if (options.token_ids.empty()) return prompts_or_built_in(options.prompts);
  std::vector<PromptSource> sources;
  for (const auto& text : options.token_ids) {
    sources.push_back({"--token-id", std::vector<TokenId>{static_cast<TokenId>(
                                         parse_integer("--token-id", text, 0, INT32_MAX))}});
  }
  return sources;
}

// The different ones, in the order of the prompts.
std::vector<FirstToken> first_tokens(const ExportOptions& options, const std::string& path,
                                     const ModelConfig& config, const Log& log) {
  PromptEncoder encoder(path, options.prompts, config, log);
  // Opens the tokenizer where there is one, for the pieces of ids.
  static_cast<void>(encoder.text_bos());
  std::vector<FirstToken> tokens;
  for (const auto& source : sources_of(options)) {
    const auto prompt = encoder.encode(source);
    const auto known = [&](const FirstToken& token) { return token.id == prompt.ids.front(); };
    if (std::any_of(tokens.begin(), tokens.end(), known)) continue;
    FirstToken token{.id = prompt.ids.front(), .piece = {}, .shown = {}, .file = {}};
    if (!prompt.pieces.empty()) {
      token.piece = prompt.pieces.front();
      token.shown = prompt.shown.front();
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (!std::filesystem::is_directory(path)) {
    throw resource_error(str_cat("-o ", quote(path), " is no folder and cannot be made one",
                                 failed ? ": " + failed.message() : std::string()),
                         "for a single file, let its name end in .safetensors");
  }
}

void name_files(const ExportOptions& options, const std::string& model,
                std::vector<FirstToken>& tokens) {
  if (options.into_one_file() && tokens.size() > 1) {
    if (options.prompts.empty() && options.token_ids.empty()) {
      throw usage_error(
          "this model puts no BOS before a text, so that each text has its own first token",
          "say which: --chat --prompt Hello for chats, --prompt TEXT, or --token-id N");
    }
    std::vector<std::string> ids;
    ids.reserve(tokens.size());
    for (const auto& token : tokens) ids.push_back(str_cat(token.id));
    throw usage_error(str_cat("the prompts begin with ", tokens.size(), " different tokens, ",
                              join(ids, ", "), ", and each needs a file of its own"),
                      "name a folder with -o, or one of them with --token-id");
  }
  for (auto& token : tokens) {
    token.file =
        options.into_one_file()
            ? options.output
            : (std::filesystem::path(options.output) / str_cat("token-", token.id, ".safetensors"))
                  .string();
    auto files = options.prompts.jsonl;
    files.push_back(options.mask.path);
    refuse_overwriting("-o", token.file, {.models = {model}, .files = files});
  }
}

// What holds of this model beside the files.
std::vector<std::string> notes_of(const ExportOptions& options, const ModelConfig& config,
                                  std::size_t tokens) {
  std::vector<std::string> notes;
  if (tokens > 1 && options.token_ids.empty() && options.prompts.empty()) {
    notes.emplace_back(
        "this model puts no BOS before a text, so these are the first tokens of the built-in "
        "texts; name those of your texts with --token-id, --prompt or --chat");
  }
  std::int64_t windowed = 0;
  std::int64_t window = 0;
  for (const auto& layer : config.layers) {
    if (layer.sliding_window == 0) continue;
    ++windowed;
    window = std::max(window, layer.sliding_window);
  }
  if (windowed > 0) {
    notes.push_back(str_cat(windowed, " of ", config.layer_count(), " layers see the last ", window,
                            " tokens only: there the prefix leaves the window as the first token "
                            "itself does"));
  }
  if (config.has_latent_attention()) {
    notes.emplace_back(
        "latent attention: the files hold the normed latent and the shared key part after RoPE");
  }
  return notes;
}

OrderedJson written_json(const std::vector<FirstToken>& tokens, const KvPrefixSummary& summary) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& token : tokens) {
    rows.push_back({{"token_id", token.id},
                    {"piece", token.piece.empty() ? OrderedJson(nullptr)
                                                  : OrderedJson(valid_utf8(token.piece))},
                    {"file", valid_utf8(token.file)},
                    {"tensors", summary.tensors},
                    {"bytes", std::filesystem::file_size(token.file)}});
  }
  return rows;
}

std::string written_text(const std::vector<FirstToken>& tokens, const KvPrefixSummary& summary,
                         const std::vector<std::string>& notes) {
  const bool utf8 = utf8_locale();
  std::string text = "  token  piece               size  file\n";
  for (const auto& token : tokens) {
    const std::string piece =
        token.shown.empty() ? "-" : "\"" + printable(token.shown, utf8) + "\"";
    const auto bytes = static_cast<double>(std::filesystem::file_size(token.file));
    text += pad_left(str_cat(token.id), 7) + "  " + pad_right(fit(piece, 14, utf8), 14) +
            pad_left(human_bytes(bytes), 10) + "  " + printable(token.file, utf8) + "\n";
  }
  text += "\n" +
          wrap(str_cat(summary.tensors,
                       " float32 tensors each: what attention keeps of that token "
                       "at position 0 under the mask. A text that begins with "
                       "it, given to an engine behind this prefix without its "
                       "first token, runs under the mask."),
               80, 0) +
          "\n";
  for (const auto& note : notes) text += "\n" + wrap(note, 80, 0) + "\n";
  return text;
}

}  // namespace

int run_mask_export(const Invocation& invocation) {
  ExportOptions options;
  CommandLine line("mask export", "MODEL --wemask FILE -o FILE|FOLDER [options]",
                   "Writes the keys and values of the masked first token, one safetensors file a "
                   "token, for engines that take a prefix cache.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "mask export");
  options.check();
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  Console console(options.quiet);
  const auto model = open_model(path, options.compute, console.log());
  const auto spec = mask_for(options.mask, model, console.log());
  check_kv_prefix(*spec);
  auto tokens = first_tokens(options, path, model.config(), console.log());
  name_files(options, path, tokens);
  if (!options.into_one_file()) make_folder(options.output);
  std::vector<KvPrefix> prefixes;
  for (const auto& token : tokens) {
    KvPrefix prefix{
        .token = token.id, .path = token.file, .metadata = {{"version", ONSET_VERSION}}};
    if (!model.adaptation().is_null()) prefix.metadata["adapter"] = model.adaptation().dump();
    if (!model.adaptation().is_null()) prefix.metadata["adapter"] = model.adaptation().dump();
    if (!token.piece.empty()) prefix.metadata["piece"] = valid_utf8(token.piece);
    prefixes.push_back(std::move(prefix));
  }
  const auto summary = write_kv_prefixes(model, *spec, prefixes, console.log());

  const auto notes = notes_of(options, model.config(), tokens.size());
  ResultWriter writer("");
  if (options.json) {
    auto run = run_json(invocation);
    add_compute(run, options.compute);
    writer.write(
        json_document({{"run", std::move(run)},
                       {"model", model_json(model)},
                       {"mask", mask_json(*spec)},
                       {"layout", model.config().has_latent_attention() ? "latent" : "heads"},
                       {"prefixes", written_json(tokens, summary)},
                       {"notes", notes}}));
  } else {
    writer.write(written_text(tokens, summary, notes));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
