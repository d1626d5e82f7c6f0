// A mask as JSON, the content of wemask.json (docs/wemask.md). Torch-free.
#pragma once

#include <filesystem>

#include "onset/base/json.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

[[nodiscard]] OrderedJson mask_json(const MaskSpec& spec);
// The `model` of it.
[[nodiscard]] OrderedJson fingerprint_json(const ModelFingerprint& print);

// Throws an input error that names `where`, the key, what was expected and found: an unknown key or
// value, a layer without its dims, dims outside the model, k = 0.
[[nodiscard]] MaskSpec parse_mask(const Json& json, const std::string& where);
[[nodiscard]] MaskSpec read_mask(const std::filesystem::path& path);

}  // namespace onset
