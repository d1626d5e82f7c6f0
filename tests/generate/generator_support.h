// What the tests of the generator share: small models, random requests, one request at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "onset/generate/generator.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "support/support.h"

namespace onset::testing {

using Ids = std::vector<std::int64_t>;

inline Model open_fixture(const std::string& name, Compute compute = Compute::f64) {
  return Model::open(onset::testing::data("models/" + name),
                     {.compute = compute, .residency = Residency::resident});
}

inline Ids ids_of(const Completion& completion) {
  Ids ids;
  for (const auto& token : completion.tokens) ids.push_back(token.id);
  return ids;
}

// In a generator of its own, whose prompts are computed whole and that keeps nothing.
inline std::vector<Completion> solo(const Model& model, const GenerationRequest& request) {
  Generator generator(model, nullptr,
                      {.max_rows = 1, .prefill_tokens = 4096, .prefix_cache_bytes = 0});
  return generate_all(generator, std::vector{request}).front();
}

inline std::shared_ptr<const MaskSpec> mask_of(const Model& model, MaskOptions options = {}) {
  if (!options.from_layer) options.from_layer = 1;
  if (!options.k && !options.rate) options.k = 4;
  return std::make_shared<const MaskSpec>(make_mask(model, options));
}

}  // namespace onset::testing
