// How tokens are chosen and when an answer ends: the options that generate and chat share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli.h"
#include "onset/base/json.h"
#include "onset/generate/generator.h"
#include "onset/model/model.h"

namespace onset::app {

struct SamplingVerbOptions {
  SamplingOptions sampling = {.temperature = 0};  // a verb may set another default
  std::int64_t max_tokens = 256;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  void declare(CommandLine& line);
  // Throws a usage error that names the option. Call it before a model is opened.
  void check() const;
  // A request with these settings, and the seed of the run.
  [[nodiscard]] GenerationRequest request(std::vector<std::int64_t> ids, std::int64_t seed) const;
};

// "greedy", "temperature 0.8, top-k 40": for people.
[[nodiscard]] std::string sampling_words(const SamplingOptions& sampling);
// The settings, and max_tokens, stop and ignore_eos.
[[nodiscard]] OrderedJson sampling_json(const SamplingVerbOptions& options);

}  // namespace onset::app
