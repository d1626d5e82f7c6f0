// The modules that a configuration chooses, and their first values.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/mixing.h"
#include "onset/base/strings.h"
#include "onset/model/decoder_pass.h"
#include "onset/train/lora.h"

namespace onset {
namespace {

std::vector<std::string> endings_of(const std::vector<std::string>& names) {
  std::vector<std::string> endings;
  for (const std::string& name : names) {
    std::string ending = name.substr(name.rfind('.') + 1);
    if (std::find(endings.begin(), endings.end(), ending) == endings.end()) {
      endings.push_back(std::move(ending));
    }
  }
  return endings;
}

Error no_such_module(const std::string& what, const std::string& name,
                     const std::vector<std::string>& modules) {
  const std::vector<std::string> endings = endings_of(modules);
  std::string hint = did_you_mean(nearest(name, endings));
  if (hint.empty()) hint = did_you_mean(nearest(name, modules));
  if (hint.empty()) hint = "it has " + join(endings, ", ");
  return usage_error(str_cat(what, " ", quote(name), " fits no module of the model"), hint);
}

// Every name of the configuration must fit something: a slip of the pen would else train less than
// was meant.
void check_names(const LoraConfig& config, const std::vector<LinearModule>& linears,
                 const std::vector<AdaptedModule>& chosen, const std::string& embedding) {
  std::vector<std::string> names;
  for (const LinearModule& module : linears) names.push_back(module.name);
  for (const std::string& target : config.targets.names) {
    if (embedding == target || embedding.ends_with("." + target)) {
      throw usage_error(str_cat("the embedding ", quote(target), " takes no LoRA adapter here"),
                        "train it whole: name it in modules_to_save");
    }
    const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == target || name.ends_with("." + target);
    });
    if (!fits) throw no_such_module("the target module", target, names);
  }
  if (chosen.empty() && !(config.targets.empty() && !config.all_linear)) {
    throw usage_error("the target modules leave no module of the model",
                      "its linear modules are " + join(endings_of(names), ", "));
  }
  const auto check_pattern = [&](const char* what, const std::string& pattern) {
    LoraConfig probe;
    probe.rank_pattern = {{pattern, probe.rank + 1}};
    const bool fits = std::any_of(chosen.begin(), chosen.end(), [&](const AdaptedModule& module) {
      return rank_of(probe, module.name) != probe.rank;
    });
    if (!fits) {
      throw usage_error(
          str_cat("the ", what, " pattern ", quote(pattern), " fits no adapted module"));
    }
  };
  for (const auto& [pattern, rank] : config.rank_pattern) check_pattern("rank", pattern);
  for (const auto& [pattern, alpha] : config.alpha_pattern) check_pattern("alpha", pattern);
}

}  // namespace

std::vector<SavedModule> saved_modules(Decoder& decoder, const std::vector<std::string>& names) {
  LoraConfig config;
  config.modules_to_save = names;
  const at::ScalarType type = residual_type(decoder.compute());
  std::vector<SavedModule> saved;
  std::vector<std::string> all{embedding_module(decoder)};
  if (is_saved(config, all.front())) {
    const ModelWeights& weights = decoder.weights();
    const at::Tensor values = weights.embedding_parameter.defined()
                                  ? weights.embedding_parameter.detach().clone()
                                  : expand(weights.embedding, at::kFloat);
    saved.push_back({all.front(), values.to(type), {}});
  }
  for (const NormModule& module : norm_modules(decoder)) {
    all.push_back(module.name);
    if (!is_saved(config, module.name)) continue;
    const at::Tensor gain = module.gain->detach();
    saved.push_back(
        {module.name, decoder.config().norm_plus_one ? gain.sub(1.0) : gain.clone(), {}});
  }
  for (const LinearModule& module : linear_modules(decoder)) {
    all.push_back(module.name);
    if (!is_saved(config, module.name)) continue;
    std::vector<at::Tensor> rows;
    std::vector<at::Tensor> biases;
    for (const Linear* part : module.parts) {
      rows.push_back(part->dense(at::kFloat));
      if (part->bias().defined()) biases.push_back(part->bias().detach());
    }
    saved.push_back({module.name, at::cat(rows).to(type),
                     biases.empty() ? at::Tensor() : at::cat(biases).to(type)});
  }
  for (const std::string& name : names) {
    const bool fits = std::any_of(saved.begin(), saved.end(), [&](const SavedModule& module) {
      return module.name == name || module.name.ends_with("." + name);
    });
    if (!fits) throw no_such_module("the module to save", name, all);
  }
  return saved;
}

double new_lora_weights(Decoder& decoder, const LoraConfig& config) {
  double sum = 0;
  for (const LinearModule& module : linear_modules(decoder)) {
    if (!is_target(config, module.name, module.role == ModuleRole::projection)) continue;
    sum += static_cast<double>(rank_of(config, module.name)) *
           static_cast<double>(module.in_features() + module.out_features());
  }
  return sum;
}

LoraTensors new_lora(Decoder& decoder, const LoraConfig& config, std::uint64_t seed) {
  check(config);
  const auto options = at::TensorOptions().dtype(residual_type(decoder.compute()));
  const std::vector<LinearModule> linears = linear_modules(decoder);
  LoraTensors tensors;
  for (const LinearModule& module : linears) {
    if (!is_target(config, module.name, module.role == ModuleRole::projection)) continue;
    const std::int64_t rank = rank_of(config, module.name);
    const double bound = std::sqrt(1.0 / static_cast<double>(module.in_features()));
    const at::Generator generator =
        at::detail::createCPUGenerator(seed ^ fnv1a(fnv1a_begin, module.name));
    tensors.adapted.push_back(
        {.name = module.name,
         .down =
             at::empty({rank, module.in_features()}, options).uniform_(-bound, bound, generator),
         .up = at::zeros({module.out_features(), rank}, options),
         .scale = scale_of(config, module.name)});
  }
  check_names(config, linears, tensors.adapted, embedding_module(decoder));
  tensors.saved = saved_modules(decoder, config.modules_to_save);
  return tensors;
}

}  // namespace onset
