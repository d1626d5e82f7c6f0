#include "chat_commands.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/wemask/mask_json.h"
#include "text.h"

namespace onset::app {
namespace {

// "on" and "off" set, nothing turns over.
bool switched(std::string_view argument, bool now, const std::string& command) {
  if (argument.empty()) return !now;
  if (argument == "on") return true;
  if (argument == "off") return false;
  throw usage_error(str_cat(command, " takes on or off, not ", quote(argument, 40)));
}

std::string mask_words(const MaskSpec& spec) {
  return str_cat(spec.k, " of ", spec.model.hidden, " dims by ", name_of(spec.criterion),
                 " in layers ", spec.from_layer, " to ", spec.to_layer);
}

const char* name_of_answer(bool masked) { return masked ? "masked" : "unmasked"; }

void need_mask(ChatState& state) {
  if (!state.session.mask()) state.session.set_mask(state.make_mask());
}

std::string mask_command(std::string_view argument, ChatState& state) {
  const bool on = switched(argument, state.session.mask_on(), "/mask");
  if (on) need_mask(state);
  state.session.turn_mask(on);
  if (state.both) {
    return str_cat("both answers are given as before; the conversation goes on with the ",
                   name_of_answer(on), " one (/both off gives that one alone)");
  }
  return on ? str_cat("the mask is on: ", mask_words(*state.session.mask())) : "the mask is off";
}

std::string both_command(std::string_view argument, ChatState& state) {
  const bool on = switched(argument, state.both, "/both");
  if (on) need_mask(state);
  state.both = on;
  if (!on) return "one answer from now on";
  return str_cat("two answers from now on, without and with the mask (",
                 mask_words(*state.session.mask()), "); the conversation goes on with the ",
                 name_of_answer(state.session.mask_on()), " one, /swap takes the other");
}

std::string swap_command(std::string_view /*argument*/, ChatState& state) {
  const auto masked = state.session.take_other_answer();
  if (!masked) throw usage_error("the last turn has no other answer", "/both gives two");
  return str_cat("the conversation goes on with the ", name_of_answer(*masked),
                 " answer of this turn; of the turns to come it keeps the ",
                 name_of_answer(state.session.mask_on()), " one (/mask ",
                 state.session.mask_on() ? "off" : "on", " changes that)");
}

std::string reset_command(std::string_view /*argument*/, ChatState& state) {
  state.session.reset();
  return "a new conversation";
}

std::string system_command(std::string_view argument, ChatState& state) {
  state.session.set_system(std::string(argument));
  return argument.empty() ? "no system text" : "the system text is set; /reset forgets the rest";
}

std::string save_command(std::string_view argument, ChatState& state) {
  if (argument.empty()) throw usage_error("/save needs a name", "such as /save chat.jsonl");
  const std::filesystem::path path{std::string(argument)};
  if (std::filesystem::exists(path)) {
    throw usage_error(str_cat(quote(argument), " is there already"), "give another name");
  }
  // Beside the messages, which answers were given under which mask; --jsonl reads past it.
  const auto& mask = state.session.mask();
  const auto& masked = state.session.masked_answers();
  const bool any = std::find(masked.begin(), masked.end(), true) != masked.end();
  const OrderedJson row{
      {"messages", state.session.messages()},
      {"onset", {{"masked_answers", masked}, {"wemask", any ? mask_json(*mask) : nullptr}}}};
  try {
    write_file_atomically(path,
                          row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  } catch (const Error& error) {
    // Not an end of the chat, as it is where the answers cannot be written.
    throw usage_error(error.what(), error.hint());
  }
  return str_cat("saved as a row for --jsonl: ", argument);
}

std::string help_command(std::string_view /*argument*/, ChatState& /*state*/) {
  return chat_help();
}

std::string quit_command(std::string_view /*argument*/, ChatState& state) {
  state.ended = true;
  return "";
}

struct Command {
  const char* name;
  const char* argument;
  const char* help;
  std::string (*run)(std::string_view argument, ChatState& state);
};

constexpr std::array commands{
    Command{"/mask", "on|off", "answer under the mask, or not", mask_command},
    Command{"/both", "on|off", "answer twice, without and with the mask", both_command},
    Command{"/swap", "", "go on with the other of the last two answers", swap_command},
    Command{"/system", "TEXT", "the system's text; without one, none", system_command},
    Command{"/reset", "", "forget the conversation, but for the system's text", reset_command},
    Command{"/save", "FILE", "the conversation as a JSON line, as --jsonl reads it", save_command},
    Command{"/help", "", "this list", help_command},
    Command{"/quit", "", "end; so does Ctrl-D", quit_command},
};

}  // namespace

std::string chat_help() {
  std::vector<HelpRow> rows;
  rows.reserve(commands.size());
  for (const auto& command : commands) {
    rows.push_back({command.name, command.argument, command.help, ""});
  }
  return help_rows(rows) +
         "Ctrl-C stops an answer. A line that ends in \\ goes on in the next one.";
}

std::string run_chat_command(std::string_view line, ChatState& state) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const auto name = line.substr(0, end);
  const auto argument = trim(line.substr(end));
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const auto& command : commands) {
    if (name == command.name) return command.run(argument, state);
    names.emplace_back(command.name);
  }
  const auto near = did_you_mean(nearest(name, names, 1));
  throw usage_error(str_cat("there is no command ", quote(name, 40)),
                    near.empty() ? "/help lists them; a space before the / makes it text" : near);
}

}  // namespace onset::app
