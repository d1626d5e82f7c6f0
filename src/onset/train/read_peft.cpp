#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/kernels/stored_matrix.h"
#include "onset/model/decoder_pass.h"
#include "onset/train/peft.h"
#include "onset/train/peft_config.h"
#include "onset/train/peft_names.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

// A and B under the name that the file gives their module.
struct Pair {
  const TensorInfo* down = nullptr;
  const TensorInfo* up = nullptr;
};

class Reader {
 public:
  Reader(Decoder& decoder, const fs::path& folder, const Log& log)
      : decoder_(decoder),
        log_(log),
        path_(folder / "adapter_model.safetensors"),
        type_(residual_type(decoder.compute())),
        linears_(linear_modules(decoder)) {
    adapter_.config = read_peft_config(folder);
    if (!fs::exists(path_) && fs::exists(folder / "adapter_model.bin")) {
      throw input_error(
          str_cat(folder.string(), ": has no adapter_model.safetensors, only adapter_model.bin"),
          "in Python: safetensors.torch.save_file(torch.load(..), 'adapter_model.safetensors')");
    }
    file_ = read_safetensors(path_);
  }

  PeftAdapter read() {
    sort_tensors();
    for (const auto& [module, pair] : pairs_) add(module, pair);
    put_in_model_order();
    add_saved();
    say_missing();
    return std::move(adapter_);
  }

 private:
  void sort_tensors() {
    for (const TensorInfo& info : file_.tensors) {
      const PeftTensorName name = parse_peft_name(info.name);
      switch (name.kind) {
        case PeftTensorKind::lora_a:
          pairs_[name.module].down = &info;
          break;
        case PeftTensorKind::lora_b:
          pairs_[name.module].up = &info;
          break;
        case PeftTensorKind::weight:
          saved_weights_[canonical_module(name.module)] = &info;
          break;
        case PeftTensorKind::bias:
          saved_biases_[canonical_module(name.module)] = &info;
          break;
        case PeftTensorKind::unsupported:
          refuse(info);
      }
    }
    for (const auto& [module, pair] : pairs_) {
      require_input(pair.down != nullptr && pair.up != nullptr, path_.string(), ": module ", module,
                    " has lora_", pair.down == nullptr ? "B" : "A", " without lora_",
                    pair.down == nullptr ? "A" : "B");
    }
  }

  [[noreturn]] void refuse(const TensorInfo& info) const {
    if (info.name.find("lora_embedding_") != std::string::npos) {
      throw input_error(str_cat(path_.string(), ": tensor ", info.name,
                                " adapts the embedding, which is not supported"),
                        "PEFT's merge_and_unload() folds such an adapter into a model of its own");
    }
    throw input_error(
        str_cat(path_.string(), ": tensor ", info.name, " belongs to no plain LoRA adapter"));
  }

  [[nodiscard]] at::Tensor values(const TensorInfo& info) const {
    require_input(converts_to_float32(info.dtype), path_.string(), ": tensor ", info.name,
                  " has type ", dtype_info(info.dtype).name, ", expected a floating-point type");
    const std::int64_t rows = info.shape.empty() ? 1 : info.shape.front();
    const at::Tensor matrix = expand({file_.file.bytes().subspan(info.offset, info.bytes),
                                      info.dtype, rows, rows == 0 ? 0 : info.elements() / rows},
                                     at::kFloat);
    require_input(matrix.isfinite().all().item<bool>(), path_.string(), ": tensor ", info.name,
                  " holds NaN or an infinite number");
    return matrix.view(info.shape).to(type_);
  }

  void check_shape(const TensorInfo& info, const std::vector<std::int64_t>& expected) const {
    if (info.shape == expected) return;
    const std::string& base = adapter_.config.base_model;
    throw input_error(
        str_cat(path_.string(), ": tensor ", info.name, " has shape ", describe_shape(info.shape),
                ", this model needs ", describe_shape(expected)),
        base.empty() ? "the adapter is for another model"
                     : str_cat("the adapter was made for ", quote(base)));
  }

  [[nodiscard]] const LinearModule* find(const std::string& module) const {
    const std::string wanted = canonical_module(module);
    const auto found = std::find_if(linears_.begin(), linears_.end(), [&](const LinearModule& m) {
      return canonical_module(m.name) == wanted;
    });
    return found == linears_.end() ? nullptr : &*found;
  }

  void add(const std::string& module, const Pair& pair) {
    const LinearModule* target = find(module);
    if (target == nullptr) return add_stack(module, pair);
    const std::int64_t rank = rank_of(adapter_.config, module);
    check_shape(*pair.down, {rank, target->in_features()});
    check_shape(*pair.up, {target->out_features(), rank});
    add_pair(target->name, values(*pair.down), values(*pair.up), scale_of(adapter_.config, module));
  }

  void add_pair(const std::string& module, at::Tensor down, at::Tensor up, double scale) {
    require_input(found_.insert(module).second, path_.string(), ": adapts module ", module,
                  " twice");
    adapter_.tensors.adapted.push_back(
        {.name = module, .down = std::move(down), .up = std::move(up), .scale = scale});
  }

