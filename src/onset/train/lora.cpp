#include "onset/train/lora.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/product_gradients.h"
#include "onset/model/decoder_pass.h"

namespace onset {
namespace {

constexpr const char* peft_prefix = "base_model.model.";

template <typename Module>
Module& find_module(std::vector<Module>& modules, const std::string& name) {
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [&](const Module& module) { return module.name == name; });
  if (found == modules.end()) throw std::logic_error("LoraAdapter: no module " + name);
  return *found;
}

template <typename Module>
bool has_module(const std::vector<Module>& modules, const std::string& name) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const Module& module) { return module.name == name; });
}

void make_leaf(at::Tensor& tensor, at::Device device, bool trains) {
  if (tensor.defined()) tensor = tensor.detach().to(device).requires_grad_(trains);
}

// Calls visit(name, tensor) for each tensor of the adapter under its name in PEFT's files.
template <typename Visit>
void for_each_tensor(const LoraTensors& tensors, const Visit& visit) {
  for (const AdaptedModule& module : tensors.adapted) {
    visit(str_cat(peft_prefix, module.name, ".lora_A.weight"), module.down);
    visit(str_cat(peft_prefix, module.name, ".lora_B.weight"), module.up);
  }
  for (const SavedModule& module : tensors.saved) {
    visit(str_cat(peft_prefix, module.name, ".weight"), module.weight);
    if (module.bias.defined()) visit(str_cat(peft_prefix, module.name, ".bias"), module.bias);
  }
}

}  // namespace

LoraAdapter::LoraAdapter(Decoder& decoder, LoraConfig config, LoraTensors tensors, bool trains)
    : decoder_(decoder), config_(std::move(config)), tensors_(std::move(tensors)), trains_(trains) {
  for (AdaptedModule& module : tensors_.adapted) {
    make_leaf(module.down, decoder.device(), trains);
    make_leaf(module.up, decoder.device(), trains);
  }
  for (SavedModule& module : tensors_.saved) {
    make_leaf(module.weight, decoder.device(), trains);
    make_leaf(module.bias, decoder.device(), trains);
  }
  attach();
}

void LoraAdapter::attach() {
  if (!undo_.empty()) return;
  // Parts of a tensor are views that gradients must pass.
  const c10::AutoGradMode record(trains_);
  std::vector<LinearModule> linears = linear_modules(decoder_);
  std::vector<NormModule> norms = norm_modules(decoder_);
  std::uint64_t stream = 0;
  for (const AdaptedModule& module : tensors_.adapted) {
    attach(module, find_module(linears, module.name), stream++);
  }
  for (const SavedModule& module : tensors_.saved) {
    if (module.name == embedding_module(decoder_)) {
      attach_embedding(module);
    } else if (has_module(norms, module.name)) {
      attach_norm(module, *find_module(norms, module.name).gain);
    } else {
      attach(module, find_module(linears, module.name));
    }
  }
  renew_latents();
  refresh();
}

void LoraAdapter::change(Linear& linear) {
  undo_.push_back([&linear, before = linear] { linear = before; });
}

void LoraAdapter::attach(const AdaptedModule& module, LinearModule& target, std::uint64_t stream) {
  if (module.up.size(0) != target.out_features() || module.down.size(1) != target.in_features()) {
    throw std::logic_error("LoraAdapter: a pair of another shape for " + module.name);
  }
  std::int64_t first = 0;
  for (Linear* part : target.parts) {
    if (part->adapter()) throw std::logic_error("LoraAdapter: a model that has an adapter already");
    const std::int64_t count = part->out_features();
    change(*part);
    part->set_adapter(std::make_shared<LowRankAdapter>(LowRankAdapter{
        .down = module.down,
        .up = target.parts.size() == 1 ? module.up : module.up.narrow(0, first, count),
        .scale = module.scale,
        .dropout = trains_ ? config_.dropout : 0.0,
        .stream = stream,
        .dropping = dropping_}));
    first += count;
  }
}

void LoraAdapter::attach(const SavedModule& module, LinearModule& target) {
  std::int64_t first = 0;
  for (Linear* part : target.parts) {
    const std::int64_t count = part->out_features();
    change(*part);
    part->set_parameter(module.weight.narrow(0, first, count));
    if (module.bias.defined()) part->set_bias(module.bias.narrow(0, first, count));
    refresh_.emplace_back([part] { part->refresh(); });
    first += count;
  }
  if (target.role != ModuleRole::head) return;
  ModelWeights& weights = decoder_.weights_to_change();
  undo_.push_back([&weights, tied = weights.tied] { weights.tied = tied; });
  weights.tied = false;
}

