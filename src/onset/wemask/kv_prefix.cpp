#include "onset/wemask/kv_prefix.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <vector>

#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

// Caches live side by side: of a large model one takes some MB.
constexpr std::size_t prefixes_per_pass = 16;

// From the two halves, as the forward pass turns them, to dims that turn together side by side, as
// the projection gives them.
at::Tensor side_by_side(const at::Tensor& halves) {
  const std::int64_t half = halves.size(-1) / 2;
  return halves.reshape({-1, 2, half}).transpose(-1, -2).flatten(-2);
}

class PrefixFile {
 public:
  explicit PrefixFile(const std::filesystem::path& path) : writer_(path) {}

  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kCPU, at::kFloat).contiguous();
    const auto size = static_cast<std::size_t>(flat.nbytes());
    writer_.add(name, DType::f32, flat.sizes(),
                {static_cast<const std::byte*>(flat.const_data_ptr()), size});
    ++summary_.tensors;
    summary_.bytes += size;
  }
  void describe(const std::string& key, const std::string& value) {
    writer_.set_metadata(key, value);
  }
  KvPrefixSummary commit() {
    writer_.commit();
    return summary_;
  }

 private:
  SafetensorsWriter writer_;
  KvPrefixSummary summary_;
};

void add_layer(PrefixFile& file, const ModelConfig& config, std::int64_t layer,
               const KvCache::View& kept) {
  const std::string name = str_cat("layers.", layer, ".");
  if (!config.has_latent_attention()) {
    file.add(name + "key", kept.keys);
    file.add(name + "value", kept.values);
    return;
  }
  const LatentConfig& sizes = config.latent;
  const at::Tensor latents = kept.keys.squeeze(0);  // [1, kv_rank + rope_dim]
  const at::Tensor turned = latents.narrow(1, sizes.kv_rank, sizes.rope_dim);
  file.add(name + "kv_latent", latents.narrow(1, 0, sizes.kv_rank));
  file.add(name + "k_rope", config.interleaved_rope ? side_by_side(turned) : turned);
}

KvPrefixSummary write_one(const Model& model, const MaskSpec& spec, const KvPrefix& prefix,
                          const KvCache& cache) {
  const ModelConfig& config = model.config();
  PrefixFile file(prefix.path);
  for (const auto& [key, value] : prefix.metadata) file.describe(key, value);
  file.describe("format", "onset.kv_prefix.1");
  file.describe("token_id", str_cat(prefix.token));
  file.describe("layout", config.has_latent_attention() ? "latent" : "heads");
  file.describe("model", fingerprint_json(fingerprint(model)).dump());
  file.describe("wemask", mask_json(spec).dump());
  for (std::int64_t layer = 0; layer < config.layer_count(); ++layer) {
    add_layer(file, config, layer, cache.kept(layer));
  }
  return file.commit();
}

// Why not; empty where it does.
std::string obstacle(const MaskSpec& spec) {
  if (spec.official_compat) {
    return "the released code masks the first token of every chunk, decoded tokens too";
  }
  if (spec.tokens == MaskTokens::massive) {
    return "it masks every token that is massive, wherever that stands";
  }
  const bool first_alone = std::all_of(spec.positions.begin(), spec.positions.end(),
                                       [](std::int64_t position) { return position == 0; });
  if (spec.tokens == MaskTokens::positions && !first_alone) {
    return "it masks positions behind the first, whose states depend on the text before them";
  }
  return {};
}

}  // namespace

void check_kv_prefix(const MaskSpec& spec) {
  if (const std::string reason = obstacle(spec); !reason.empty()) {
    throw usage_error("a prefix of one token does not carry this mask: " + reason,
                      "make one with --token first");
  }
}

KvPrefixSummary write_kv_prefixes(const Model& model, const MaskSpec& spec,
                                  std::span<const KvPrefix> prefixes, const Log& log) {
  check_kv_prefix(spec);
  for (const KvPrefix& prefix : prefixes) {
    if (prefix.token >= 0 && prefix.token < model.config().vocabulary) continue;
    throw usage_error(str_cat("token id ", prefix.token, " is outside the vocabulary of ",
                              model.config().vocabulary));
  }
  const c10::InferenceMode inference;
  Hooks hooks(model.config().layer_count());
  add_mask(hooks, spec, model);
  KvPrefixSummary summary;
  for (std::size_t begin = 0; begin < prefixes.size(); begin += prefixes_per_pass) {
    const auto part = prefixes.subspan(begin, std::min(prefixes_per_pass, prefixes.size() - begin));
    std::vector<KvCache> caches(part.size(), model.decoder().new_cache());
    std::vector<SequenceInput> batch;
    for (std::size_t i = 0; i < part.size(); ++i) {
      batch.push_back({.ids = {part[i].token}, .cache = &caches[i]});
    }
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
    for (std::size_t i = 0; i < part.size(); ++i) {
      summary = write_one(model, spec, part[i], caches[i]);
    }
    log.step("prefixes", static_cast<std::int64_t>(begin + part.size()),
             static_cast<std::int64_t>(prefixes.size()));
  }
  return summary;
}

}  // namespace onset
