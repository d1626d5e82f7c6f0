#include "onset/train/peft_names.h"

#include <array>
#include <utility>
#include <vector>

#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view peft_prefix = "base_model.model.";

bool take_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

}  // namespace

PeftTensorName parse_peft_name(std::string_view tensor) {
  std::string name(tensor);
  if (name.starts_with(peft_prefix)) name.erase(0, peft_prefix.size());
  // "MODULE.lora_A.weight", in files written by hand "MODULE.lora_A.default.weight".
  for (const auto& [marker, kind] : {std::pair{".lora_A.", PeftTensorKind::lora_a},
                                     std::pair{".lora_B.", PeftTensorKind::lora_b}}) {
    const auto at = name.rfind(marker);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(at);
    const bool weight = rest.ends_with(".weight") && split(rest, '.').size() <= 4;
    return {weight ? kind : PeftTensorKind::unsupported, weight ? name.substr(0, at) : name};
  }
  if (name.find(".lora_") != std::string::npos) return {PeftTensorKind::unsupported, name};
  const std::string whole = name;
  PeftTensorKind kind = PeftTensorKind::unsupported;
  if (take_suffix(name, ".weight")) kind = PeftTensorKind::weight;
  if (kind == PeftTensorKind::unsupported && take_suffix(name, ".bias"))
    kind = PeftTensorKind::bias;
  if (kind == PeftTensorKind::unsupported) return {kind, whole};
  for (const char* wrapper : {".modules_to_save.default", ".modules_to_save", ".base_layer"}) {
    if (take_suffix(name, wrapper)) break;
  }
  return {kind, name};
}

std::string canonical_module(std::string_view module) {
  std::string name(module);
  if (const auto at = name.find("layers."); at != std::string::npos) {
    name.erase(0, at);
  } else {
    // The embedding, the last norm and the head are the only ones outside the layers.
    name = name.substr(name.rfind('.') + 1);
  }
  if (name.find(".block_sparse_moe.") == std::string::npos) return name;
  replace(name, ".block_sparse_moe.", ".mlp.");
  for (const auto& [old_name, new_name] :
       {std::pair{".w1", ".gate_proj"}, std::pair{".w3", ".up_proj"},
        std::pair{".w2", ".down_proj"}}) {
    if (take_suffix(name, old_name)) return name + new_name;
  }
  return name;
}

}  // namespace onset
