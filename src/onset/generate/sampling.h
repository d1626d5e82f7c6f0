// Choosing the next token from the logits of one position. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace onset {

// The steps in the order they are taken: on the logits the bias, the repetition penalty, then the
// frequency and presence penalties; temperature; then the limits, each over what the ones before it
// left: top-k, top-p, min-p.
struct SamplingOptions {
  // 0 takes the most likely token, the lowest id on ties; no random number is drawn.
  double temperature = 1.0;
  std::int64_t top_k = 0;  // the k most likely tokens, the lower ids on ties; 0: no limit
  // The smallest set of the most likely tokens whose probabilities sum to at least top_p.
  double top_p = 1.0;
  // Tokens with at least min_p times the probability of the most likely one.
  double min_p = 0.0;
  // Keskar et al. 2019: the logit of a token that is in the prompt or was generated is divided by
  // it where positive and multiplied where negative.
  double repetition_penalty = 1.0;
  // As OpenAI defines them, over generated tokens: logit - frequency * count - presence * (count >
  // 0).
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  std::map<std::int64_t, double> logit_bias = {};  // added to the logits of these ids
  std::uint64_t seed = 0;
};

// Throws a usage error that names the setting, its range and the value.
void check_sampling(const SamplingOptions& options);

// What a draw depends on, so that batching and order do not matter.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t request = 0;
  std::uint64_t sample = 0;
  std::uint64_t position = 0;  // of the token that is drawn, counted from the first generated one
};

// A number in [0, 1) with 53 random bits: the same on every machine (philox.h, the key made from
// the seed and the counter from the request and the low 32 bits of sample and position).
[[nodiscard]] double uniform_draw(const DrawKey& key);

struct TokenLogprob {
  std::int64_t id = 0;
  double logprob = 0;
};

struct Draw {
  std::int64_t id = 0;
  // ln of its probability by the model alone: softmax of the logits as they are.
  double logprob = 0;
  // ln of its probability in the distribution it was drawn from, after all steps; 0 with
  // temperature 0.
  double sampled_logprob = 0;
};

// How often each token occurred; what the penalties go by.
struct TokenHistory {
  std::map<std::int64_t, std::int64_t> prompt;
  std::map<std::int64_t, std::int64_t> generated;
};

// Draws by the inverse of the cumulative distribution in the order of ids. `logits` are the V
// values of one position; -infinity is a token that cannot come. Throws an input error where one is
// NaN or +infinity, or none is finite.
[[nodiscard]] Draw sample_token(std::span<const float> logits, const SamplingOptions& options,
                                const TokenHistory& history, const DrawKey& key);

// The `count` most likely tokens by the model alone, the most likely first, the lower id on ties.
// Both throw as sample_token does.
[[nodiscard]] std::vector<TokenLogprob> most_likely(std::span<const float> logits,
                                                    std::int64_t count);
[[nodiscard]] double logprob_of(std::span<const float> logits, std::int64_t id);

}  // namespace onset
