#include "onset/train/run_data.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/train/data_order.h"
#include "onset/train/dpo_data.h"
#include "onset/train/grpo_data.h"
#include "onset/train/report_words.h"
#include "onset/train/sft_data.h"

namespace onset {
namespace {

DataOptions data_options(const TrainSettings& settings, const TextReader& reader) {
  const TrainDataSettings& data = settings.data;
  DataOptions options;
  options.vocabulary = reader.vocabulary;
  options.tokenizer = reader.tokenizer;
  options.chat = reader.chat;
  options.enable_thinking = data.enable_thinking;
  options.text_as_chat = data.text_as_chat;
  options.system = data.system;
  options.columns = data.columns;
  options.limit = data.limit;
  if (data.eos_token.empty()) return options;
  const auto id =
      reader.tokenizer == nullptr ? std::nullopt : reader.tokenizer->find(data.eos_token);
  if (!id) {
    throw usage_error(str_cat("eos_token ", quote(data.eos_token), " is no token of this model"));
  }
  options.eos = *id;
  return options;
}

std::string text_of(std::span<const std::int64_t> ids) {
  std::string text;
  for (const std::int64_t id : ids) text += str_cat(id, " ");
  return text;
}

// What tells whether two examples are of one prompt.
std::string prompt_of(const SftExample& example) {
  const auto first = std::find(example.trained.begin(), example.trained.end(), 1);
  const auto prompt = static_cast<std::size_t>(first - example.trained.begin());
  // A text has no prompt but its first token.
  return text_of(prompt > 1 ? std::span(example.ids).first(prompt) : std::span(example.ids));
}
std::string prompt_of(const PreferencePair& pair) { return text_of(pair.prompt); }
std::string prompt_of(const RolloutPrompt& prompt) { return text_of(prompt.prompt); }

// Moves what is held out behind, into a list of its own.
template <class Example>
std::vector<Example> held_out_of(std::vector<Example>& examples, std::int64_t parts) {
  if (parts == 0) return {};
  const auto middle = std::stable_partition(
      examples.begin(), examples.end(),
      [parts](const Example& example) { return !is_held_out(prompt_of(example), parts); });
  std::vector<Example> held_out(std::make_move_iterator(middle),
                                std::make_move_iterator(examples.end()));
  examples.erase(middle, examples.end());
  return held_out;
}

// Reads the files of one kind: `read` gives the examples and adds its note.
template <class Example>
std::pair<std::vector<Example>, std::vector<Example>> both_parts(
    const TrainSettings& settings,
    const std::function<std::vector<Example>(const std::string& file)>& read,
    std::vector<std::string>& notes) {
  std::vector<Example> examples = read(settings.data.train_file);
  const std::int64_t parts = settings.data.hold_out;
  std::vector<Example> held_out = settings.data.eval_file.empty() ? held_out_of(examples, parts)
                                                                  : read(settings.data.eval_file);
  if (examples.empty()) {
    throw input_error(str_cat(settings.data.train_file, ": hold_out ", parts, " keeps all of its ",
                              counted(std::ssize(held_out), "example", "examples"),
                              " for evaluation, and none is left to train on"),
                      "examples of one prompt stay together: make hold_out larger, or give a file "
                      "of its own to evaluate on (eval_file)");
  }
  if (parts > 0) {
    if (held_out.empty()) {
      throw input_error(
          str_cat(settings.data.train_file, ": of ",
                  counted(std::ssize(examples), "example", "examples"),
                  " none is held out by hold_out ", parts),
          "one prompt in hold_out is kept for evaluation, by a hash: make it smaller (2 or above), "
          "or give a file of its own to evaluate on (eval_file)");
    }
    notes.push_back(str_cat(counted(std::ssize(held_out), "example", "examples"),
                            " held out for evaluation, by a hash of the prompt; ",
                            grouped(std::ssize(examples)), " to train on."));
  }
  return {std::move(examples), std::move(held_out)};
}

std::int64_t tokens_of(const PackedRow& row) {
  std::int64_t tokens = 0;
  for (const SftExample& document : row) tokens += static_cast<std::int64_t>(document.ids.size());
  return tokens;
}

std::vector<PackedRow> packed_rows(std::vector<SftExample> examples, std::int64_t length,
                                   PackingStrategy strategy, std::vector<std::string>& notes) {
  Packed packed = pack(std::move(examples), length, strategy);
  notes.push_back(
      str_cat("Packed into ", counted(std::ssize(packed.rows), "row", "rows"), " of up to ", length,
              " tokens, ", percent(packed.tokens, std::ssize(packed.rows) * length), " % filled; ",
              counted(packed.tokens_cut, "token", "tokens"), " cut, ",
              counted(packed.pieces, "document", "documents"), " continued from another row."));
  return std::move(packed.rows);
}

void read_texts(const TrainSettings& settings, const DataOptions& options, RunData& data) {
  const bool pretrains = settings.method == TrainMethod::pretrain;
  const bool packs = pretrains || settings.sft.packing;
  const std::int64_t length = pretrains ? settings.pretrain.block_size : settings.sft.max_length;
  const PackingStrategy strategy =
      pretrains ? PackingStrategy::wrapped : settings.sft.packing_strategy;
  // What packing splits must not be cut before.
  const bool splits = packs && strategy != PackingStrategy::bfd;
  const auto read = [&](const std::string& file) {
    SftData found =
        read_sft_data(file, {.data = options,
                             .max_length = splits ? 0 : length,
                             .truncation = settings.sft.truncation_mode,
                             .assistant_only_loss = settings.sft.assistant_only_loss,
                             .completion_only_loss = settings.sft.completion_only_loss});
    data.notes.push_back(found.report.text());
    return std::move(found.examples);
  };
  auto [examples, held_out] = both_parts<SftExample>(settings, read, data.notes);
  if (packs) {
    data.rows = packed_rows(std::move(examples), length, strategy, data.notes);
    if (!held_out.empty()) {
      data.held_out_rows = packed_rows(std::move(held_out), length, strategy, data.notes);
    }
  } else {
    data.rows = rows_of(std::move(examples));
    data.held_out_rows = rows_of(std::move(held_out));
  }
  for (const PackedRow& row : data.rows) data.longest = std::max(data.longest, tokens_of(row));
}

void read_pairs(const TrainSettings& settings, const DataOptions& options, RunData& data) {
  const auto read = [&](const std::string& file) {
    DpoData found = read_dpo_data(file, {.data = options,
                                         .max_length = settings.dpo.max_length,
                                         .truncation = settings.dpo.truncation_mode});
    data.notes.push_back(found.report.text());
    return std::move(found.pairs);
  };
  std::tie(data.pairs, data.held_out_pairs) =
      both_parts<PreferencePair>(settings, read, data.notes);
  for (const PreferencePair& pair : data.pairs) {
    const std::size_t longer = std::max(pair.chosen.size(), pair.rejected.size());
    data.longest = std::max(data.longest, static_cast<std::int64_t>(pair.prompt.size() + longer));
  }
}

void read_prompts(const TrainSettings& settings, const DataOptions& options, RunData& data) {
  const auto read = [&](const std::string& file) {
    GrpoData found = read_grpo_data(file, {.data = options,
                                           .max_prompt_length = settings.grpo.max_prompt_length,
                                           .num_generations = settings.grpo.num_generations});
    data.notes.push_back(found.report.text());
    return std::move(found.prompts);
  };
  std::tie(data.prompts, data.held_out_prompts) =
      both_parts<RolloutPrompt>(settings, read, data.notes);
  for (const RolloutPrompt& prompt : data.prompts) {
    data.longest = std::max(data.longest, static_cast<std::int64_t>(prompt.prompt.size()));
  }
}

}  // namespace

RunData read_run_data(const TrainSettings& settings, const TextReader& reader) {
  const DataOptions options = data_options(settings, reader);
  RunData data;
  switch (settings.method) {
    case TrainMethod::sft:
    case TrainMethod::pretrain:
      read_texts(settings, options, data);
      break;
    case TrainMethod::dpo:
      read_pairs(settings, options, data);
      break;
    case TrainMethod::grpo:
      read_prompts(settings, options, data);
      break;
  }
  return data;
}

namespace {

void add_to(ContentHash& hash, const std::vector<PackedRow>& rows) {
  hash.add(static_cast<std::int64_t>(rows.size()));
  for (const PackedRow& row : rows) {
    hash.add(static_cast<std::int64_t>(row.size()));
    for (const SftExample& example : row) {
      hash.add(std::span<const std::int64_t>(example.ids));
      hash.add(std::as_bytes(std::span(example.trained)));
    }
  }
}

void add_to(ContentHash& hash, const std::vector<PreferencePair>& pairs) {
  hash.add(static_cast<std::int64_t>(pairs.size()));
  for (const PreferencePair& pair : pairs) {
    for (const TokenIds* ids : {&pair.prompt, &pair.chosen, &pair.rejected}) {
      hash.add(std::span<const std::int64_t>(*ids));
    }
  }
}

void add_to(ContentHash& hash, const std::vector<RolloutPrompt>& prompts) {
  hash.add(static_cast<std::int64_t>(prompts.size()));
  for (const RolloutPrompt& prompt : prompts) {
    hash.add(std::span<const std::int64_t>(prompt.prompt)).add(prompt.record.dump());
    for (const TokenIds& ids : prompt.completions) hash.add(std::span<const std::int64_t>(ids));
    for (const double reward : prompt.rewards) hash.add(reward);
  }
}

}  // namespace

std::string content_of(const RunData& data) {
  ContentHash hash;
  add_to(hash, data.rows);
  add_to(hash, data.held_out_rows);
  add_to(hash, data.pairs);
  add_to(hash, data.held_out_pairs);
  add_to(hash, data.prompts);
  add_to(hash, data.held_out_prompts);
  return hash.hex();
}

}  // namespace onset
