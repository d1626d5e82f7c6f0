#include "train_options.h"

#include <algorithm>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "cli.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/train/settings_table.h"
#include "onset/train/settings_toml.h"
#include "options.h"
#include "output.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::int64_t largest = INT64_MAX;

// A list or a map that the command line gives takes the place of the one that stands there.
template <typename Field>
CommandLine::Setter replacing(Field& field, std::function<void(Field&, const std::string&)> add) {
  return [&field, add = std::move(add),
          begun = std::make_shared<bool>(false)](const std::string& given) {
    if (!std::exchange(*begun, true)) field.clear();
    add(field, given);
  };
}

// The entries of one value: "a,b" where the setting says so.
std::vector<std::string> entries_of(const Setting& setting, const std::string& given) {
  return setting.separates ? split(given, ',') : std::vector<std::string>{given};
}

std::pair<std::string, std::string> name_and_value(const std::string& flag,
                                                   const std::string& value,
                                                   const std::string& given) {
  const std::size_t equals = given.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == given.size()) {
    throw usage_error(str_cat(flag, ": ", quote(given), " is no ", value));
  }
  return {given.substr(0, equals), given.substr(equals + 1)};
}

double parse_finite(const std::string& flag, const std::string& given) {
  return parse_signed_number(flag, given);
}

// Declares one setting; what is wrong with its value beside its type is checked with the others.
class Declare {
 public:
  Declare(CommandLine& line, const Setting& setting)
      : line_(line), setting_(setting), flag_(flag_of(setting)) {
    names_ = setting.name == "output_dir" ? "-o," + flag_ : flag_;
  }

  void operator()(bool* field) const { line_.on_off(*field, flag_, setting_.help); }
  void operator()(std::optional<bool>* field) const { line_.on_off(*field, flag_, setting_.help); }
  void operator()(std::int64_t* field) const {
    line_.integer(*field, names_, setting_.value, setting_.help, least(), largest);
  }
  void operator()(std::optional<std::int64_t>* field) const {
    line_.integer(*field, names_, setting_.value, setting_.help, least(), largest);
  }
  void operator()(double* field) const {
    line_.number(*field, names_, setting_.value, setting_.help);
  }
  void operator()(std::optional<double>* field) const {
    line_.number(*field, names_, setting_.value, setting_.help);
  }
  void operator()(std::string* field) const {
    if (setting_.is_path) {
      line_.path(*field, names_, setting_.value, setting_.help);
    } else {
      line_.text(*field, names_, setting_.value, setting_.help);
    }
  }
  void operator()(std::vector<std::string>* field) const {
    list<std::vector<std::string>>(
        *field, join(*field, ","),
        [setting = setting_](std::vector<std::string>& texts, const std::string& given) {
          for (const std::string& entry : entries_of(setting, given)) texts.push_back(entry);
        });
  }
  void operator()(std::vector<double>* field) const {
    list<std::vector<double>>(
        *field, "",
        [setting = setting_, flag = flag_](std::vector<double>& numbers, const std::string& given) {
          for (const std::string& entry : entries_of(setting, given)) {
            numbers.push_back(parse_finite(flag, entry));
          }
        });
  }
  void operator()(std::map<std::string, std::string>* field) const {
    map(*field, [](const std::string& value) { return value; });
  }
  void operator()(std::map<std::string, std::int64_t>* field) const {
    map(*field, [flag = flag_, min = least()](const std::string& value) {
      return parse_integer(flag, value, min, largest);
    });
  }
  void operator()(std::map<std::string, double>* field) const {
    map(*field, [flag = flag_](const std::string& value) { return parse_finite(flag, value); });
  }
  void operator()(const ChoiceSlot& slot) const {
    line_.add_choice(flag_, slot.names, setting_.help, slot.names.at(slot.get()), {}, slot.set);
  }

 private:
  [[nodiscard]] std::int64_t least() const { return static_cast<std::int64_t>(setting_.range.min); }

  template <typename Field>
  void list(Field& field, const std::string& fallback,
            std::function<void(Field&, const std::string&)> add) const {
    line_.add_value(names_, {"", setting_.value, setting_.help + " (repeatable)", fallback}, true,
                    replacing<Field>(field, std::move(add)));
  }

  template <typename Value, typename Parse>
  void map(std::map<std::string, Value>& field, Parse parse) const {
    using Field = std::map<std::string, Value>;
    list<Field>(
        field, "",
        [parse, flag = flag_, shape = setting_.value](Field& map, const std::string& given) {
          const auto [name, value] = name_and_value(flag, shape, given);
          map[name] = parse(value);
        });
  }

  CommandLine& line_;
  const Setting& setting_;
  std::string flag_;
  std::string names_;
};

