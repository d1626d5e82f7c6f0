// onset tokenize: texts to token ids and pieces, ids to text, chats to text and ids, as JSON lines.

#include <unistd.h>

#include <charconv>
#include <iterator>
#include <utility>

#include "inputs.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "output.h"
#include "prompts.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct TokenizeOptions {
  std::vector<std::string> texts;
  bool lines = false;
  std::vector<std::string> jsonl;
  bool chat = false;
  std::string chat_format;
  bool special = false;
  bool literal = false;
  bool decode = false;
  std::vector<std::string> ids;
  bool skip_special = false;
  OutputOptions output;

  void declare(CommandLine& line);
};

void TokenizeOptions::declare(CommandLine& line) {
  line.group("Texts (standard input where none of these is given)");
  line.texts(texts, "--text", "TEXT", "a text; may be given several times");
  line.texts(jsonl, "--jsonl", "FILE",
             "one text a line: an object with \"messages\" (and \"add_generation_prompt\", "
             "\"options\") or \"text\"; with --decode, with \"ids\"");
  line.toggle(lines, "--lines",
              "every line of standard input is a text of its own, without its line break; "
              "otherwise all of it, byte for byte, is one text");
  line.other_name("--prompt", "--text");
  line.group("Encoding");
  line.toggle(special, "--special",
              "add what the tokenizer's configuration adds around a text, such as BOS");
  line.toggle(literal, "--literal",
              "take strings such as <|im_end|> as ordinary text, not as special tokens; of a chat, "
              "where its messages hold them, as the other verbs do");
  line.toggle(chat, "--chat",
              "take each text as a user's message and write it in the model's chat format");
  line.text(chat_format, "--chat-format", "NAME",
            "chat format in place of the model's own: " + chat_format_names());
  line.group("Decoding");
  line.toggle(decode, "--decode",
              "ids to text: from the arguments after MODEL, --ids, --jsonl, or the lines of "
              "standard input (\"1 5 9\", \"1,5,9\", \"[1,5,9]\" or this verb's own output)");
  line.texts(ids, "--ids", "1,5,9", "ids to decode; may be given several times");
  line.toggle(skip_special, "--skip-special", "leave special tokens out of the text");
  line.group("Output");
  line.path(output.output, "-o,--output", "FILE",
            "write the lines to FILE, which appears when it is complete; - is standard output");
  line.toggle(output.json, "--json", "accepted for uniformity; the output is always JSON lines");
  line.toggle(output.quiet, "--quiet", "no messages but errors");
  line.example("onset tokenize MODEL --text \"Dark Blue.\"", "ids and pieces of one text");
  line.example("onset tokenize MODEL --special --lines < corpus.txt",
               "a line of JSON for every line, with the BOS where the model has one");
  line.example("onset tokenize MODEL --decode 5965 4932", "the text of two ids");
  line.example("onset tokenize MODEL --chat --text Hello", "a user's turn as the model sees it");
  line.note(
      "MODEL is a model folder, a folder with a tokenizer alone, a tokenizer.json or a .gguf "
      "file. Every output line is an object with \"ids\", \"pieces\" and \"text\". By default "
      "special strings in a text are recognised and nothing is added.");
}

void append_line(std::string& out, const std::vector<TokenId>& ids, const Tokenizer& tokenizer,
                 std::string_view text) {
  const auto string_json = [](std::string_view value) {
    return OrderedJson(value).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  out = R"({"ids":[)";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    char digits[16];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), ids[i]).ptr;
    if (i > 0) out += ',';
    out.append(digits, end);
  }
  out += R"(],"pieces":[)";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += string_json(tokenizer.piece(ids[i]));
  }
  out.append(R"(],"text":)").append(string_json(text)).append("}\n");
}

constexpr const char* no_tokenizer_hint =
    "name a folder or file with a tokenizer; scan and capture take token ids without one: --ids "
    "1,5,9";

class Job {
 public:
  Job(const std::string& model, const TokenizeOptions& options)
      : options_(options),
        tokenizer_(open_tokenizer(model, no_tokenizer_hint)),
        writer_(options.output.output),
        chats_(options.chat_format) {}

  void encode(std::string_view text) {
    if (options_.chat) {
      encode_chat({user_message(text), {}});
      return;
    }
    write(tokenizer_.encode(text,
                            {.parse_special = !options_.literal, .add_special = options_.special}),
          text);
  }

  // The template writes the BOS itself where the family has one: it is not put there twice.
  void encode_chat(const ChatMessages& chat) {
    Console console(true);
    const auto written = chats_.write(tokenizer_, chat.messages, chat.options, console.log());
    auto ids = chats_.encode(tokenizer_, written, !options_.literal);
    const auto& special = tokenizer_.special();
    const bool begun = !ids.empty() && special.bos == ids.front();
    if (options_.special && special.add_bos && special.bos && !begun) {
      ids.insert(ids.begin(), *special.bos);
    }
    write(ids, written.text);
  }

