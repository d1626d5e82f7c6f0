// Continuous batching: requests join and leave a running batch between forward passes. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/generate/sampling.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;
class Tokenizer;

struct GenerationRequest {
  std::vector<std::int64_t> ids;  // the prompt, at least one token
  // How many tokens at most; 0 for the log-probabilities of the prompt alone.
  std::int64_t max_new_tokens = 256;
  std::int64_t samples = 1;  // continuations; the prompt is computed once for all of them
  SamplingOptions sampling = {};
  // The request's number in the random draws (DrawKey); two requests with the same seed and number
  // draw the same numbers.
  std::uint64_t number = 0;
  // Generation ends before any of these; their text is not given out.
  std::vector<std::string> stop = {};
  // Tokens that end generation, beside those of the model.
  std::vector<std::int64_t> stop_ids = {};
  bool ignore_eos = false;        // the model's own end tokens are tokens like others
  bool show_special = false;      // special tokens are part of the text
  bool logprobs = false;          // fill GeneratedToken::top
  std::int64_t top_logprobs = 0;  // alternatives a token, with `logprobs`
  bool prompt_logprobs = false;   // log-probabilities of the prompt's tokens too
  std::shared_ptr<const MaskSpec> mask = nullptr;  // none: the model as it is
};

struct GeneratedToken {
  std::int64_t id = 0;
  double logprob = 0;          // see Draw; NaN for the first token of a prompt
  double sampled_logprob = 0;  // see Draw
  std::vector<TokenLogprob> top = {};
  std::string bytes = {};  // of this token alone; may be part of a character
};

enum class FinishReason {
  stop,       // an end token, which is among the tokens and not in the text, or a stop string
  length,     // max_new_tokens, or the model's context is full
  cancelled,  // by cancel()
  failed,     // an error that concerns this request alone; GenerationUpdate::error says it
};
[[nodiscard]] std::string_view name_of(FinishReason reason);

// What is new of one sample. Text comes in whole characters, and never a part of what may still
// become a stop string; so text follows the tokens with a delay, and all of it has been given when
// `finish` is set.
struct GenerationUpdate {
  std::int64_t sample = 0;
  std::vector<GeneratedToken> tokens = {};
  std::string text = {};
  std::optional<FinishReason> finish = std::nullopt;
  std::string error = {};  // with FinishReason::failed
  // With prompt_logprobs, in the first update of sample 0 alone.
  std::vector<GeneratedToken> prompt = {};
};

// Called from step(), on its thread, in the order of generation. Must not call the generator,
// except for cancel(). An exception that it throws leaves step().
using OnUpdate = std::function<void(const GenerationUpdate&)>;

struct GeneratorOptions {
  std::int64_t max_rows = 32;         // sequences that are generated at a time
  std::int64_t prefill_tokens = 512;  // prompt tokens computed in one pass beside the running rows
  std::int64_t context = 0;           // the longest sequence; 0: what the model was trained for
  std::int64_t prefix_cache_bytes = 256 << 20;  // keys and values kept of finished sequences
};

struct GeneratorCounts {
  std::int64_t waiting = 0;
  std::int64_t running = 0;        // samples in the batch
  std::int64_t prompt_tokens = 0;  // since the start: computed,
  std::int64_t reused_tokens = 0;  // and taken from the prefix cache
  std::int64_t generated_tokens = 0;
  std::int64_t passes = 0;
};

// Not safe for several threads: one thread submits, cancels and steps. Logits of a row do not
// depend on what it is batched with beyond the rounding of products (below 1e-4), so tokens differ
// between batch sizes only where a draw or the two most likely tokens are that close.
class Generator {
 public:
  using RequestId = std::uint64_t;

  // The model and the tokenizer must outlive it. Without a tokenizer no text is made, and stop
  // strings are a usage error.
  Generator(const Model& model, const Tokenizer* tokenizer, const GeneratorOptions& options = {});
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Checks the request and puts it into the queue. Throws a usage error that names what is wrong:
  // no token, a token outside the vocabulary, a prompt as long as the context, a mask for another
  // model, sampling settings out of range.
  RequestId submit(GenerationRequest request, OnUpdate on_update);
  // Ends it; its samples get a last update with FinishReason::cancelled from the next step().
  // Unknown ids are ignored.
  void cancel(RequestId id);
  // One forward pass: waiting requests join while there is room, prompts are computed in chunks,
  // and every sample whose prompt is done gets a token. False when there was nothing to do. Logits
  // that are NaN and a pass for which memory is short fail the requests concerned
  // (FinishReason::failed) and no others; the generator can be used on.
  bool step();

  [[nodiscard]] GeneratorCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Completion {
  std::vector<GeneratedToken> tokens;
  std::vector<GeneratedToken> prompt;  // with prompt_logprobs
  std::string text;
  FinishReason finish = FinishReason::stop;
  std::string error;  // with FinishReason::failed
};

// Runs the requests to their ends: [request][sample].
[[nodiscard]] std::vector<std::vector<Completion>> generate_all(
    Generator& generator, std::span<const GenerationRequest> requests);

}  // namespace onset
