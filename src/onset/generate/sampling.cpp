#include "onset/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/generate/philox.h"

namespace onset {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void require_range(bool inside, const char* name, const char* range, double value) {
  if (inside) return;
  throw usage_error(str_cat(name, " is ", value, ", and has to be ", range));
}

// The largest logit and its lowest id. One pass; NaN and infinities are found on the way.
struct Largest {
  float value = -std::numeric_limits<float>::infinity();
  std::int64_t id = 0;
};

Largest largest_of(std::span<const float> logits) {
  Largest largest;
  bool has_nan = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float value = logits[i];
    has_nan |= value != value;
    if (value > largest.value) largest = {value, static_cast<std::int64_t>(i)};
  }
  if (has_nan) throw input_error("the model's logits hold NaN", "try compute f32");
  if (largest.value == std::numeric_limits<float>::infinity()) {
    throw input_error("the model's logits hold +infinity", "try compute f32");
  }
  if (largest.value == -std::numeric_limits<float>::infinity()) {
    throw input_error("no token has a finite logit", "leave out the bias, or try compute f32");
  }
  return largest;
}

// ln of the sum of exp(logit).
double log_sum_exp(std::span<const float> logits, float largest) {
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - largest);
  return static_cast<double>(largest) + std::log(sum);
}

bool changes_logits(const SamplingOptions& options) {
  return !options.logit_bias.empty() || options.repetition_penalty != 1.0 ||
         options.frequency_penalty != 0.0 || options.presence_penalty != 0.0;
}

std::vector<float> changed_logits(std::span<const float> logits, const SamplingOptions& options,
                                  const TokenHistory& history) {
  std::vector<float> changed(logits.begin(), logits.end());
  const auto change = [&changed](std::int64_t id, auto&& rule) {
    if (id < 0 || id >= static_cast<std::int64_t>(changed.size())) return;
    float& logit = changed[static_cast<std::size_t>(id)];
    logit = static_cast<float>(rule(static_cast<double>(logit)));
  };
  for (const auto& [id, bias] : options.logit_bias) {
    change(id, [bias = bias](double logit) { return logit + bias; });
  }
  if (options.repetition_penalty != 1.0) {
    const auto penalise = [&](std::int64_t id) {
      change(id, [&](double logit) {
        return logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
      });
    };
    for (const auto& [id, count] : history.prompt) penalise(id);
    for (const auto& [id, count] : history.generated) {
      if (!history.prompt.contains(id)) penalise(id);
    }
  }
  for (const auto& [id, count] : history.generated) {
    if (count <= 0) continue;
    change(id, [&, count = count](double logit) {
      return logit - options.frequency_penalty * static_cast<double>(count) -
             options.presence_penalty;
    });
  }
  return changed;
}

// The k-th largest value, 1 <= k <= values.size(): keeps the best so far and throws away half of
// them when there are twice as many as needed, so most values cost one comparison.
float kth_largest(std::span<const float> values, std::size_t k) {
  std::vector<float> best;
  float floor = -std::numeric_limits<float>::infinity();
  const std::size_t most = 2 * k + 64;
  best.reserve(std::min(most, values.size()));
  const auto cut = [&] {
    const auto kth = best.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(best.begin(), kth, best.end(), std::greater<>());
    best.resize(k);
    floor = best.back();
  };
  for (const float value : values) {
    if (best.size() >= k && value <= floor) continue;
    best.push_back(value);
    if (best.size() >= most) cut();
  }
  cut();
  return floor;
}

// The k largest, the lower ids on ties; ascending ids.
std::vector<std::int64_t> largest_ids(std::span<const float> values, std::size_t k) {
  const float floor = kth_largest(values, k);
  std::size_t above = 0;
  for (const float value : values) above += value > floor ? 1 : 0;
  std::size_t equal = k - above;
  std::vector<std::int64_t> ids;
  ids.reserve(k);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > floor) {
      ids.push_back(static_cast<std::int64_t>(i));
    } else if (values[i] == floor && equal > 0) {
      ids.push_back(static_cast<std::int64_t>(i));
      --equal;
    }
  }
  return ids;
}

// What can be drawn: weights relative to the most likely token's, which has 1; ascending ids.
struct Candidate {
  std::int64_t id;
  double weight;
};

double total_of(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  return total;
}

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

// Keeps the smallest set of the most likely whose weights reach top_p of all. The last of them is
// found by halves: of each, the more likely half is taken whole or looked into.
void limit_to_top_p(std::vector<Candidate>& candidates, double top_p) {
  double missing = top_p * total_of(candidates);
  std::vector<Candidate> order = candidates;
  auto begin = order.begin();
  auto end = order.end();
  constexpr std::ptrdiff_t few = 32;
  while (end - begin > few) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, more_likely);
    double sum = 0;
    for (auto candidate = begin; candidate != middle; ++candidate) sum += candidate->weight;
    if (sum >= missing) {
      end = middle;
    } else {
      missing -= sum;
      begin = middle;
    }
  }
  std::sort(begin, end, more_likely);
  while (begin + 1 != end && begin->weight < missing) missing -= (begin++)->weight;
  std::erase_if(candidates, [last = *begin](const Candidate& candidate) {
    return more_likely(last, candidate);
  });
}

