// The command line of one verb: every option is declared once, with its flag, the field it fills,
// its value's name and its help; parsing, help and suggestions follow from that. The default is
// what the field holds when it is declared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onset::app {

// One line of the help.
struct HelpRow {
  std::string names;  // "-o, --output"
  std::string value;  // "FILE"; empty for a switch
  std::string help;
  std::string fallback;  // the default, as it would be typed; empty when there is none
};

struct HelpGroup {
  std::string title;
  std::vector<HelpRow> rows;
};

struct Example {
  std::string command;
  std::string explanation;
};

class CommandLine {
 public:
  // `usage`: what follows the verb, "MODEL [options]".
  CommandLine(std::string verb, std::string usage, std::string summary,
              std::vector<std::string> arguments);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Titles the options declared after it.
  void group(std::string title);
  void example(std::string command, std::string explanation);
  // A paragraph at the end of the help.
  void note(std::string text);
  // Another verb's name for what is called `ours` here, for the message that refuses it.
  void other_name(std::string theirs, std::string ours);

  void toggle(bool& field, const std::string& names, std::string help);
  void text(std::string& field, const std::string& names, std::string value, std::string help);
  // A text that must not be empty; `hint` says what it may be.
  void filled_text(std::string& field, const std::string& names, std::string value,
                   std::string help, std::string hint);
  // The name of a file or folder, which must not be empty.
  void path(std::string& field, const std::string& names, std::string value, std::string help);
  // May be given several times; each takes exactly one value.
  void texts(std::vector<std::string>& field, const std::string& names, std::string value,
             std::string help);
  // A finite number that is not negative; the help says what an empty one means.
  void number(double& field, const std::string& names, std::string value, std::string help);
  void number(std::optional<double>& field, const std::string& names, std::string value,
              std::string help);
  // A finite number of either sign.
  void signed_number(double& field, const std::string& names, std::string value, std::string help);
  void integer(std::int64_t& field, const std::string& names, std::string value, std::string help,
               std::int64_t min, std::int64_t max);
  void integer(std::optional<std::int64_t>& field, const std::string& names, std::string value,
               std::string help, std::int64_t min, std::int64_t max);
  // One of the named values. `refuse` may throw a usage error of its own for a wrong one.
  template <typename Enum>
  void choice(Enum& field, const std::string& names,
              const std::vector<std::pair<std::string, Enum>>& values, const std::string& help,
              const std::function<void(const std::string&)>& refuse = {}) {
    std::vector<std::string> known;
    std::string fallback;
    for (const auto& [name, value] : values) {
      known.push_back(name);
      if (value == field) fallback = name;
    }
    add_choice(names, known, help, fallback, refuse,
               [&field, values](std::size_t index) { field = values[index].second; });
  }

  // A switch with its opposite, --NAME and --no-NAME, for a field that something else may have set.
  void on_off(bool& field, const std::string& name, std::string help);
  void on_off(std::optional<bool>& field, const std::string& name, std::string help);

  using Setter = std::function<void(const std::string& value)>;
  // A value that `set` reads, called each time it is given; row.names is left empty.
  void add_value(const std::string& names, HelpRow row, bool repeatable, Setter set);
  // One of the names; `set` gets its index.
  void add_choice(const std::string& names, const std::vector<std::string>& known,
                  const std::string& help, const std::string& fallback,
                  const std::function<void(const std::string&)>& refuse,
                  const std::function<void(std::size_t)>& set);

  // False when the help was asked for: print help() and leave. Throws usage errors.
  [[nodiscard]] bool parse();
  [[nodiscard]] std::string help() const;
  // Arguments that are no options, in their order; valid after parse().
  [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  struct Parser;  // CLI11, whose header few files need
  struct OptionKind {
    std::string name;     // the long one
    std::string example;  // of a value; empty for a switch
    bool repeatable = false;
  };

  void add_switches(const std::string& name, std::string help, const std::string& fallback,
                    const std::function<void(bool)>& set);
  void add_row(HelpRow row);
  // Writes arguments as CLI11 takes them, and refuses what it would refuse in its own words.
  [[nodiscard]] std::vector<std::string> normalised() const;
  [[nodiscard]] std::string nearest_option(const std::string& name) const;
  void take_remaining(const std::vector<std::string>& remaining);

  std::string verb_;
  std::string usage_;
  std::string summary_;
  std::vector<std::string> arguments_;
  std::vector<std::string> positionals_;
  std::vector<HelpGroup> groups_;
  std::vector<Example> examples_;
  std::vector<std::string> notes_;
  std::map<std::string, OptionKind> kinds_;  // by each of an option's names
  std::map<std::string, std::string> other_names_;
  std::unique_ptr<Parser> parser_;
};

// Strict numbers: the whole text, no sign tricks, finite. Usage errors name `option`.
[[nodiscard]] double parse_number(const std::string& option, std::string_view text);
[[nodiscard]] double parse_signed_number(const std::string& option, std::string_view text);
[[nodiscard]] std::int64_t parse_integer(const std::string& option, std::string_view text,
                                         std::int64_t min, std::int64_t max);

// Rows as two columns, wrapped at 80.
[[nodiscard]] std::string help_rows(const std::vector<HelpRow>& rows);

}  // namespace onset::app
