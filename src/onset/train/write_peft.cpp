#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/train/peft.h"
#include "onset/train/peft_config.h"

namespace onset {
namespace {

// A name as a regex that matches nothing else.
std::string escaped(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (c == '.') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// PEFT saves every module whose name ends so, without regard to dots: "norm" would be all norms.
std::vector<std::string> names_to_save(const std::vector<SavedModule>& saved,
                                       const std::vector<std::string>& all) {
  const auto is_saved_module = [&](const std::string& name) {
    return std::any_of(saved.begin(), saved.end(),
                       [&](const SavedModule& module) { return module.name == name; });
  };
  std::vector<std::string> names;
  for (const SavedModule& module : saved) {
    const std::string ending = module.name.substr(module.name.rfind('.') + 1);
    const bool exact = std::all_of(all.begin(), all.end(), [&](const std::string& name) {
      return !name.ends_with(ending) || is_saved_module(name);
    });
    const std::string& name = exact ? ending : module.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// The configuration that makes PEFT find just these modules with these ranks and scales.
LoraConfig explicit_config(const LoraAdapter& adapter) {
  LoraConfig config = adapter.config();
  Decoder& decoder = adapter.decoder();
  std::vector<std::string> linears;
  std::vector<std::string> all{embedding_module(decoder)};
  for (const LinearModule& module : linear_modules(decoder)) linears.push_back(module.name);
  for (const NormModule& module : norm_modules(decoder)) all.push_back(module.name);
  all.insert(all.end(), linears.begin(), linears.end());
  std::vector<std::string> adapted;
  std::vector<std::pair<std::string, std::int64_t>> ranks;
  std::vector<std::pair<std::string, double>> alphas;
  for (const AdaptedModule& module : adapter.tensors().adapted) {
    adapted.push_back(module.name);
    const auto rank = static_cast<double>(module.rank());
    if (module.rank() != rank_of(config, module.name)) {
      ranks.emplace_back(escaped(module.name), module.rank());
    }
    const double alpha = module.scale * (config.rslora ? std::sqrt(rank) : rank);
    if (std::abs(alpha - alpha_of(config, module.name)) > 1e-9 * alpha) {
      alphas.emplace_back(escaped(module.name), alpha);
    }
  }
  // The first pattern that fits counts.
  config.rank_pattern.insert(config.rank_pattern.begin(), ranks.begin(), ranks.end());
  config.alpha_pattern.insert(config.alpha_pattern.begin(), alphas.begin(), alphas.end());
  config.targets = {.names = shortest_targets(adapted, linears), .regex = {}};
  config.all_linear = false;
  config.excluded = {};
  config.layers.clear();
  config.layers_pattern.clear();
  config.target_parameters.clear();
  config.modules_to_save = names_to_save(adapter.tensors().saved, all);
  return config;
}

}  // namespace

void write_peft(const std::filesystem::path& folder, const LoraAdapter& adapter) {
  make_folder(folder);
  SafetensorsWriter writer(folder / "adapter_model.safetensors");
  writer.set_metadata("format", "pt");
  for (const Parameter& parameter : adapter.parameters()) {
    const at::Tensor values = parameter.value.detach().to(at::kCPU, at::kFloat).contiguous();
    writer.add(parameter.name, DType::f32, values.sizes().vec(),
               std::as_bytes(std::span(values.const_data_ptr<float>(),
                                       static_cast<std::size_t>(values.numel()))));
  }
  writer.commit();
  write_file_atomically(folder / "adapter_config.json",
                        peft_config_json(explicit_config(adapter)).dump(2) + "\n");
}

}  // namespace onset
