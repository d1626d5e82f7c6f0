// A request for text, read: what the generator is asked, and what the answer must hold. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/serve/generation_fields.h"

namespace onset {

struct CompletionCall {
  GenerationFields fields;
  std::vector<GenerationRequest> requests;  // one a prompt
  // Of each prompt: the text that `echo` gives back.
  std::vector<std::string> prompt_texts;
  bool chat = false;
  bool echo = false;
};

// POST /v1/completions. `prompt`: a string, an array of strings, ids, or an array of arrays of ids.
[[nodiscard]] CompletionCall read_completion(const Json& body, const ServedModel& served,
                                             MaskChooser& masks);
// POST /v1/chat/completions.
[[nodiscard]] CompletionCall read_chat(const Json& body, const ServedModel& served,
                                       MaskChooser& masks);

// An array of the model's token ids, from the field `param`.
[[nodiscard]] std::vector<std::int64_t> read_ids(const Json& array, const ServedModel& served,
                                                 const std::string& param);
// Messages as the chat formats take them: parts of text joined, a developer's turn as the system's.
// Throws ApiErrors for what is no text.
[[nodiscard]] OrderedJson read_messages(const Json& messages);
// The field chat_template_kwargs.
[[nodiscard]] ChatOptions read_chat_options(Fields& fields);

}  // namespace onset