struct MethodWords {
  const char* summary;
  const char* data;
  const char* example;
};

MethodWords words_of(TrainMethod method) {
  switch (method) {
    case TrainMethod::sft:
      return {"Fine-tunes a model on completions, conversations or texts, with or without WeMask.",
              "--train-file train.jsonl --use-peft --wemask wemask.json -o tuned",
              "an adapter, trained under a mask"};
    case TrainMethod::dpo:
      return {"Direct preference optimisation: of two completions, the better one is preferred.",
              "--train-file pairs.jsonl --hold-out 10 -o tuned",
              "one pair in ten is kept for evaluation"};
    case TrainMethod::grpo:
      return {"Group relative policy optimisation: completions are sampled and rewarded.",
              "--train-file train.jsonl --columns prompt=question --reward-funcs gsm8k_strict "
              "--max-steps 100 -o tuned",
              "GSM8K's training questions"};
    case TrainMethod::pretrain:
      break;
  }
  return {"Trains a small model from nothing, with MODEL's tokenizer; watches the ME layer emerge.",
          "--train-file text.txt --num-hidden-layers 6 --watch 50 -o small",
          "massive activations by layer every 50 steps"};
}

// A command line bound to options that outlive it.
struct Bound {
  Bound(TrainOptions& options, std::string& config, const std::vector<std::string>& arguments)
      : verb(str_cat("train ", name_of(options.settings.method))),
        words(words_of(options.settings.method)),
        line(verb, "MODEL --train-file FILE -o DIR [options]", words.summary, arguments) {
    std::string group;
    for (const Setting& setting : settings_table(options.settings)) {
      if (setting.group != group) line.group(group = setting.group);
      std::visit(Declare(line, setting), setting.slot);
    }
    line.group("Run");
    line.path(config, "--config", "FILE",
              "a TOML file of these settings, with _ for -; what a flag says goes before it");
    line.toggle(options.print_settings, "--print-settings",
                "print all settings as such a file, and leave");
    declare_threads(line, options.threads);
    line.toggle(options.quiet, "-q,--quiet", "no progress and no notes on standard error");
    line.example(str_cat("onset ", verb, " MODEL ", words.data), words.example);
    line.note(
        "Names and defaults are TRL's where it has them; docs/train-settings.md says where not.");
  }

  std::string verb;
  MethodWords words;
  CommandLine line;
};

// "--learning_rate" as "--learning-rate", where there is such a flag; what TRL has and onset has
// not is refused with what to do instead.
std::vector<std::string> with_our_spelling(TrainMethod method, std::vector<std::string> arguments) {
  TrainSettings settings = default_settings(method);
  std::set<std::string> names;
  for (const Setting& setting : settings_table(settings)) {
    names.insert(setting.name);
    names.insert("no_" + setting.name);
  }
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const std::size_t end = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(2, end - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (!names.contains(name)) {
      const std::string_view advice = advice_for(name);
      if (advice.empty()) continue;
      throw usage_error(
          str_cat("onset train ", name_of(method), " has no ", argument.substr(0, end)),
          std::string(advice));
    }
    std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  }
  return arguments;
}

}  // namespace

std::optional<TrainOptions> parse_train_options(TrainMethod method,
                                                const std::vector<std::string>& arguments) {
  const std::vector<std::string> given = with_our_spelling(method, arguments);
  TrainOptions options{.settings = default_settings(method)};
  std::string config;
  const auto bound = std::make_unique<Bound>(options, config, given);
  if (!bound->line.parse()) {
    (void)print_help(bound->line);
    return std::nullopt;
  }
  std::string model =
      bound->line.positionals().empty() ? "" : single_model(bound->line, bound->verb);
  if (!config.empty()) {
    // The flags once more, onto what the file says.
    options = {.settings = default_settings(method)};
    read_settings(config, options.settings);
    Bound again(options, config, given);
    (void)again.line.parse();
  }
  if (!model.empty()) options.settings.model = std::move(model);
  return options;
}

std::string train_help(TrainMethod method) {
  TrainOptions options{.settings = default_settings(method)};
  std::string config;
  return Bound(options, config, {}).line.help();
}

void require_files(const TrainSettings& settings) {
  const auto require = [&settings](const std::string& given, const char* what, const char* how) {
    if (!given.empty()) return;
    throw usage_error(str_cat("onset train ", name_of(settings.method), " needs ", what), how);
  };
  require(settings.model, "a model: a folder or a .gguf file", "name it behind the method");
  require(settings.data.train_file, "data to train on", "give --train-file FILE");
  require(settings.trainer.output_dir, "a folder for what it writes", "give -o DIR");
}

}  // namespace onset::app
