// The request fields that /v1/completions and /v1/chat/completions have in common. Torch-free.
#pragma once

#include <cstdint>
#include <string>

#include "onset/generate/generator.h"
#include "onset/serve/fields.h"
#include "onset/serve/mask_field.h"
#include "onset/serve/served_model.h"

namespace onset {

struct GenerationFields {
  GenerationRequest request;  // without ids
  bool stream = false;
  bool include_usage = false;  // stream_options
  ChosenMask mask;
};

// model, stream, stream_options, n, seed, stop, temperature, top_p, top_k, min_p, penalties,
// logit_bias, ignore_eos, stop_token_ids, skip_special_tokens, wemask; and what has no effect here.
// Throws ApiErrors: 404 for another model, 400 for the rest.
[[nodiscard]] GenerationFields read_generation_fields(Fields& fields, const ServedModel& served,
                                                      MaskChooser& masks);

// Refuses a prompt that leaves no room in the context. `param`: the field it came from.
void check_prompt(const ServedModel& served, const GenerationRequest& request,
                  const std::string& param);

// How many alternatives a token a request may ask for.
inline constexpr std::int64_t most_logprobs = 20;

}  // namespace onset
