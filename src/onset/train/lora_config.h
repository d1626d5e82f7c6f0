// What a LoRA adapter is (2106.09685): which modules it changes, by what rank and how much. Fields
// and meaning are those of PEFT's LoraConfig. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onset {

// A choice of modules: by names, which a module has where its own name is that or ends with "." and
// that, or by a regex (Python's `re`) that matches the whole name.
struct ModuleChoice {
  std::vector<std::string> names;
  std::string regex;

  [[nodiscard]] bool empty() const { return names.empty() && regex.empty(); }
};

struct LoraConfig {
  std::int64_t rank = 8;
  double alpha = 8.0;    // what the product B A is scaled by: alpha / rank
  double dropout = 0.0;  // share of a module's inputs that training sets to 0 before A
  bool rslora = false;   // scaled by alpha / sqrt(rank) instead (2312.03732)
  // Of modules whose name, or what follows a "." in it, is matched by a regex; the first that fits.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  ModuleChoice targets;
  bool all_linear = false;  // all but the head and routers of mixtures, instead of `targets`
  ModuleChoice excluded;
  // Only modules of these layers, where `targets` are names; empty: of all.
  std::vector<std::int64_t> layers;
  // What stands before the layer's number in a name; empty: anything.
  std::vector<std::string> layers_pattern;
  // Modules that are trained whole, by the last part of their name: "lm_head", "embed_tokens",
  // "input_layernorm". They take no adapter.
  std::vector<std::string> modules_to_save;
  // Whether a head tied to a saved embedding follows it; else the head stays as it was, and the two
  // are no longer tied.
  bool keep_tied = false;
  // Stacks of experts that PEFT adapts as one parameter: adapters are read in this form, and each
  // expert is then a module of its own.
  std::vector<std::string> target_parameters;
  std::string base_model;  // what the adapter was trained on, as its file says
};

// Usage errors for values out of their range, for patterns that are no regex, and for no target at
// all.
void check(const LoraConfig& config);
// The values alone; input errors that begin with `where`.
void check_values(const LoraConfig& config, const std::string& where);

// Whether a linear module gets an adapter. `projection`: it is neither the head nor a router.
[[nodiscard]] bool is_target(const LoraConfig& config, std::string_view module, bool projection);
// Whether a module is one of modules_to_save.
[[nodiscard]] bool is_saved(const LoraConfig& config, std::string_view module);

[[nodiscard]] std::int64_t rank_of(const LoraConfig& config, std::string_view module);
[[nodiscard]] double alpha_of(const LoraConfig& config, std::string_view module);
// What the module's product B A is multiplied with.
[[nodiscard]] double scale_of(const LoraConfig& config, std::string_view module);

// Names that `targets` could be given to choose exactly `chosen` of `all`: last parts of names, and
// whole names where others end alike.
[[nodiscard]] std::vector<std::string> shortest_targets(const std::vector<std::string>& chosen,
                                                        const std::vector<std::string>& all);

}  // namespace onset
