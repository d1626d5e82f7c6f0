#include "onset/train/settings_toml.h"

#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "onset/base/strings.h"
#include "onset/train/settings_table.h"

namespace onset {
namespace {

// The key of the model, which the command line takes by itself.
constexpr const char* model_key = "model";

// ---- a value into a field

// One value of the file, with the place for messages.
class Value {
 public:
  Value(const TomlTable& table, const Setting& setting, Json value)
      : table_(table), setting_(setting), value_(std::move(value)) {}

  void into(bool& field) const { field = boolean(); }
  void into(std::optional<bool>& field) const { field = boolean(); }
  void into(std::int64_t& field) const { field = integer(value_); }
  void into(std::optional<std::int64_t>& field) const { field = integer(value_); }
  void into(double& field) const { field = number(value_); }
  void into(std::optional<double>& field) const { field = number(value_); }
  void into(std::string& field) const { field = text(value_); }
  void into(std::vector<std::string>& field) const {
    field.clear();
    if (value_.is_string()) {  // one of them need not be a list
      field.push_back(text(value_));
      return;
    }
    for (const Json& entry : list()) field.push_back(text(entry));
  }
  void into(std::vector<double>& field) const {
    field.clear();
    for (const Json& entry : list()) field.push_back(number(entry));
  }
  void into(std::map<std::string, std::string>& field) const {
    field.clear();
    for (const auto& [name, entry] : object().items()) field[name] = text(entry);
  }
  void into(std::map<std::string, std::int64_t>& field) const {
    field.clear();
    for (const auto& [name, entry] : object().items()) field[name] = integer(entry);
  }
  void into(std::map<std::string, double>& field) const {
    field.clear();
    for (const auto& [name, entry] : object().items()) field[name] = number(entry);
  }
  void into(const ChoiceSlot& field) const {
    const std::string wanted = text(value_);
    for (std::size_t i = 0; i < field.names.size(); ++i) {
      if (field.names[i] == wanted) return field.set(i);
    }
    throw table_.error(
        setting_.name,
        str_cat("is ", quote(wanted), ", should be one of ", join(field.names, ", ")),
        did_you_mean(nearest(wanted, field.names, 1)));
  }

 private:
  [[nodiscard]] Error wrong(const char* expected, const Json& value) const {
    return table_.error(setting_.name, str_cat("should be ", expected, ", is ", value.type_name()));
  }
  [[nodiscard]] bool boolean() const {
    if (!value_.is_boolean()) throw wrong("true or false", value_);
    return value_.get<bool>();
  }
  [[nodiscard]] std::int64_t integer(const Json& value) const {
    if (!value.is_number_integer()) throw wrong("an integer", value);
    return in_range<std::int64_t>(value);
  }
  [[nodiscard]] double number(const Json& value) const {
    if (!value.is_number()) throw wrong("a number", value);
    return in_range<double>(value);
  }
  template <typename Number>
  [[nodiscard]] Number in_range(const Json& value) const {
    const std::string fault = range_fault(setting_, value.get<double>());
    if (!fault.empty()) throw table_.error(setting_.name, fault);
    return value.get<Number>();
  }
  [[nodiscard]] std::string text(const Json& value) const {
    if (!value.is_string()) throw wrong("text", value);
    return value.get<std::string>();
  }
  [[nodiscard]] const Json& list() const {
    if (!value_.is_array()) throw wrong("a list", value_);
    return value_;
  }
  [[nodiscard]] const Json& object() const {
    if (!value_.is_object()) throw wrong("a table", value_);
    return value_;
  }

