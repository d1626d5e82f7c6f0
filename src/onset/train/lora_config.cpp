#include "onset/train/lora_config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/text_pattern.h"

namespace onset {
namespace {

TextPattern compiled(const std::string& pattern) {
  return {pattern, str_cat("the pattern of modules ", quote(pattern))};
}

// re.fullmatch
bool matches_whole(const std::string& pattern, std::string_view name) {
  return !compiled(str_cat(R"(^(?:)", pattern, R"()\z)")).find_all(name).empty();
}

bool has_name(const std::vector<std::string>& names, std::string_view module) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return module == name || module.ends_with("." + name);
  });
}

bool chooses(const ModuleChoice& choice, std::string_view module) {
  return choice.regex.empty() ? has_name(choice.names, module)
                              : matches_whole(choice.regex, module);
}

// The number behind the layers' list: of "model.layers.1.mlp.experts.0.up_proj" it is 1. With
// patterns the list must be called so. -1 where there is none.
std::int64_t layer_of(std::string_view module, const std::vector<std::string>& patterns) {
  const std::vector<std::string> parts = split(module, '.');
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::string& part = parts[i];
    const bool number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    if (!number) continue;
    const std::string& list = parts[i - 1];
    const bool listed =
        patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
          return matches_whole(pattern, list);
        });
    if (listed) return std::stoll(part);
  }
  return -1;
}

bool is_in_layers(const LoraConfig& config, std::string_view module) {
  if (config.layers.empty()) return true;
  const std::int64_t layer = layer_of(module, config.layers_pattern);
  return std::find(config.layers.begin(), config.layers.end(), layer) != config.layers.end();
}

template <typename Value>
Value by_pattern(const std::vector<std::pair<std::string, Value>>& patterns,
                 std::string_view module, Value otherwise) {
  for (const auto& [pattern, value] : patterns) {
    if (matches_whole(str_cat("(?:.*\\.)?(?:", pattern, ")"), module)) return value;
  }
  return otherwise;
}

// What is wrong with the values; empty where nothing is.
std::string fault_of(const LoraConfig& config) {
  const auto fault_of_rank = [](std::int64_t rank) {
    return rank < 1 ? str_cat("the rank is ", rank, ", expected 1 or more") : std::string();
  };
  const auto fault_of_alpha = [](double alpha) {
    return std::isfinite(alpha) && alpha > 0
               ? std::string()
               : str_cat("alpha is ", alpha, ", expected a number above 0");
  };
  std::vector<std::string> faults{fault_of_rank(config.rank), fault_of_alpha(config.alpha)};
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    faults.push_back(
        str_cat("the dropout is ", config.dropout, ", expected a share from 0 to below 1"));
  }
  for (const auto& [pattern, rank] : config.rank_pattern) faults.push_back(fault_of_rank(rank));
  for (const auto& [pattern, alpha] : config.alpha_pattern) faults.push_back(fault_of_alpha(alpha));
  const auto found =
      std::find_if(faults.begin(), faults.end(), [](const auto& fault) { return !fault.empty(); });
  return found == faults.end() ? std::string() : *found;
}

void compile_patterns(const LoraConfig& config) {
  for (const auto& [pattern, rank] : config.rank_pattern) static_cast<void>(compiled(pattern));
  for (const auto& [pattern, alpha] : config.alpha_pattern) static_cast<void>(compiled(pattern));
  for (const ModuleChoice* choice : {&config.targets, &config.excluded}) {
    if (!choice->regex.empty()) static_cast<void>(compiled(choice->regex));
  }
}

std::string last_part(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

}  // namespace

void check(const LoraConfig& config) {
  const std::string fault = fault_of(config);
  if (!fault.empty()) throw usage_error("LoRA: " + fault);
  compile_patterns(config);
  if (config.targets.empty() && !config.all_linear && config.modules_to_save.empty()) {
    throw usage_error("LoRA needs the modules that it changes",
                      "name them, such as q_proj, v_proj, or take all-linear");
  }
}

void check_values(const LoraConfig& config, const std::string& where) {
  const std::string fault = fault_of(config);
  require_input(fault.empty(), where, ": ", fault);
  compile_patterns(config);
}

bool is_saved(const LoraConfig& config, std::string_view module) {
  return has_name(config.modules_to_save, module);
}

bool is_target(const LoraConfig& config, std::string_view module, bool projection) {
  if (chooses(config.excluded, module) || is_saved(config, module)) return false;
  if (config.all_linear) return projection;
  if (!chooses(config.targets, module)) return false;
  const auto& names = config.targets.names;
  // A module that is named whole is meant whatever its layer, as PEFT has it.
  return !config.targets.regex.empty() ||
         std::find(names.begin(), names.end(), module) != names.end() ||
         is_in_layers(config, module);
}

std::int64_t rank_of(const LoraConfig& config, std::string_view module) {
  return by_pattern(config.rank_pattern, module, config.rank);
}

double alpha_of(const LoraConfig& config, std::string_view module) {
  return by_pattern(config.alpha_pattern, module, config.alpha);
}

double scale_of(const LoraConfig& config, std::string_view module) {
  const auto rank = static_cast<double>(rank_of(config, module));
  return alpha_of(config, module) / (config.rslora ? std::sqrt(rank) : rank);
}

std::vector<std::string> shortest_targets(const std::vector<std::string>& chosen,
                                          const std::vector<std::string>& all) {
  std::map<std::string, std::size_t> chosen_endings;
  std::map<std::string, std::size_t> all_endings;
  for (const std::string& name : chosen) ++chosen_endings[last_part(name)];
  for (const std::string& name : all) ++all_endings[last_part(name)];
  std::set<std::string> targets;
  for (const std::string& name : chosen) {
    const std::string ending = last_part(name);
    targets.insert(chosen_endings[ending] == all_endings[ending] ? ending : name);
  }
  return {targets.begin(), targets.end()};
}

}  // namespace onset
