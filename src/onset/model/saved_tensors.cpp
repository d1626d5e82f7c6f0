#include "onset/model/saved_tensors.h"

#include <ATen/ATen.h>

#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/model/decoder.h"
#include "onset/model/families.h"
#include "onset/model/modules.h"
#include "onset/model/parameters.h"
#include "onset/model/saved_values.h"
#include "onset/model/tensor_finder.h"

namespace onset {
namespace {

bool is_plain_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16 || type == DType::f64;
}

// Which weights of an FP8 file are scaled by the tensor of this name, without ".weight".
std::optional<std::string> scaled_module(const std::string& name) {
  for (const char* suffix : {".weight_scale_inv", ".weight_scale"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - std::string(suffix).size());
  }
  return std::nullopt;
}

class Collector {
 public:
  Collector(Model& model, const SaveOptions& options)
      : decoder_(model.decoder_to_change()),
        checkpoint_(model.checkpoint()),
        options_(options),
        gguf_(checkpoint_.format() == CheckpointFormat::gguf) {}

  SavedTensors collect() {
    add_embedding();
    for (const LinearModule& module : linear_modules(decoder_)) {
      if (module.role == ModuleRole::head) {
        add_head(module);
      } else {
        add_linear(module);
      }
    }
    for (const NormModule& module : norm_modules(decoder_)) add_gain(module);
    if (gguf_) {
      add_of_gguf();
    } else {
      add_unused();
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] const ModelWeights& weights() const { return decoder_.weights(); }
  [[nodiscard]] const ModelConfig& config() const { return decoder_.config(); }

  // As the file is to call it. A base that was saved without its head has no "model.", and
  // transformers knows the parts of Mixtral's mixtures by their old names alone.
  [[nodiscard]] std::string file_name(const std::string& module) const {
    std::string name = module;
    if (!gguf_ && weights().prefix.empty() && name.starts_with("model.")) name = name.substr(6);
    if (config().architecture != "mixtral") return name;
    for (const auto& [common, mixtral] :
         {std::pair{".mlp.", ".block_sparse_moe."}, std::pair{".gate_proj", ".w1"},
          std::pair{".up_proj", ".w3"}, std::pair{".down_proj", ".w2"}}) {
      if (const auto at = name.find(common); at != std::string::npos) {
        name.replace(at, std::string(common).size(), mixtral);
      }
    }
    return name;
  }

  [[nodiscard]] DType saved_type(const std::string& base_name) const {
    if (options_.dtype) return *options_.dtype;
    const TensorInfo* base = gguf_ ? nullptr : checkpoint_.find(base_name);
    if (base == nullptr) return DType::f32;
    if (is_fp8(base->dtype)) return DType::bf16;
    return is_plain_float(base->dtype) ? base->dtype : DType::f32;
  }

  void add(std::string name, DType dtype, std::vector<std::int64_t> shape,
           std::function<at::Tensor()> make) {
    result_.tensors.push_back({std::move(name), dtype, std::move(shape), std::move(make)});
  }

  void add_embedding() {
    const ModelWeights& model = weights();
    const std::string base = gguf_ ? "token_embd.weight" : model.prefix + "embed_tokens.weight";
    used_.insert(base);
    const DType type = saved_type(base);
    add(file_name(embedding_module(decoder_)) + ".weight", type,
        {config().vocabulary, config().hidden},
        [&model, type] { return embedding_values(model, type); });
  }

  // A head that was trained, or has an adapter, may have become another than the embedding.
  void add_head(const LinearModule& module) {
    const Linear& head = *module.parts.front();
    result_.tied = (weights().tied || config().tied_embeddings) && head_is_embedding(weights());
    mark_used(head);
    if (!result_.tied) add_weight(module);
  }

  static std::string weight_name(const TensorOrigin& origin) {
    return origin.expert >= 0 ? origin.name : origin.name + ".weight";
  }

  void mark_used(const Linear& linear) {
    const TensorOrigin& origin = linear.origin();
    used_.insert(weight_name(origin));
    used_.insert(origin.name + ".bias");
  }

  void add_linear(const LinearModule& module) {
    for (const Linear* part : module.parts) mark_used(*part);
    add_weight(module);
    if (module.parts.front()->bias().defined()) add_bias(module);
  }

  void add_weight(const LinearModule& module) {
    const DType type = saved_type(weight_name(module.parts.front()->origin()));
    add(file_name(module.name) + ".weight", type, {module.out_features(), module.in_features()},
        [parts = module.parts, stays = stays_as_stored(module, type), type] {
          return stays ? view_of_bytes(parts.front()->stored().bytes) : joined_weights(parts, type);
        });
  }

  [[nodiscard]] bool stays_as_stored(const LinearModule& module, DType type) const {
    const Linear& linear = *module.parts.front();
    // A GGUF file may hold rows in another order.
    return !gguf_ && module.parts.size() == 1 && !linear.parameter().defined() &&
           !linear.adapter() && linear.stored().dtype == type && !linear.stored().scales;
  }

  void add_bias(const LinearModule& module) {
    const DType type = saved_type(module.parts.front()->origin().name + ".bias");
    add(file_name(module.name) + ".bias", type, {module.out_features()},
        [parts = module.parts, type] { return joined_biases(parts, type); });
  }

  void add_gain(const NormModule& module) {
    const std::string name = file_name(module.name) + ".weight";
    if (!gguf_) used_.insert(name);
    const DType type = saved_type(name);
    add(name, type, {module.gain->numel()}, [values = stored_gain(module, name), type] {
      return values.to(scalar_type_of(type)).contiguous();
    });
  }

  // The values that the family's files hold for the gain.
  [[nodiscard]] at::Tensor stored_gain(const NormModule& module, const std::string& name) const {
    const at::Tensor gain = module.gain->detach();
    if (options_.parameters != nullptr) {
      const at::Tensor trained = options_.parameters->stored_gain(*module.gain);
      if (trained.defined()) return trained.detach();
    }
    const Family* family = family_of_hf(config().architecture);
    if (family == nullptr || !family->gemma) return gain;
    // w + 1 - 1 is not always w: what was not changed is written as it was.
    const TensorInfo* base = gguf_ ? nullptr : checkpoint_.find(name);
    if (base != nullptr) {
      const at::Tensor stored =
          expand({checkpoint_.data(*base), base->dtype, 1, base->elements()}, at::kFloat).view(-1);
      if (at::equal(stored.to(gain.scalar_type()).add(1.0), gain)) return stored;
    }
    return gain.sub(1.0);
  }

  // What GGUF keeps otherwise: the two halves of latent attention's up-projection, and the
  // correction biases of routers.
  void add_of_gguf() {
    for (std::size_t l = 0; l < weights().layers.size(); ++l) {
      const LayerWeights& layer = weights().layers[l];
      const std::string prefix = str_cat("model.layers.", l, ".");
      const auto name = [&](TensorNames names) { return str_cat(prefix, names.hugging_face); };
      refuse_odd_biases(layer, l);
      if (layer.attention.latent && !layer.attention.latent->key_up.empty()) {
        const LatentWeights& latent = *layer.attention.latent;
        const std::int64_t heads = config().heads;
        const DType type = saved_type("");
        add(name(tensor_names::kv_up) + ".weight", type,
            {heads * (config().head_dim - config().latent.rope_dim + config().value_dim),
             config().latent.kv_rank},
            [&latent, heads, type] {
              return latent.dense_up(heads, at::kFloat).flatten(0, 1).to(scalar_type_of(type));
            });
      }
      if (layer.mixture && layer.mixture->correction_bias.defined()) {
        const at::Tensor bias = layer.mixture->correction_bias;
        add(name(tensor_names::router_bias) + ".e_score_correction_bias", DType::f32,
            {bias.numel()}, [bias] { return bias.to(at::kFloat).contiguous(); });
      }
    }
  }

  // config.json has one flag for the biases of attention, which GGUF's tensors may not follow.
  void refuse_odd_biases(const LayerWeights& layer, std::size_t index) const {
    const AttentionWeights& attention = layer.attention;
    const bool out = attention.o.bias().defined();
    const Family* family = family_of_hf(config().architecture);
    const bool expected = out || (family != nullptr && family->qkv_bias);
    const bool same = attention.latent || (attention.q.bias().defined() == expected &&
                                           attention.k.bias().defined() == expected &&
                                           attention.v.bias().defined() == expected);
    require_input(same, checkpoint_.path().string(), ": layer ", index, " has biases of q, k, v ",
                  out ? "missing" : "and none of o", ", which a config.json of ",
                  config().architecture, " cannot say");
  }

  // Correction biases, layers that predict further tokens, towers for images.
  void add_unused() {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (used_.contains(tensor.name) || scales_fp8(tensor.name)) continue;
      if (is_fp8(tensor.dtype) && tensor.shape.size() == 2 && tensor.name.ends_with(".weight")) {
        add_unused_fp8(tensor);
        continue;
      }
      add(tensor.name, tensor.dtype, tensor.shape,
          [checkpoint = &checkpoint_, &tensor] { return view_of_bytes(checkpoint->data(tensor)); });
    }
  }

