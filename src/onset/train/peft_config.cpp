#include "onset/train/peft_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/run_checkpoints.h"

namespace onset {
namespace {

// Keys that change nothing of what an adapter computes once it is trained, or that
// read_peft_config() looks at itself.
constexpr std::array known_keys{"alpha_pattern",
                                "auto_mapping",
                                "base_model_name_or_path",
                                "bias",
                                "corda_config",
                                "ensure_weight_tying",
                                "eva_config",
                                "exclude_modules",
                                "inference_mode",
                                "init_lora_weights",
                                "layers_pattern",
                                "layers_to_transform",
                                "loftq_config",
                                "lora_alpha",
                                "lora_dropout",
                                "lora_ga_config",
                                "megatron_core",
                                "modules_to_save",
                                "peft_type",
                                "peft_version",
                                "qalora_group_size",
                                "r",
                                "rank_pattern",
                                "revision",
                                "runtime_config",
                                "target_modules",
                                "target_parameters",
                                "task_type",
                                "use_rslora"};

// Ways to begin that leave the weights of the base model as they are. Others (PiSSA, OLoRA, CorDA,
// LoftQ) write into them, so that what the adapter adds to is not the model's own file.
constexpr std::array harmless_starts{"gaussian", "eva", "orthogonal"};

bool says_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

Error wrong(const std::string& where, const std::string& key, const std::string& what) {
  return input_error(str_cat(where, ": key ", quote(key), " ", what));
}

std::vector<std::string> texts(const Json& value, const std::string& where,
                               const std::string& key) {
  std::vector<std::string> result;
  for (const Json& item : value) {
    if (!item.is_string()) {
      throw wrong(where, key, str_cat("should hold names, holds ", item.type_name()));
    }
    result.push_back(item.get<std::string>());
  }
  return result;
}

// A text or a list of texts.
std::vector<std::string> names_of(const OrderedJson& config, const std::string& key,
                                  const std::string& where) {
  const Json value = config.value(key, OrderedJson());
  if (value.is_null()) return {};
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) throw wrong(where, key, "should be a list of names");
  return texts(value, where, key);
}

// A regex as a text, or names as a list.
ModuleChoice choice_of(const OrderedJson& config, const std::string& key,
                       const std::string& where) {
  const OrderedJson value = config.value(key, OrderedJson());
  if (value.is_string()) return {.names = {}, .regex = value.get<std::string>()};
  return {.names = names_of(config, key, where), .regex = {}};
}

template <typename Value>
std::vector<std::pair<std::string, Value>> pattern_of(const OrderedJson& config,
                                                      const std::string& key,
                                                      const std::string& where) {
  std::vector<std::pair<std::string, Value>> result;
  const OrderedJson value = config.value(key, OrderedJson());
  if (value.is_null()) return result;
  if (!value.is_object()) throw wrong(where, key, "should be an object");
  for (const auto& [pattern, number] : value.items()) {
    if (!number.is_number())
      throw wrong(where, key, str_cat("of ", quote(pattern), " should be a number"));
    result.emplace_back(pattern, number.template get<Value>());
  }
  return result;
}

void refuse_unsupported(const Json& config, const std::string& where) {
  const std::string type = find_string(config, "peft_type", where).value_or("");
  require_input(type == "LORA", where, ": is an adapter of kind ", quote(type),
                ", and only LORA is supported");
  for (const auto& [key, value] : config.items()) {
    if (says_nothing(value)) continue;
    if (std::find(known_keys.begin(), known_keys.end(), key) != known_keys.end()) continue;
    // Reading goes on with what the key means left out, which would be another adapter.
    throw input_error(
        str_cat(where, ": has ", quote(key), " set, which is not supported"),
        key == "use_dora" || key == "lora_bias"
            ? "PEFT's merge_and_unload() folds such an adapter into a model of its own"
            : "");
  }
  const std::string bias = find_string(config, "bias", where).value_or("none");
  require_input(bias == "none", where, ": trains biases (\"bias\": ", quote(bias),
                "), which is not supported");
  const std::string task = find_string(config, "task_type", where).value_or("CAUSAL_LM");
  require_input(task == "CAUSAL_LM", where, ": is an adapter for the task ", quote(task),
                ", and only CAUSAL_LM is supported");
  const auto start = config.find("init_lora_weights");
  if (start == config.end() || !start->is_string()) return;
  const auto name = start->get<std::string>();
  if (std::find(harmless_starts.begin(), harmless_starts.end(), name) != harmless_starts.end()) {
    return;
  }
  throw input_error(str_cat(where, ": began from weights of the model changed by ", quote(name),
                            ", which its own file does not hold"),
                    "PEFT can save it as plain LoRA: save_pretrained(.., "
                    "path_initial_model_for_weight_conversion=..)");
}

}  // namespace

