// LoRA adapters (Hu et al. 2106.09685) on a model: y = W x + s B A x, with A and B trained and W as
// the file stores it, quantised too; and modules that are trained whole beside them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/model/modules.h"
#include "onset/model/parameter.h"
#include "onset/train/lora_config.h"

namespace onset {

// A linear module with an adapter; one pair of matrices also where the model has several layers
// that share the module's matrix.
struct AdaptedModule {
  std::string name;  // as transformers has it: "model.layers.0.self_attn.q_proj"
  at::Tensor down;   // A [r, in]
  at::Tensor up;     // B [out, r]
  double scale = 1.0;

  [[nodiscard]] std::int64_t rank() const { return down.size(0); }
};

// A module that is replaced whole: a linear one, a norm, or the embedding.
struct SavedModule {
  std::string name;
  at::Tensor weight;  // as Hugging Face files store it: gains may be w - 1
  at::Tensor bias;    // undefined where the module has none
};

// All tensors of an adapter, of the type of the model's residual stream.
struct LoraTensors {
  std::vector<AdaptedModule> adapted;
  std::vector<SavedModule> saved;
};

// The modules that the configuration chooses in this model, A drawn from the uniform distribution
// within sqrt(1 / in) (PEFT's Kaiming with a = sqrt(5)) by `seed` and the module's name, B zero,
// saved modules as the model has them. Usage errors, with the nearest names, for names and patterns
// that fit no module; for an embedding, which takes no adapter here.
[[nodiscard]] LoraTensors new_lora(Decoder& decoder, const LoraConfig& config, std::uint64_t seed);
// Numbers in the A and B of all of them, before they are made; as a double, for a configuration may
// ask for more than any count holds.
[[nodiscard]] double new_lora_weights(Decoder& decoder, const LoraConfig& config);

// An adapter on a model. Copies of a Model share its decoder, so all of them have it.
class LoraAdapter {
 public:
  // Attaches. The tensors must fit the model's modules (std::logic_error else). `trains`: they
  // become leaves of autograd. Not in InferenceMode. The decoder must outlive the object; it keeps
  // the adapter when the object goes.
  LoraAdapter(Decoder& decoder, LoraConfig config, LoraTensors tensors, bool trains);

  // The model as it was before; attach() brings the adapter back.
  void detach();
  void attach();

  [[nodiscard]] const LoraConfig& config() const { return config_; }
  [[nodiscard]] const LoraTensors& tensors() const { return tensors_; }
  // The tensors under their names in PEFT's files:
  // "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
  [[nodiscard]] std::vector<Parameter> parameters() const;
  // Before each recorded pass and after each change of the tensors, as Parameters::refresh().
  void refresh();
  // What the dropout of all modules is drawn from; a trainer sets it for each micro-batch.
  [[nodiscard]] const std::shared_ptr<DropoutState>& dropout() const { return dropping_; }
  [[nodiscard]] Decoder& decoder() const { return decoder_; }

 private:
  void attach(const AdaptedModule& module, LinearModule& target, std::uint64_t stream);
  void attach(const SavedModule& module, LinearModule& target);
  void attach_norm(const SavedModule& module, at::Tensor& gain);
  void attach_embedding(const SavedModule& module);
  void change(Linear& linear);
  void renew_latents();

  Decoder& decoder_;
  LoraConfig config_;
  LoraTensors tensors_;
  bool trains_;
  std::shared_ptr<DropoutState> dropping_ = std::make_shared<DropoutState>();
  std::vector<std::function<void()>> undo_;     // empty: detached
  std::vector<std::function<void()>> refresh_;  // what refresh() does
};

// The weight of a saved module of the model, as Hugging Face files store it.
[[nodiscard]] std::vector<SavedModule> saved_modules(Decoder& decoder,
                                                     const std::vector<std::string>& names);

// What results say of an adapter: kind, fingerprint, rank, alpha, modules in words, modules that
// are replaced whole, and how many weights it has.
[[nodiscard]] OrderedJson adapter_facts(const LoraAdapter& adapter);

// "210 modules: 30 q_proj, 30 k_proj; whole: lm_head", for people.
[[nodiscard]] std::string summary(const LoraTensors& tensors);
// 32 hexadecimal digits that name the content, for caches and results.
[[nodiscard]] std::string fingerprint(const LoraTensors& tensors);

}  // namespace onset
