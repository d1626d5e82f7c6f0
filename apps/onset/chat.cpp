// onset chat: a conversation in the terminal, with or without WeMask, or both at once.

#include <chrono>
#include <optional>
#include <utility>

#include "chat_commands.h"
#include "chat_session.h"
#include "chat_terminal.h"
#include "chats.h"
#include "default_mask.h"
#include "mask_option.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask.h"
#include "options.h"
#include "prompts.h"
#include "sampling_option.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct ChatVerbOptions {
  std::string system;
  std::string chat_format;
  bool both = false;
  std::int64_t context = 0;
  bool quiet = false;
  SamplingVerbOptions sampling;
  MaskFileOptions mask;
  ComputeOptions compute;

  void declare(CommandLine& line);
};

void ChatVerbOptions::declare(CommandLine& line) {
  sampling.max_tokens = 512;
  line.group("Conversation");
  line.text(system, "--system", "TEXT", "the system's text at the beginning");
  line.text(chat_format, "--chat-format", "NAME",
            "chat format to use in place of the model's own: " + chat_format_names());
  line.toggle(both, "--both", "begin with two answers a turn, without and with the mask (/both)");
  line.integer(context, "--context", "N",
               "the longest conversation in tokens; 0: what the model was trained for", 0,
               INT32_MAX);
  sampling.declare(line);
  mask.declare(line);
  compute.residency = Residency::resident;
  compute.declare(line, "what the random draws go by; the same seed, the same answers");
  line.group("Output");
  line.toggle(quiet, "--quiet", "no greeting and no counts");
  line.example("onset chat MODEL", "a conversation; /help lists what can be said beside it");
  line.example("onset chat MODEL --wemask wemask.json --both", "every answer twice");
  line.example("printf 'Hello\\nWhat is 2 + 2?\\n' | onset chat MODEL", "from a pipe");
  line.note(
      "Answers go to standard output, everything else to standard error. What is said is text: a "
      "special token in it is spelled, not obeyed. Without --wemask, /mask on and /both take the "
      "default mask, which a scan finds. docs/chat.md says more.");
}

// An error that ends a turn and not the chat.
void tell(ChatTerminal& terminal, const Error& error) {
  terminal.remark(message_text(error.what()));
  if (!error.hint().empty()) terminal.remark(message_text(error.hint()));
}

void answer(const std::string& said, ChatState& state, ChatTerminal& terminal) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  terminal.begin(state.both);
  const auto answers = state.session.answer(
      said, state.both,
      [&](std::size_t number, std::string_view text) { terminal.show(number, text); },
      [&] { return terminal.stopped(); });
  terminal.end(answers, std::chrono::duration<double>(Clock::now() - begun).count());
}

void converse(ChatState& state, ChatTerminal& terminal) {
  std::string said;
  while (!state.ended && terminal.read(said)) {
    try {
      if (said.starts_with('/')) {
        terminal.remark(run_chat_command(said, state));
      } else if (!trim(said).empty()) {
        answer(said.starts_with(" /") ? said.substr(1) : said, state, terminal);
      }
    } catch (const Error& error) {
      // A reader that left, a full disk: nothing can be said any more.
      if (error.kind() == ErrorKind::resource) throw;
      tell(terminal, error);
    }
  }
}

}  // namespace

int run_chat(const Invocation& invocation) {
  ChatVerbOptions options;
  CommandLine line("chat", "MODEL [options]",
                   "A conversation with a model, with or without WeMask, or with both answers "
                   "beside each other.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "chat");
  options.sampling.check();
  options.mask.check();
  Console console(options.quiet);
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const auto tokenizer = open_tokenizer(path, "a chat needs the model's tokenizer");
  const auto chosen = choose_chat_format(options.chat_format, tokenizer, console.log());
  const auto format = chosen ? *chosen : chat_format_of(tokenizer);
  const auto model = open_model(path, options.compute, console.log());
  auto mask = mask_for(options.mask, model, console.log(), options.compute.adapter);
  Generator generator(model, &tokenizer, {.context = options.context});
  ChatSession session(tokenizer, format, generator,
                      {.sampling = options.sampling,
                       .seed = options.compute.seed,
                       .context = options.context > 0 ? options.context : model.config().context});
  ChatTerminal terminal(options.quiet);
  ChatState state{.session = session, .make_mask = [&] {
                    const auto found = find_massive(path, model, console.log());
                    console.erase();
                    MaskOptions wanted;
                    wanted.me_layer = found.me_layer;
                    wanted.massive_dims = found.massive_dims;
                    return std::make_shared<const MaskSpec>(make_mask(model, wanted));
                  }};
  if (mask) {
    session.set_mask(std::make_shared<const MaskSpec>(std::move(*mask)));
    session.turn_mask(true);
  }
  if (!options.system.empty()) session.set_system(options.system);
  console.erase();
  if (!options.quiet) {
    terminal.remark(str_cat(format.name, " chat, ", sampling_words(options.sampling.sampling),
                            mask ? ", the mask is on" : "", "; /help lists the commands"));
  }
  if (options.both) terminal.remark(run_chat_command("/both on", state));
  converse(state, terminal);
  return 0;
}

}  // namespace onset::app