LoraConfig read_peft_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "adapter_config.json";
  const std::string where = path.string();
  if (!std::filesystem::exists(path)) {
    const std::string unfinished = unfinished_run_hint(folder);
    throw input_error(
        str_cat(folder.string(), std::filesystem::exists(folder)
                                     ? ": is no adapter: adapter_config.json is missing"
                                     : ": does not exist"),
        unfinished.empty() ? "give a folder as PEFT writes it" : unfinished);
  }
  const OrderedJson ordered = parse_ordered_json(read_file(path), where);
  require_input(ordered.is_object(), where, ": should be a JSON object");
  const Json config = ordered;
  refuse_unsupported(config, where);
  LoraConfig result;
  result.rank = find_int(config, "r", where).value_or(result.rank);
  result.alpha = find_number(config, "lora_alpha", where).value_or(result.alpha);
  result.dropout = find_number(config, "lora_dropout", where).value_or(0.0);
  result.rslora = find_bool(config, "use_rslora", where).value_or(false);
  result.keep_tied = find_bool(config, "ensure_weight_tying", where).value_or(false);
  result.base_model = find_string(config, "base_model_name_or_path", where).value_or("");
  result.rank_pattern = pattern_of<std::int64_t>(ordered, "rank_pattern", where);
  result.alpha_pattern = pattern_of<double>(ordered, "alpha_pattern", where);
  result.targets = choice_of(ordered, "target_modules", where);
  if (result.targets.regex == "all-linear") {
    result.targets = {};
    result.all_linear = true;
  }
  result.excluded = choice_of(ordered, "exclude_modules", where);
  result.modules_to_save = names_of(ordered, "modules_to_save", where);
  result.layers_pattern = names_of(ordered, "layers_pattern", where);
  result.target_parameters = names_of(ordered, "target_parameters", where);
  const Json layers = config.value("layers_to_transform", Json());
  if (layers.is_number_integer()) result.layers = {layers.get<std::int64_t>()};
  if (layers.is_array()) {
    for (const Json& layer : layers) {
      if (!layer.is_number_integer())
        throw wrong(where, "layers_to_transform", "should hold layers");
      result.layers.push_back(layer.get<std::int64_t>());
    }
  }
  check_values(result, where);
  return result;
}

OrderedJson peft_config_json(const LoraConfig& config) {
  const auto choice = [](const ModuleChoice& modules) {
    if (!modules.regex.empty()) return OrderedJson(modules.regex);
    return modules.names.empty() ? OrderedJson() : OrderedJson(modules.names);
  };
  const auto number = [](double value) {
    return value == std::floor(value) ? OrderedJson(static_cast<std::int64_t>(value))
                                      : OrderedJson(value);
  };
  const auto list = [](const auto& values) {
    return values.empty() ? OrderedJson() : OrderedJson(values);
  };
  OrderedJson ranks = OrderedJson::object();
  for (const auto& [pattern, rank] : config.rank_pattern) ranks[pattern] = rank;
  OrderedJson alphas = OrderedJson::object();
  for (const auto& [pattern, alpha] : config.alpha_pattern) alphas[pattern] = number(alpha);
  return {
      {"alpha_pattern", std::move(alphas)},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path",
       config.base_model.empty() ? OrderedJson() : OrderedJson(config.base_model)},
      {"bias", "none"},
      {"exclude_modules", choice(config.excluded)},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", list(config.layers_pattern)},
      {"layers_to_transform", list(config.layers)},
      {"lora_alpha", number(config.alpha)},
      {"lora_dropout", config.dropout},
      {"modules_to_save", list(config.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"rank_pattern", std::move(ranks)},
      {"revision", nullptr},
      {"target_modules", config.all_linear ? OrderedJson("all-linear") : choice(config.targets)},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", false},
      {"use_rslora", config.rslora}};
}

}  // namespace onset
