#include "sampling_option.h"

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {

void SamplingVerbOptions::declare(CommandLine& line) {
  line.group("Choosing tokens");
  line.integer(max_tokens, "--max-tokens", "N", "at most so many tokens", 1, INT32_MAX);
  line.number(sampling.temperature, "--temperature", "X",
              "logits are divided by it; 0 takes the most likely token (greedy)");
  line.integer(sampling.top_k, "--top-k", "N", "the N most likely tokens alone; 0: no limit", 0,
               INT64_MAX);
  line.number(sampling.top_p, "--top-p", "X",
              "the smallest set of most likely tokens with this probability together");
  line.number(sampling.min_p, "--min-p", "X",
              "tokens with at least this share of the most likely one's probability");
  line.number(sampling.repetition_penalty, "--repetition-penalty", "X",
              "logits of tokens in the prompt or the answer are divided by it where positive, "
              "multiplied where negative; 1 changes nothing");
  line.signed_number(
      sampling.frequency_penalty, "--frequency-penalty", "X",
      "taken from a token's logit for each time that it was generated; negative favours it");
  line.signed_number(sampling.presence_penalty, "--presence-penalty", "X",
                     "taken from the logits of tokens that were generated; negative favours them");
  line.texts(stop, "--stop", "TEXT", "end before this text; may be given several times");
  line.toggle(ignore_eos, "--ignore-eos", "go on behind the model's end tokens");
}

void SamplingVerbOptions::check() const {
  check_sampling(sampling);
  for (const auto& text : stop) {
    if (text.empty()) throw usage_error("--stop is empty", "give at least one character");
  }
}

GenerationRequest SamplingVerbOptions::request(std::vector<std::int64_t> ids,
                                               std::int64_t seed) const {
  GenerationRequest request{.ids = std::move(ids),
                            .max_new_tokens = max_tokens,
                            .sampling = sampling,
                            .stop = stop,
                            .ignore_eos = ignore_eos};
  request.sampling.seed = static_cast<std::uint64_t>(seed);
  return request;
}

std::string sampling_words(const SamplingOptions& sampling) {
  std::vector<std::string> parts;
  const auto add = [&parts](bool given, const std::string& name, double value) {
    if (given) parts.push_back(str_cat(name, " ", shortest(value)));
  };
  const bool greedy = sampling.temperature == 0;
  if (greedy) {
    parts.emplace_back("greedy");
  } else {
    add(true, "temperature", sampling.temperature);
    add(sampling.top_k > 0, "top-k", static_cast<double>(sampling.top_k));
    add(sampling.top_p < 1, "top-p", sampling.top_p);
    add(sampling.min_p > 0, "min-p", sampling.min_p);
  }
  add(sampling.repetition_penalty != 1, "repetition penalty", sampling.repetition_penalty);
  add(sampling.frequency_penalty != 0, "frequency penalty", sampling.frequency_penalty);
  add(sampling.presence_penalty != 0, "presence penalty", sampling.presence_penalty);
  if (!greedy) parts.push_back(str_cat("seed ", sampling.seed));
  return join(parts, ", ");
}

OrderedJson sampling_json(const SamplingVerbOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  OrderedJson stop = OrderedJson::array();
  for (const auto& text : options.stop) stop.push_back(valid_utf8(text));
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"max_tokens", options.max_tokens},
          {"stop", stop},
          {"ignore_eos", options.ignore_eos}};
}

}  // namespace onset::app
