#include "model_json.h"

namespace onset::app {

std::string format_name(const Checkpoint& checkpoint) {
  return checkpoint.format() == CheckpointFormat::gguf ? "gguf" : "safetensors";
}

OrderedJson model_json(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto obstacle = wemask_obstacle(config);
  return {{"architecture", config.architecture},
          {"format", format_name(checkpoint)},
          {"layers", config.layer_count()},
          {"hidden", config.hidden},
          {"heads", config.heads},
          {"kv_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"ffn", config.ffn},
          {"vocabulary", config.vocabulary},
          {"context", config.context > 0 ? OrderedJson(config.context) : OrderedJson(nullptr)},
          {"wemask_obstacle", obstacle ? OrderedJson(*obstacle) : OrderedJson(nullptr)}};
}

}  // namespace onset::app
