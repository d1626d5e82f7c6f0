// What `onset rigidity` found, and its forms: JSON and tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/rigidity.h"
#include "onset/massive/scan.h"
#include "prompts.h"
#include "text.h"

namespace onset::app {

struct ModelRigidity {
  std::string path;   // as given on the command line
  OrderedJson model;  // the `model` object
  std::optional<std::int64_t> bos;
  std::vector<EncodedPrompt> prompts;  // all of them
  ScanResult scan;
  RigidityTokens named;
  std::vector<std::size_t> compared;  // indices of the prompts that `result` compares
  RigidityResult result;
};

// Everything but `run`: the fields that docs/json.md lists.
[[nodiscard]] OrderedJson rigidity_json(const ModelRigidity& rigidity);
// Two tables, of the token and of the baseline, and a verdict in words; 80 columns wide.
[[nodiscard]] std::string rigidity_text(const ModelRigidity& rigidity, const TextStyle& style);

}  // namespace onset::app
