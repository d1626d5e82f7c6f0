#include "cli.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <system_error>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

// "-o,--output" gives "--output": the name that messages use.
std::string long_name(const std::string& names) {
  const auto comma = names.rfind(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

std::string shown_names(std::string names) {
  const auto comma = names.find(',');
  if (comma != std::string::npos) names.insert(comma + 1, " ");
  return names;
}

// "-o,--output" gives both.
std::vector<std::string> all_names(const std::string& names) { return split(names, ','); }

}  // namespace

struct CommandLine::Parser {
  CLI::App app;
};

CommandLine::CommandLine(std::string verb, std::string usage, std::string summary,
                         std::vector<std::string> arguments)
    : verb_(std::move(verb)),
      usage_(std::move(usage)),
      summary_(std::move(summary)),
      arguments_(std::move(arguments)),
      parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag("-h,--help");
  // What is left over is judged in take_remaining(), which can name the nearest option.
  parser_->app.allow_extras();
}

CommandLine::~CommandLine() = default;

void CommandLine::group(std::string title) { groups_.push_back({std::move(title), {}}); }

void CommandLine::example(std::string command, std::string explanation) {
  examples_.push_back({std::move(command), std::move(explanation)});
}

void CommandLine::note(std::string text) { notes_.push_back(std::move(text)); }

void CommandLine::other_name(std::string theirs, std::string ours) {
  other_names_.emplace(std::move(theirs), std::move(ours));
}

void CommandLine::add_row(HelpRow row) {
  if (groups_.empty()) group("Options");
  groups_.back().rows.push_back(std::move(row));
}

void CommandLine::toggle(bool& field, const std::string& names, std::string help) {
  parser_->app.add_flag_callback(names, [&field] { field = true; });
  for (const auto& name : all_names(names)) kinds_[name] = {long_name(names), "", true};
  add_row({shown_names(names), "", std::move(help), ""});
}

void CommandLine::add_switches(const std::string& name, std::string help,
                               const std::string& fallback, const std::function<void(bool)>& set) {
  const std::string opposite = "--no-" + name.substr(2);
  parser_->app.add_flag_callback(name, [set] { set(true); });
  parser_->app.add_flag_callback(opposite, [set] { set(false); });
  for (const auto& each : {name, opposite}) kinds_[each] = {each, "", true};
  add_row({"--[no-]" + name.substr(2), "", std::move(help), fallback});
}

void CommandLine::on_off(bool& field, const std::string& name, std::string help) {
  add_switches(name, std::move(help), field ? "on" : "off",
               [&field](bool value) { field = value; });
}

void CommandLine::on_off(std::optional<bool>& field, const std::string& name, std::string help) {
  add_switches(name, std::move(help), "", [&field](bool value) { field = value; });
}

void CommandLine::add_value(const std::string& names, HelpRow row, bool repeatable, Setter set) {
  const auto take = [set = std::move(set)](const CLI::results_t& results) {
    for (const auto& result : results) set(result);
    return true;
  };
  CLI::Option* option = parser_->app.add_option(names, take);
  if (repeatable) option->take_all();
  for (const auto& name : all_names(names)) {
    kinds_[name] = {long_name(names), row.value, repeatable};
  }
  row.names = shown_names(names);
  add_row(std::move(row));
}

void CommandLine::text(std::string& field, const std::string& names, std::string value,
                       std::string help) {
  add_value(names, {"", std::move(value), std::move(help), field}, false,
            [&field](const std::string& given) { field = given; });
}

void CommandLine::filled_text(std::string& field, const std::string& names, std::string value,
                              std::string help, std::string hint) {
  add_value(names, {"", std::move(value), std::move(help), field}, false,
            [&field, name = long_name(names), hint = std::move(hint)](const std::string& given) {
              if (trim(given).empty()) throw usage_error(name + ": the value is empty", hint);
              field = given;
            });
}