  const TomlTable& table_;
  const Setting& setting_;
  Json value_;
};

// Whether another method has a setting of that name; empty where none has.
std::string method_with(const std::string& key, TrainMethod not_this) {
  for (const TrainMethod method :
       {TrainMethod::sft, TrainMethod::dpo, TrainMethod::grpo, TrainMethod::pretrain}) {
    if (method == not_this) continue;
    TrainSettings settings = default_settings(method);
    for (const Setting& setting : settings_table(settings)) {
      if (setting.name == key) return std::string(name_of(method));
    }
  }
  return {};
}

void refuse_unknown(TomlTable& table, const std::vector<Setting>& settings, TrainMethod method) {
  std::vector<std::string> known{model_key};
  for (const Setting& setting : settings) known.push_back(setting.name);
  for (const std::string& key : table.keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view advice = advice_for(key);
    if (!advice.empty()) throw table.error(key, "is not a setting here", std::string(advice));
    const std::string other = method_with(key, method);
    if (!other.empty()) {
      throw table.error(
          key, str_cat("is a setting of train ", other, ", not of train ", name_of(method)));
    }
    throw table.error(key, "is not known", did_you_mean(nearest(key, known)));
  }
}

// ---- a field as JSON, and as TOML

Json json_of(const SettingSlot& slot) {
  return std::visit(
      [](const auto& field) -> Json {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, ChoiceSlot>) {
          return field.names.at(field.get());
        } else if constexpr (std::is_same_v<Field, std::optional<bool>*> ||
                             std::is_same_v<Field, std::optional<std::int64_t>*> ||
                             std::is_same_v<Field, std::optional<double>*>) {
          return field->has_value() ? Json(**field) : Json();
        } else {
          return *field;
        }
      },
      slot);
}

// The shortest decimal that reads back as the same number; TOML tells 1 from 1.0.
std::string toml_number(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
std::string toml_text(const std::string& text) {
  std::string quoted;
  for (const char c : Json(valid_utf8(text)).dump()) {
    if (c == '\x7f') {
      quoted += "\\u007f";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string toml_of(const Json& value) {
  std::vector<std::string> parts;
  if (value.is_string()) return toml_text(value.get<std::string>());
  if (value.is_number_float()) return toml_number(value.get<double>());
  if (value.is_array()) {
    for (const Json& entry : value) parts.push_back(toml_of(entry));
    return str_cat("[", join(parts, ", "), "]");
  }
  if (value.is_object()) {
    for (const auto& [name, entry] : value.items()) {
      parts.push_back(str_cat(toml_text(name), " = ", toml_of(entry)));
    }
    return str_cat("{", join(parts, ", "), "}");
  }
  return value.dump();
}

// The tables are bound to fields, so they are made of a copy that is only read.
template <typename Take>
void for_each_setting(TrainSettings settings, Take take) {
  for (const Setting& setting : settings_table(settings)) take(setting);
}

}  // namespace

void apply_settings(TomlTable table, TrainSettings& settings) {
  const std::vector<Setting> known = settings_table(settings);
  refuse_unknown(table, known, settings.method);
  if (const auto model = table.find_text(model_key)) settings.model = *model;
  for (const Setting& setting : known) {
    if (!table.has(setting.name)) continue;
    const Value value(table, setting, table.value(setting.name));
    std::visit(
        [&value](const auto& field) {
          if constexpr (std::is_same_v<std::decay_t<decltype(field)>, ChoiceSlot>) {
            value.into(field);
          } else {
            value.into(*field);
          }
        },
        setting.slot);
  }
}

void read_settings(const std::filesystem::path& path, TrainSettings& settings) {
  apply_settings(TomlTable::read(path), settings);
}

std::string settings_toml(const TrainSettings& settings) {
  std::string text = str_cat("# onset train ", name_of(settings.method), "\n");
  if (!settings.model.empty()) text += str_cat(model_key, " = ", toml_text(settings.model), "\n");
  std::string group;
  for_each_setting(settings, [&](const Setting& setting) {
    if (setting.group != group) {
      group = setting.group;
      text += str_cat("\n# ", group, "\n");
    }
    const Json value = json_of(setting.slot);
    if (value.is_null()) return;
    text += str_cat(setting.name, " = ", toml_of(value), "\n");
  });
  return text;
}

OrderedJson curve_settings(const TrainSettings& settings) {
  OrderedJson json = {{"method", name_of(settings.method)}};
  for_each_setting(settings, [&json](const Setting& setting) {
    if (setting.shapes_curve) json[setting.name] = json_of(setting.slot);
  });
  return json;
}

OrderedJson settings_json(const TrainSettings& settings) {
  OrderedJson json = {{"method", name_of(settings.method)}, {model_key, settings.model}};
  for_each_setting(settings,
                   [&json](const Setting& setting) { json[setting.name] = json_of(setting.slot); });
  return json;
}

}  // namespace onset
