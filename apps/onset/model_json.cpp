#include "model_json.h"

#include "onset/base/error.h"

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

OrderedJson model_json(const Model& model) {
  OrderedJson json = model_json(model.config(), model.checkpoint());
  json["adapter"] = model.adaptation();
  return json;
}

std::string adapter_words(const OrderedJson& adapter) {
  if (adapter.is_null()) return "";
  constexpr std::size_t digits = 8;
  const auto modules = adapter.at("modules").get<std::string>();
  return str_cat(", LoRA adapter of rank ", adapter.at("rank").dump(), " on ",
                 modules.substr(0, modules.find(':')), " (",
                 adapter.at("fingerprint").get<std::string>().substr(0, digits), ")");
}

}  // namespace onset::app
