#include "onset/train/adapt.h"

#include <utility>

#include "onset/train/peft.h"

namespace onset {

void adapt(Model& model, const std::filesystem::path& folder, const Log& log) {
  PeftAdapter read = read_peft(model.decoder_to_change(), folder, log);
  const LoraAdapter adapter(model.decoder_to_change(), std::move(read.config),
                            std::move(read.tensors), /*trains=*/false);
  model.set_adaptation(adapter_facts(adapter));
}

}  // namespace onset