  void decode(const std::vector<TokenId>& ids) {
    write(ids, tokenizer_.decode(ids, {.skip_special = options_.skip_special}));
  }

  void row(const PromptSource& source) {
    try {
      if (const auto* text = std::get_if<std::string>(&source.content)) encode(*text);
      if (const auto* ids = std::get_if<std::vector<TokenId>>(&source.content)) {
        if (!options_.decode) {
          throw input_error("has \"ids\" and no text", "use --decode to turn ids into text");
        }
        decode(*ids);
      }
      if (const auto* chat = std::get_if<ChatMessages>(&source.content)) encode_chat(*chat);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::resource) throw;
      throw Error(error.kind(), str_cat(source.where, ": ", error.what()), error.hint());
    }
  }

  void finish() { writer_.finish(); }

 private:
  void write(const std::vector<TokenId>& ids, std::string_view text) {
    append_line(line_, ids, tokenizer_, text);
    writer_.write(line_);
  }

  const TokenizeOptions& options_;
  Tokenizer tokenizer_;
  ResultWriter writer_;
  ChatWriter chats_;
  std::string line_;
};

// A line of standard input in decode mode: a list of ids, or a row with "ids".
PromptSource decode_line(const std::string& line, std::size_t number) {
  const std::string where = str_cat("standard input:", number);
  try {
    if (const auto begin = line.find_first_not_of(" \t");
        begin != std::string::npos && line[begin] == '{') {
      return parse_row(line, where, RowFields::ids_only);
    }
    return {where, parse_ids(where, line)};
  } catch (const Error& error) {
    throw input_error(error.what(), error.hint());  // wrong data, not a wrong call
  }
}

void take_standard_input(Job& job, const TokenizeOptions& options) {
  if (!options.output.quiet && ::isatty(STDIN_FILENO) == 1) {
    write_error_text("onset: reading standard input; end it with Ctrl-D\n");
  }
  StandardInput input;
  std::size_t number = 0;
  if (options.lines || options.decode) {
    for (std::string line; input.next_line(line);) {
      ++number;
      if (options.decode) {
        job.row(decode_line(line, number));
      } else {
        job.row({str_cat("standard input:", number), std::move(line)});
      }
    }
  } else {
    job.row({"standard input", input.rest()});
  }
}

void check(const TokenizeOptions& options, const CommandLine& line) {
  const auto& given = line.positionals();
  if (given.empty()) {
    throw usage_error("onset tokenize needs a model, a folder with a tokenizer, or a file",
                      "see: onset tokenize --help");
  }
  refuse_empty_path(given.front());
  refuse_idle_chat_options(options.chat_format, false, options.chat, options.jsonl);
  if (given.size() > 1 && !options.decode) {
    throw usage_error(str_cat("unexpected argument ", quote(given[1])),
                      "a text is given with --text; ids after MODEL need --decode");
  }
  if (options.decode && !options.texts.empty()) {
    throw usage_error("--decode takes ids and no --text", "leave one of them out");
  }
  if (!options.decode && !options.ids.empty()) {
    throw usage_error("--ids needs --decode", "a text is given with --text");
  }
  if (options.decode && options.lines) {
    throw usage_error("--lines does nothing with --decode", "every line is a list of ids already");
  }
}

}  // namespace

int run_tokenize(const Invocation& invocation) {
  TokenizeOptions options;
  CommandLine line("tokenize", "MODEL [options]",
                   "Turns texts into token ids and pieces, ids into text, and chats into text and "
                   "ids. Needs a tokenizer only, no weights.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  check(options, line);
  const auto& given = line.positionals();

  std::vector<PromptSource> id_lists;
  std::string after_model;
  for (std::size_t i = 1; i < given.size(); ++i) after_model += given[i] + " ";
  if (given.size() > 1)
    id_lists.push_back({"arguments", parse_ids("ids after MODEL", after_model)});
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    const auto where = numbered_option("--ids", i, options.ids.size());
    id_lists.push_back({where, parse_ids(where, options.ids[i])});
  }
  const bool from_standard_input =
      options.texts.empty() && id_lists.empty() && options.jsonl.empty();
  refuse_overwriting(
      "-o", options.output.output,
      {.models = {given.front()}, .files = options.jsonl, .standard_input = from_standard_input});

  Job job(given.front(), options);
  for (std::size_t i = 0; i < options.texts.size(); ++i) {
    job.row({numbered_option("--text", i, options.texts.size()), options.texts[i]});
  }
  for (const auto& list : id_lists) job.row(list);
  const auto fields = options.decode ? RowFields::ids_only : RowFields::text_first;
  for (const auto& path : options.jsonl) {
    for_each_row(path, fields, [&job](const PromptSource& source) { job.row(source); });
  }
  if (from_standard_input) take_standard_input(job, options);
  job.finish();
  return 0;
}

}  // namespace onset::app
