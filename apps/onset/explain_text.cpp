#include "explain_text.h"

#include <algorithm>
#include <utility>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "sample_text.h"
#include "text.h"
#include "text_file.h"

namespace onset::app {
namespace {

constexpr std::int64_t most_sink_samples = 8;

}  // namespace

void ExperimentTextOptions::declare(CommandLine& line) {
  line.group("The text of the experiments");
  line.path(file, "--text", "FILE", "a text file; without it, a built-in sample");
  line.filled_text(ids, "--text-ids", "1,5,9", "the text as token ids, without BOS",
                   "for example --text-ids 1,5,9");
  line.integer(tokens, "--text-tokens", "N", "use its first N tokens; 0 is all", 0, INT64_MAX);
  line.integer(window, "--window", "N",
               "tokens of a window in which the perplexity is measured, BOS included", 2, 1 << 20);
}

void ExperimentTextOptions::check() const {
  if (file.empty() || ids.empty()) return;
  throw usage_error("--text and --text-ids exclude each other", "leave one of them out");
}

std::vector<std::int64_t> text_ids(const ExperimentTextOptions& options, PromptEncoder& encoder) {
  std::vector<std::int64_t> ids;
  if (!options.ids.empty()) {
    for (const auto id : parse_ids("--text-ids", options.ids)) ids.push_back(id);
    return ids;
  }
  const std::string text =
      options.file.empty() ? std::string(sample_text()) : read_text(options.file, "--text");
  for (const auto id : encoder.tokenizer().encode(text)) ids.push_back(id);
  return ids;
}

std::optional<ExperimentText> experiment_text_of(const ExperimentTextOptions& options,
                                                 const Model& model, PromptEncoder& encoder,
                                                 const Log& log, Explanation& explanation) {
  std::vector<std::int64_t> ids;
  try {
    ids = text_ids(options, encoder);
  } catch (const Error& error) {
    if (!options.file.empty() || !options.ids.empty()) throw;
    log.warning(str_cat("no text for the experiments (", error.what(),
                        "): perplexity, sinks and doses are left out; give --text-ids"));
    return std::nullopt;
  }
  for (const auto id : ids) {
    require_input(id >= 0 && id < model.config().vocabulary, "--text-ids: token id ", id,
                  " is outside the model's vocabulary of ", model.config().vocabulary);
  }
  TextUsed used;
  used.source = !options.ids.empty()   ? "--text-ids"
                : options.file.empty() ? "built-in sample"
                                       : options.file;
  if (options.tokens > 0 && std::ssize(ids) > options.tokens) {
    ids.resize(static_cast<std::size_t>(options.tokens));
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
  if (const auto words = short_text_words(used); !words.empty()) log.warning(words);
  explanation.text = used;
  return text;
}

void explain_under_mask(const Model& model, const std::optional<ExperimentText>& text,
                        const ExplainOptions& wanted, const Log& log, Explanation& explanation) {
  const auto masked = masking(*explanation.mask, model);
  const auto& plain = explanation.result.target;
  if (!explanation.masked_scan) {
    std::vector<ScanPrompt> prompts;
    for (const auto& prompt : explanation.prompts) prompts.push_back({prompt.text, prompt.ids});
    explanation.masked_scan = scan(model, prompts, explanation.scan.options, log, masked.get());
  }
  ExplainOptions options = wanted;
  options.parts = masked_parts(wanted.parts, plain, *explanation.mask);
  const auto target = same_target(model, *explanation.masked_scan, plain, masked.get());
  explanation.masked =
      explain(model, *explanation.masked_scan, target, text, options, log, masked.get());
}

void name_vocabulary(PromptEncoder& encoder, Explanation& explanation) {
  if (!explanation.result.vocabulary) return;
  std::vector<const std::vector<VocabularyToken>*> lists;
  const auto add = [&](const std::optional<VocabularyResult>& vocabulary) {
    if (vocabulary) lists.insert(lists.end(), {&vocabulary->small, &vocabulary->largest});
  };
  add(explanation.result.vocabulary);
  if (explanation.masked) add(explanation.masked->vocabulary);
  try {
    const auto& tokenizer = encoder.tokenizer();
    for (const auto* list : lists) {
      for (const auto& token : *list) {
        if (token.id >= tokenizer.vocabulary_size()) continue;
        explanation.pieces[token.id] = tokenizer.piece_bytes(static_cast<TokenId>(token.id));
      }
    }
  } catch (const Error&) {
    explanation.pieces.clear();  // ids say it as well
  }
}

std::vector<std::size_t> parse_part_names(const std::string& option, const std::string& given,
                                          const std::vector<std::string>& known) {
  std::vector<std::size_t> parts;
  for (const auto& part : split(given, ',')) {
    const auto name = std::string(trim(part));
    if (name.empty()) {
      throw usage_error(option + ": an empty name between commas", "parts: " + join(known, ", "));
    }
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const auto near = nearest(name, known, 1);
      throw usage_error(str_cat(option, ": there is no part ", quote(name)),
                        near.empty() ? "parts: " + join(known, ", ") : did_you_mean(near));
    }
    parts.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return parts;
}

}  // namespace onset::app