void LoraAdapter::attach_norm(const SavedModule& module, at::Tensor& gain) {
  undo_.push_back([&gain, before = gain] { gain = before; });
  if (!decoder_.config().norm_plus_one) {
    gain = module.weight;
    return;
  }
  refresh_.emplace_back([&gain, stored = module.weight] { gain = stored.add(1.0); });
}

void LoraAdapter::attach_embedding(const SavedModule& module) {
  ModelWeights& weights = decoder_.weights_to_change();
  undo_.push_back([&weights, stored = weights.embedding, parameter = weights.embedding_parameter,
                   tied = weights.tied] {
    weights.embedding = stored;
    weights.embedding_parameter = parameter;
    weights.tied = tied;
  });
  weights.embedding_parameter = module.weight;
  if (module.weight.scalar_type() == at::kFloat && suits_own_kernels(module.weight)) {
    weights.embedding = stored_view(module.weight);
  }
  if (!weights.tied) return;
  if (!config_.keep_tied) {
    weights.tied = false;
    return;
  }
  change(weights.head);
  weights.head.set_parameter(module.weight);
  refresh_.emplace_back([&weights] { weights.head.refresh(); });
}

// What a resident model keeps of a changed up-projection of latents.
void LoraAdapter::renew_latents() {
  for (LayerWeights& layer : decoder_.weights_to_change().layers) {
    if (!layer.attention.latent || !layer.attention.latent->resident_up.defined()) continue;
    LatentWeights& latent = *layer.attention.latent;
    if (!latent.key_value_up.adapter() && !latent.key_value_up.parameter().defined()) continue;
    undo_.push_back([&latent, before = latent.resident_up] { latent.resident_up = before; });
    latent.resident_up =
        trains_ ? at::Tensor()
                : latent.dense_up(decoder_.config().heads, residual_type(decoder_.compute()))
                      .to(decoder_.device());
  }
}

void LoraAdapter::detach() {
  std::for_each(undo_.rbegin(), undo_.rend(), [](const auto& undo) { undo(); });
  undo_.clear();
  refresh_.clear();
}

void LoraAdapter::refresh() {
  const c10::AutoGradMode record(trains_);
  for (const auto& renew : refresh_) renew();
}

std::vector<Parameter> LoraAdapter::parameters() const {
  std::vector<Parameter> parameters;
  for_each_tensor(tensors_, [&](const std::string& name, const at::Tensor& tensor) {
    parameters.push_back({name, tensor});
  });
  return parameters;
}

std::string summary(const LoraTensors& tensors) {
  std::vector<std::string> endings;  // in the order of the first module of each
  std::map<std::string, int> counts;
  for (const AdaptedModule& module : tensors.adapted) {
    const std::string ending = module.name.substr(module.name.rfind('.') + 1);
    if (counts[ending]++ == 0) endings.push_back(ending);
  }
  for (std::string& ending : endings) ending = str_cat(counts[ending], " ", ending);
  std::string text =
      str_cat(tensors.adapted.size(), tensors.adapted.size() == 1 ? " module: " : " modules: ",
              endings.empty() ? "none" : join(endings, ", "));
  std::vector<std::string> saved;
  for (const SavedModule& module : tensors.saved) saved.push_back(module.name);
  if (!saved.empty()) text += "; whole: " + join(saved, ", ");
  return text;
}

OrderedJson adapter_facts(const LoraAdapter& adapter) {
  const LoraTensors& tensors = adapter.tensors();
  std::int64_t weights = 0;
  for_each_tensor(tensors,
                  [&](const std::string&, const at::Tensor& tensor) { weights += tensor.numel(); });
  return {{"kind", "lora"},
          {"fingerprint", fingerprint(tensors)},
          {"rank", adapter.config().rank},
          {"alpha", adapter.config().alpha},
          {"modules", summary(tensors)},
          {"weights", weights}};
}

std::string fingerprint(const LoraTensors& tensors) {
  ContentHash hash;
  for (const AdaptedModule& module : tensors.adapted) hash.add(module.scale);
  for_each_tensor(tensors, [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    hash.add(name).add(std::as_bytes(
        std::span(values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel()))));
  });
  return hash.hex();
}

}  // namespace onset
