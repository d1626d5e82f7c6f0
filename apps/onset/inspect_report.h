// What `onset inspect` found, and its two forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect_verify.h"
#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset::app {

struct TypeRow {
  std::string name;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

// Bytes; as doubles, since a configuration may claim any size.
struct MemoryNeed {
  double stored = 0;   // all tensors as they lie on disk
  double float32 = 0;  // all tensors decoded
  // The largest layer as it is stored and decoded; 0 where no tensor has a layer.
  double largest_layer_stored = 0;
  double largest_layer = 0;
  double largest_matrix = 0;  // the largest of a layer's tensors decoded
  // For 1,000 tokens; 0 where the configuration is not known. Activations: the residual stream
  // and its norms, q, k, v, and the FFN's gate, up and product, without attention scores.
  double activations_per_1k = 0;
  double kv_cache_per_1k = 0;
};

struct InspectReport {
  std::optional<Checkpoint> checkpoint;  // nothing for a tokenizer alone
  std::string weights_problem;           // why there are no weights
  std::string architecture;
  std::optional<ModelConfig> config;
  std::string config_problem;  // why there is no config
  std::optional<Tokenizer> tokenizer;
  std::string tokenizer_problem;  // why there is no tokenizer
  std::int64_t parameters = 0;
  std::optional<std::int64_t>
      layers_in_files;  // of the model's blocks; nothing where none is named
  std::vector<TypeRow> types;
  MemoryNeed memory;
  bool list_tensors = false;
  std::optional<Verification> verification;
};

// Where the configuration and the tensors speak of different numbers of layers: a sentence.
[[nodiscard]] std::string layers_problem(const InspectReport& report);
[[nodiscard]] OrderedJson inspect_json(const InspectReport& report, OrderedJson run);
// For people, 80 columns.
[[nodiscard]] std::string inspect_text(const InspectReport& report, const std::string& model);

}  // namespace onset::app
