// A model that is open and ready to run. Torch-free: programs that only hand a model from one call
// to the next need no torch headers; the forward pass itself is decoder.h.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "onset/base/json.h"
#include "onset/base/log.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/model/device.h"

namespace onset {

class Decoder;

// How products are computed. The residual stream and the norms are float32 in f32 and bf16, and
// float64 in f64. There is no float16: massive activations overflow it (its largest number is
// 65504).
enum class Compute {
  f32,   // weights converted to float32, products in float32
  bf16,  // inputs and weights rounded to bfloat16, sums in float32
  f64,   // everything in float64; for tests
};

// "f32", "bf16", "f64"; throws a usage error for others, for f16 with the reason.
[[nodiscard]] Compute parse_compute(std::string_view name);
[[nodiscard]] std::string_view compute_name(Compute compute);

enum class Residency {
  // Weights are read from the mapped file when a layer needs them and dropped behind: memory is
  // about one layer and the activations. For one pass over the model.
  streamed,
  // Pages stay mapped, and what the computation needs converted (bf16, f64) is kept.
  resident,
};

struct ModelOptions {
  Compute compute = Compute::f32;
  Residency residency = Residency::streamed;
  // On another device than the CPU weights are expanded to the type of the products as they are
  // brought there: all at once where the model is resident, else each when it is needed.
  Device device = {};
};

class Model {
 public:
  // Throws an input error naming the file and the tensor or key, and what require_device() throws.
  // Warnings go to the log.
  static Model open(const std::filesystem::path& path, const ModelOptions& options = {},
                    const Log& log = {});

  [[nodiscard]] const ModelConfig& config() const;
  [[nodiscard]] const Checkpoint& checkpoint() const;
  [[nodiscard]] const ModelOptions& options() const;
  [[nodiscard]] const Decoder& decoder() const;
  // For those who train or adapt the model: copies of this object share what is changed.
  [[nodiscard]] Decoder& decoder_to_change();

  // What was put on the model after it was opened, for results and caches: an object with a
  // "fingerprint" of it; null where nothing was. Copies share it.
  [[nodiscard]] const OrderedJson& adaptation() const;
  void set_adaptation(OrderedJson facts);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace onset