  // Is it a table of scales, which means nothing without its FP8 weights?
  [[nodiscard]] bool scales_fp8(const std::string& name) const {
    const auto module = scaled_module(name);
    const TensorInfo* weight = module ? checkpoint_.find(*module + ".weight") : nullptr;
    return weight != nullptr && is_fp8(weight->dtype);
  }

  void add_unused_fp8(const TensorInfo& tensor) {
    const DType type = saved_type(tensor.name);
    add(tensor.name, type, tensor.shape, [checkpoint = &checkpoint_, &tensor, type] {
      TensorFinder finder(*checkpoint, Compute::f32);
      const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
      return expand(finder.matrix(module, tensor.shape[0], tensor.shape[1]), at::kFloat)
          .to(scalar_type_of(type));
    });
  }

  Decoder& decoder_;
  const Checkpoint& checkpoint_;
  const SaveOptions& options_;
  bool gguf_;
  std::set<std::string, std::less<>> used_;
  SavedTensors result_;
};

}  // namespace

std::int64_t SavedTensor::bytes() const {
  const DTypeInfo& info = dtype_info(dtype);
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements / info.block_values * info.block_bytes;
}

SavedTensors saved_tensors(Model& model, const SaveOptions& options) {
  return Collector(model, options).collect();
}

}  // namespace onset