void CommandLine::path(std::string& field, const std::string& names, std::string value,
                       std::string help) {
  add_value(names, {"", std::move(value), std::move(help), field}, false,
            [&field, name = long_name(names)](const std::string& given) {
              if (given.empty()) throw usage_error(name + ": the name is empty");
              field = given;
            });
}

void CommandLine::texts(std::vector<std::string>& field, const std::string& names,
                        std::string value, std::string help) {
  add_value(names, {"", std::move(value), std::move(help), ""}, true,
            [&field](const std::string& given) { field.push_back(given); });
}

void CommandLine::number(double& field, const std::string& names, std::string value,
                         std::string help) {
  add_value(names, {"", std::move(value), std::move(help), shortest(field)}, false,
            [&field, name = long_name(names)](const std::string& given) {
              field = parse_number(name, given);
            });
}

void CommandLine::number(std::optional<double>& field, const std::string& names, std::string value,
                         std::string help) {
  add_value(names, {"", std::move(value), std::move(help), ""}, false,
            [&field, name = long_name(names)](const std::string& given) {
              field = parse_number(name, given);
            });
}

void CommandLine::signed_number(double& field, const std::string& names, std::string value,
                                std::string help) {
  add_value(names, {"", std::move(value), std::move(help), shortest(field)}, false,
            [&field, name = long_name(names)](const std::string& given) {
              field = parse_signed_number(name, given);
            });
}

void CommandLine::integer(std::optional<std::int64_t>& field, const std::string& names,
                          std::string value, std::string help, std::int64_t min, std::int64_t max) {
  add_value(names, {"", std::move(value), std::move(help), ""}, false,
            [&field, name = long_name(names), min, max](const std::string& given) {
              field = parse_integer(name, given, min, max);
            });
}

void CommandLine::integer(std::int64_t& field, const std::string& names, std::string value,
                          std::string help, std::int64_t min, std::int64_t max) {
  add_value(names, {"", std::move(value), std::move(help), str_cat(field)}, false,
            [&field, name = long_name(names), min, max](const std::string& given) {
              field = parse_integer(name, given, min, max);
            });
}

void CommandLine::add_choice(const std::string& names, const std::vector<std::string>& known,
                             const std::string& help, const std::string& fallback,
                             const std::function<void(const std::string&)>& refuse,
                             const std::function<void(std::size_t)>& set) {
  add_value(names, {"", join(known, "|"), help, fallback}, false,
            [known, refuse, set, name = long_name(names)](const std::string& given) {
              const auto found = std::find(known.begin(), known.end(), given);
              if (found == known.end()) {
                if (refuse) refuse(given);
                throw usage_error(
                    str_cat(name, ": ", quote(given), " is not one of ", join(known, ", ")),
                    did_you_mean(nearest(given, known, 1)));
              }
              set(static_cast<std::size_t>(found - known.begin()));
            });
}

std::vector<std::string> CommandLine::normalised() const {
  std::vector<std::string> result;
  std::set<std::string> given;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const auto& argument = arguments_[i];
    if (argument == "--") {
      result.insert(result.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments_.end());
      break;
    }
    const auto equals = std::min(argument.find('='), argument.size());
    const auto found = kinds_.find(argument.substr(0, equals));
    const bool option = argument.starts_with('-') && found != kinds_.end();
    if (!option) {
      result.push_back(argument);
      continue;
    }
    const auto& kind = found->second;
    const bool with_value = equals < argument.size();
    if (kind.example.empty()) {
      if (with_value) throw usage_error(kind.name + " takes no value", "leave out what follows it");
      result.push_back(argument);
      continue;
    }
    if (!kind.repeatable && !given.insert(kind.name).second) {
      throw usage_error(kind.name + " is given twice", "give it once");
    }
    if (!with_value && i + 1 == arguments_.size()) {
      throw usage_error(kind.name + " needs a value",
                        str_cat("give ", kind.name, " ", kind.example));
    }
    // CLI11 knows "--name=value" only, and takes the next argument where the value is empty.
    result.push_back(found->first);
    result.push_back(with_value ? argument.substr(equals + 1) : arguments_[++i]);
  }
  return result;
}

