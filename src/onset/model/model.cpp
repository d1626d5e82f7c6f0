#include "onset/model/model.h"

#include <utility>

#include "onset/base/error.h"
#include "onset/model/decoder.h"

namespace onset {

struct Model::Impl {
  Checkpoint checkpoint;
  ModelConfig config;
  ModelOptions options;
  Decoder decoder;
  OrderedJson adaptation;

  Impl(Checkpoint opened, const ModelOptions& chosen, const Log& log)
      : checkpoint(std::move(opened)),
        config(read_config(checkpoint)),
        options(chosen),
        decoder(checkpoint, config, chosen, log) {}
};

Compute parse_compute(std::string_view name) {
  if (name == "f32") return Compute::f32;
  if (name == "bf16") return Compute::bf16;
  if (name == "f64") return Compute::f64;
  if (name == "f16") {
    throw usage_error(
        "compute f16 is refused: massive activations overflow float16, whose largest number is "
        "65504",
        "use bf16, which has float32's range");
  }
  throw usage_error(str_cat("compute \"", name, "\" is not known"), "use f32, bf16 or f64");
}

std::string_view compute_name(Compute compute) {
  switch (compute) {
    case Compute::bf16:
      return "bf16";
    case Compute::f64:
      return "f64";
    case Compute::f32:
      break;
  }
  return "f32";
}

Model Model::open(const std::filesystem::path& path, const ModelOptions& options, const Log& log) {
  require_device(options.device);
  Model model;
  model.impl_ = std::make_shared<Impl>(Checkpoint::open(path), options, log);
  return model;
}

const ModelConfig& Model::config() const { return impl_->config; }
const Checkpoint& Model::checkpoint() const { return impl_->checkpoint; }
const ModelOptions& Model::options() const { return impl_->options; }
const Decoder& Model::decoder() const { return impl_->decoder; }
Decoder& Model::decoder_to_change() { return impl_->decoder; }
const OrderedJson& Model::adaptation() const { return impl_->adaptation; }
void Model::set_adaptation(OrderedJson facts) { impl_->adaptation = std::move(facts); }

}  // namespace onset