std::vector<Candidate> candidates_of(std::span<const float> logits, float largest,
                                     const SamplingOptions& options) {
  const auto weight_of = [&](float logit) {
    const double scaled =
        (static_cast<double>(logit) - static_cast<double>(largest)) / options.temperature;
    return static_cast<double>(std::exp(static_cast<float>(scaled)));
  };
  // min-p goes by the weights alone, so it is applied at once, unless top-p has to see the rest.
  const double least = options.top_p < 1.0 ? 0.0 : options.min_p;
  const auto count = static_cast<std::int64_t>(logits.size());
  std::vector<Candidate> candidates;
  const auto add = [&](std::int64_t id) {
    const double weight = weight_of(logits[static_cast<std::size_t>(id)]);
    if (weight > 0 && weight >= least) candidates.push_back({id, weight});
  };
  if (options.top_k > 0 && options.top_k < count) {
    for (const auto id : largest_ids(logits, static_cast<std::size_t>(options.top_k))) add(id);
  } else {
    candidates.reserve(logits.size());
    for (std::int64_t id = 0; id < count; ++id) add(id);
  }
  if (options.top_p < 1.0) limit_to_top_p(candidates, options.top_p);
  if (options.min_p > 0) {
    std::erase_if(candidates, [&](const Candidate& c) { return c.weight < options.min_p; });
  }
  return candidates;
}

}  // namespace

void check_sampling(const SamplingOptions& options) {
  const auto finite = [](double value) { return std::isfinite(value); };
  require_range(finite(options.temperature) && options.temperature >= 0, "temperature", "0 or more",
                options.temperature);
  require_range(options.top_k >= 0, "top_k", "0 (no limit) or more",
                static_cast<double>(options.top_k));
  require_range(options.top_p > 0 && options.top_p <= 1, "top_p", "above 0 and at most 1",
                options.top_p);
  require_range(options.min_p >= 0 && options.min_p <= 1, "min_p", "from 0 to 1", options.min_p);
  require_range(finite(options.repetition_penalty) && options.repetition_penalty > 0,
                "repetition_penalty", "above 0 (1 changes nothing)", options.repetition_penalty);
  require_range(finite(options.frequency_penalty), "frequency_penalty", "a number",
                options.frequency_penalty);
  require_range(finite(options.presence_penalty), "presence_penalty", "a number",
                options.presence_penalty);
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0) throw usage_error(str_cat("logit_bias: ", id, " is no token id"));
    require_range(!std::isnan(bias) && bias < infinity, "logit_bias", "a number", bias);
  }
}

double uniform_draw(const DrawKey& key) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); };
  const auto words =
      philox_4x32({low(key.position), low(key.sample), low(key.request), high(key.request)},
                  {low(key.seed), high(key.seed)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32U | words[1]) >> 11U;
  return static_cast<double>(bits) * 0x1p-53;
}

Draw sample_token(std::span<const float> logits, const SamplingOptions& options,
                  const TokenHistory& history, const DrawKey& key) {
  const Largest by_model = largest_of(logits);
  const double log_sum = log_sum_exp(logits, by_model.value);
  const auto logprob = [&](std::int64_t id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum;
  };
  std::vector<float> changed;
  std::span<const float> used = logits;
  Largest largest = by_model;
  if (changes_logits(options)) {
    changed = changed_logits(logits, options, history);
    used = changed;
    largest = largest_of(used);
  }
  if (options.temperature == 0) return {largest.id, logprob(largest.id), 0.0};

  const std::vector<Candidate> candidates = candidates_of(used, largest.value, options);
  const double total = total_of(candidates);
  const double target = uniform_draw(key) * total;
  const Candidate* drawn = &candidates.back();
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += candidate.weight;
    if (sum > target) {
      drawn = &candidate;
      break;
    }
  }
  return {drawn->id, logprob(drawn->id), std::log(drawn->weight / total)};
}

std::vector<TokenLogprob> most_likely(std::span<const float> logits, std::int64_t count) {
  const auto wanted = std::min(count, static_cast<std::int64_t>(logits.size()));
  std::vector<TokenLogprob> result;
  if (wanted <= 0) return result;
  const double log_sum = log_sum_exp(logits, largest_of(logits).value);
  for (const std::int64_t id : largest_ids(logits, static_cast<std::size_t>(wanted))) {
    result.push_back({id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum});
  }
  std::stable_sort(result.begin(), result.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob > b.logprob;
  });
  return result;
}

double logprob_of(std::span<const float> logits, std::int64_t id) {
  return static_cast<double>(logits[static_cast<std::size_t>(id)]) -
         log_sum_exp(logits, largest_of(logits).value);
}

}  // namespace onset