bool CommandLine::parse() {
  auto reversed = normalised();
  std::reverse(reversed.begin(), reversed.end());  // the order CLI11 wants
  const std::string see_help = str_cat("see: onset ", verb_, " --help");
  try {
    parser_->app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    throw usage_error(error.what(), see_help);
  }
  take_remaining(parser_->app.remaining());
  return true;
}

std::string CommandLine::nearest_option(const std::string& name) const {
  if (const auto other = other_names_.find(name); other != other_names_.end()) {
    return other->second;
  }
  std::vector<std::string> known{"--help"};
  for (const auto& [alias, kind] : kinds_) {
    if (alias == kind.name) known.push_back(alias);
  }
  const auto near = nearest(name, known, 1);
  return near.empty() ? "" : near.front();
}

void CommandLine::take_remaining(const std::vector<std::string>& remaining) {
  bool positional_only = false;
  for (const auto& argument : remaining) {
    if (!positional_only && argument == "--") {
      positional_only = true;
    } else if (!positional_only && argument.size() > 1 && argument.front() == '-') {
      const auto name = argument.substr(0, argument.find('='));
      const auto near = nearest_option(name);
      throw usage_error(str_cat("unknown option ", quote(name), " of onset ", verb_),
                        near.empty() ? str_cat("see: onset ", verb_, " --help")
                                     : str_cat("did you mean ", near, "?"));
    } else {
      positionals_.push_back(argument);
    }
  }
}

std::string help_rows(const std::vector<HelpRow>& rows) {
  constexpr std::size_t column = 24;
  std::string result;
  for (const auto& row : rows) {
    std::string left = "  " + row.names + (row.value.empty() ? "" : " " + row.value);
    std::string help = row.help;
    if (!row.fallback.empty()) help += " [" + row.fallback + "]";
    const std::string wrapped = wrap(help, 80, column);
    if (left.size() + 2 > column) {
      result += left + "\n" + std::string(column, ' ');
    } else {
      result += pad_right(left, column);
    }
    result += wrapped + "\n";
  }
  return result;
}

std::string CommandLine::help() const {
  std::string result =
      str_cat("usage: onset ", verb_, " ", usage_, "\n\n", wrap(summary_, 80, 0), "\n");
  for (const auto& group : groups_) {
    if (group.rows.empty()) continue;
    result += str_cat("\n", group.title, ":\n", help_rows(group.rows));
  }
  if (!examples_.empty()) result += "\nExamples:\n";
  for (const auto& example : examples_) {
    result += str_cat("  ", example.command, "\n      ", wrap(example.explanation, 80, 6), "\n");
  }
  for (const auto& note : notes_) result += "\n" + wrap(note, 80, 0) + "\n";
  return result;
}

double parse_signed_number(const std::string& option, std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string given = quote(text, 40);
  if (error == std::errc::result_out_of_range) {
    throw usage_error(str_cat(option, ": ", given, " is out of the range of a number"));
  }
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    throw usage_error(str_cat(option, ": ", given, " is not a number"));
  }
  return value;
}

double parse_number(const std::string& option, std::string_view text) {
  const double value = parse_signed_number(option, text);
  if (std::signbit(value)) {
    throw usage_error(str_cat(option, ": ", quote(text, 40), " is negative"));
  }
  return value;
}

std::int64_t parse_integer(const std::string& option, std::string_view text, std::int64_t min,
                           std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string given = quote(text, 40);
  if (error == std::errc::invalid_argument || stop != end) {
    throw usage_error(str_cat(option, ": ", given, " is not a whole number"));
  }
  if (error != std::errc() || value < min || value > max) {
    if (max == std::numeric_limits<std::int64_t>::max()) {
      throw usage_error(
          str_cat(option, ": ", given, " has to be a whole number of ", min, " or more"));
    }
    throw usage_error(str_cat(option, ": ", given, " is not in ", min, " to ", max));
  }
  return value;
}

}  // namespace onset::app
