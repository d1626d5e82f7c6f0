// A mask of the first token as a file of keys and values. At position 0 a token attends to itself
// alone, so what attention keeps of it depends on its id and the mask only: an engine that takes a
// prefix cache runs WeMask without any code of ours, at no cost. Layout: docs/wemask.md.
// Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "onset/base/log.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

// Throws a usage error, with the reason, for a mask that one token's keys and values do not carry:
// one of other tokens than the first.
void check_kv_prefix(const MaskSpec& spec);

struct KvPrefix {
  std::int64_t token = 0;
  std::filesystem::path path;                        // the file to write
  std::map<std::string, std::string> metadata = {};  // further entries, "piece"
};

struct KvPrefixSummary {
  std::int64_t tensors = 0;  // in one file
  std::uint64_t bytes = 0;   // of tensor data in one file
};

// One safetensors file a token, float32, each appearing whole or not at all:
//   layers.N.key, layers.N.value    [G, 1, K] and [G, 1, V], the key after RoPE at position 0
//   with latent attention           layers.N.kv_latent [1, kv_rank], after its norm, and
//                                   layers.N.k_rope [1, rope_dim] after RoPE, in the order of the
//                                   projection that makes it
// RoPE at position 0 turns nothing; with yarn and longrope it multiplies by the attention factor.
// Metadata: format "onset.kv_prefix.1", token_id, layout ("heads" or "latent"), model (the
// fingerprint) and wemask (the mask) as JSON.
// Throws as check_kv_prefix, and a usage error for a token outside the vocabulary.
KvPrefixSummary write_kv_prefixes(const Model& model, const MaskSpec& spec,
                                  std::span<const KvPrefix> prefixes, const Log& log = {});

}  // namespace onset
