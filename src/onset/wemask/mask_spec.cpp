#include "onset/wemask/mask_spec.h"

namespace onset {
namespace {

std::string_view name_in_gguf(std::string_view architecture) {
  return architecture == "mistral" ? "llama" : architecture;
}

}  // namespace

std::string_view name_of(MaskCriterion criterion) {
  switch (criterion) {
    case MaskCriterion::activation:
      return "activation";
    case MaskCriterion::magnitude:
      return "magnitude";
    case MaskCriterion::random:
      return "random";
    case MaskCriterion::lowest:
      return "lowest";
    case MaskCriterion::given:
      return "given";
    case MaskCriterion::weight:
      break;
  }
  return "weight";
}

std::string_view name_of(MaskPlacement placement) {
  return placement == MaskPlacement::pre_norm ? "pre_norm" : "post_norm";
}

std::string_view name_of(MaskTokens tokens) {
  switch (tokens) {
    case MaskTokens::massive:
      return "massive";
    case MaskTokens::positions:
      return "positions";
    case MaskTokens::first:
      break;
  }
  return "first";
}

bool ModelFingerprint::same_shape(const ModelFingerprint& other) const {
  return name_in_gguf(architecture) == name_in_gguf(other.architecture) && layers == other.layers &&
         hidden == other.hidden && heads == other.heads && kv_heads == other.kv_heads &&
         head_dim == other.head_dim;
}

}  // namespace onset