  // A stack of experts as one parameter (PEFT's target_parameters): A [E r, in] expert by expert,
  // B [out, r E] with the experts innermost; gate and up of an expert are one matrix. Wrappers of a
  // second parameter stand in the name as "base_layer".
  void add_stack(std::string module, const Pair& pair) {
    const std::string_view wrapper = ".base_layer";
    while (module.ends_with(wrapper)) module.resize(module.size() - wrapper.size());
    const auto expert = [&](std::int64_t e, const char* name) {
      return find(str_cat(module, ".", e, ".", name));
    };
    const bool stack =
        module.ends_with(".experts") && find(canonical_module(module) + ".0.gate_proj") != nullptr;
    if (!stack) throw no_module(module);
    module = canonical_module(module);
    const std::int64_t experts = decoder_.config().mixture.experts;
    const std::int64_t hidden = decoder_.config().hidden;
    const std::int64_t inner = decoder_.config().mixture.ffn;
    const bool down_proj = pair.down->shape.size() == 2 && pair.down->shape[1] == inner &&
                           pair.up->shape.size() == 2 && pair.up->shape[0] == hidden;
    const std::string parameter = module + (down_proj ? ".down_proj" : ".gate_up_proj");
    const std::int64_t rank = rank_of(adapter_.config, parameter);
    check_shape(*pair.down, {rank * experts, down_proj ? inner : hidden});
    check_shape(*pair.up, {down_proj ? hidden : 2 * inner, rank * experts});
    const double scale = scale_of(adapter_.config, parameter);
    const at::Tensor down = values(*pair.down).view({experts, rank, -1});
    const at::Tensor up = values(*pair.up).view({-1, rank, experts}).permute({2, 0, 1});
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto add_rows = [&](const char* name, std::int64_t first, std::int64_t rows) {
        add_pair(expert(e, name)->name, down.select(0, e).clone(),
                 up.select(0, e).narrow(0, first, rows).contiguous(), scale);
      };
      if (down_proj) {
        add_rows("down_proj", 0, hidden);
      } else {
        add_rows("gate_proj", 0, inner);
        add_rows("up_proj", inner, inner);
      }
    }
  }

  [[nodiscard]] Error no_module(const std::string& module) const {
    std::vector<std::string> names;
    for (const LinearModule& linear : linears_) names.push_back(linear.name);
    const std::string& base = adapter_.config.base_model;
    std::string hint = did_you_mean(nearest(module, names));
    if (!base.empty()) {
      hint = str_cat("the adapter was made for ", quote(base), hint.empty() ? "" : "; ", hint);
    }
    return input_error(
        str_cat(path_.string(), ": adapts module ", module, ", which this model does not have"),
        hint);
  }

  void put_in_model_order() {
    std::map<std::string, std::size_t> places;
    for (const LinearModule& module : linears_) places.emplace(module.name, places.size());
    auto& adapted = adapter_.tensors.adapted;
    std::sort(adapted.begin(), adapted.end(),
              [&](const auto& a, const auto& b) { return places.at(a.name) < places.at(b.name); });
  }

  void add_saved() {
    std::vector<std::string> names{embedding_module(decoder_)};
    for (const NormModule& module : norm_modules(decoder_)) names.push_back(module.name);
    for (const LinearModule& module : linears_) names.push_back(module.name);
    std::set<std::string> known;
    for (const std::string& name : names) {
      const std::string key = canonical_module(name);
      known.insert(key);
      const auto weight = saved_weights_.find(key);
      const auto bias = saved_biases_.find(key);
      if (weight == saved_weights_.end()) continue;
      adapter_.tensors.saved.push_back(saved_module(
          name, *weight->second, bias == saved_biases_.end() ? nullptr : bias->second));
    }
    for (const auto* tensors : {&saved_weights_, &saved_biases_}) {
      for (const auto& [key, info] : *tensors) {
        require_input(known.count(key) > 0 && saved_weights_.count(key) > 0, path_.string(),
                      ": tensor ", info->name, " belongs to no module of this model");
      }
    }
  }

  [[nodiscard]] SavedModule saved_module(const std::string& name, const TensorInfo& weight,
                                         const TensorInfo* bias) const {
    std::vector<SavedModule> own = saved_modules(decoder_, {name});
    SavedModule& module = own.front();
    check_shape(weight, module.weight.sizes().vec());
    module.weight = values(weight);
    require_input(module.bias.defined() || bias == nullptr, path_.string(), ": module ", name,
                  " has a bias, which this model does not have");
    if (bias == nullptr) return module;
    check_shape(*bias, module.bias.sizes().vec());
    module.bias = values(*bias);
    return module;
  }

  // PEFT leaves such modules as they are, and so do we.
  void say_missing() const {
    std::int64_t missing = 0;
    std::string first;
    for (const LinearModule& module : linears_) {
      const bool projection = module.role == ModuleRole::projection;
      if (adapter_.config.targets.empty() || !is_target(adapter_.config, module.name, projection) ||
          found_.count(module.name) > 0) {
        continue;
      }
      if (missing++ == 0) first = module.name;
    }
    if (missing == 0) return;
    log_.warning(str_cat(path_.string(), ": holds nothing for ", missing,
                         " modules that adapter_config.json names, such as ", first));
  }

  Decoder& decoder_;
  const Log& log_;
  fs::path path_;
  at::ScalarType type_;
  std::vector<LinearModule> linears_;
  SafetensorsFile file_;
  PeftAdapter adapter_;
  std::map<std::string, Pair> pairs_;
  std::map<std::string, const TensorInfo*> saved_weights_;  // by canonical names
  std::map<std::string, const TensorInfo*> saved_biases_;
  std::set<std::string> found_;
};

}  // namespace

PeftAdapter read_peft(Decoder& decoder, const fs::path& folder, const Log& log) {
  return Reader(decoder, folder, log).read();
}

}  // namespace onset
