#include "onset/train/rollout.h"

#include <cmath>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/generate/generator.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {
namespace {

// Whether tokens are drawn from softmax(logits / temperature) itself.
bool draws_from_softmax(const SamplingOptions& sampling) {
  return sampling.top_k == 0 && sampling.top_p >= 1 && sampling.min_p <= 0 &&
         sampling.repetition_penalty == 1 && sampling.frequency_penalty == 0 &&
         sampling.presence_penalty == 0 && sampling.logit_bias.empty();
}

RolledOut rolled_out(const Completion& completion, std::int64_t prompt, bool keeps_logps) {
  if (completion.finish == FinishReason::failed) {
    throw input_error(str_cat("sampling failed: ", completion.error));
  }
  RolledOut answer{
      .prompt = prompt, .ended = completion.finish == FinishReason::stop, .text = completion.text};
  for (const GeneratedToken& token : completion.tokens) {
    answer.ids.push_back(token.id);
    if (keeps_logps) answer.logps.push_back(token.sampled_logprob);
  }
  return answer;
}

OrderedJson to_json(const RolledOut& answer) {
  return {{"prompt", answer.prompt},
          {"ids", answer.ids},
          {"ended", answer.ended},
          {"reward", finite_or_null(answer.reward)},
          {"logps", answer.logps}};
}

RolledOut from_json(const OrderedJson& json) {
  const OrderedJson& reward = json.at("reward");
  return {
      .prompt = json.at("prompt").get<std::int64_t>(),
      .ids = json.at("ids").get<TokenIds>(),
      .ended = json.at("ended").get<bool>(),
      .reward = reward.is_null() ? std::numeric_limits<double>::quiet_NaN() : reward.get<double>(),
      .logps = json.at("logps").get<std::vector<double>>()};
}

}  // namespace

std::vector<RolledOut> roll_out(const Model& model, const Tokenizer& tokenizer,
                                const RolloutRequest& request) {
  // What a generator keeps of prompts belongs to these weights.
  Generator generator(model, &tokenizer, {.max_rows = request.rows_at_once});
  std::vector<GenerationRequest> requests;
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    requests.push_back({.ids = request.prompts[i]->prompt,
                        .max_new_tokens = request.max_length,
                        .samples = request.completions,
                        .sampling = request.sampling,
                        .number = request.numbers[i],
                        .mask = request.mask});
  }
  const bool keeps_logps = draws_from_softmax(request.sampling);
  std::vector<RolledOut> answers;
  const auto completed = generate_all(generator, requests);
  for (std::size_t i = 0; i < completed.size(); ++i) {
    for (const Completion& completion : completed[i]) {
      answers.push_back(rolled_out(completion, request.indices[i], keeps_logps));
    }
  }
  return answers;
}

Metrics reward_all(const RolloutRequest& request, const Tokenizer& tokenizer,
                   std::vector<RolledOut>& own, const RewardFunction& reward) {
  std::vector<RewardedCompletion> completions;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const RolloutPrompt& prompt =
        *request.prompts[i / static_cast<std::size_t>(request.completions)];
    const std::vector<TokenId> ids(prompt.prompt.begin(), prompt.prompt.end());
    completions.push_back({.prompt = tokenizer.decode(ids),
                           .text = own[i].text,
                           .record = &prompt.record,
                           .ended = own[i].ended,
                           .tokens = static_cast<std::int64_t>(own[i].ids.size())});
  }
  RewardSums rewards = reward(completions);
  if (rewards.values.size() != own.size()) {
    throw input_error(
        str_cat("the rewards are ", rewards.values.size(), " for ", own.size(), " completions"));
  }
  for (std::size_t i = 0; i < own.size(); ++i) own[i].reward = rewards.values[i];
  return std::move(rewards.metrics);
}

std::vector<RolledOut> gathered(const std::vector<RolledOut>& own,
                                std::span<const std::int64_t> prompts, const Ranks& ranks,
                                Metrics& metrics) {
  if (ranks.count() == 1) return own;
  OrderedJson mine{{"answers", OrderedJson::array()}, {"metrics", OrderedJson::array()}};
  for (const RolledOut& answer : own) mine["answers"].push_back(to_json(answer));
  for (const auto& [name, value] : metrics) {
    mine["metrics"].push_back({name, finite_or_null(value)});
  }
  std::vector<OrderedJson> ranks_own;
  MetricMeans means;
  for (const std::string& text : ranks.gather(mine.dump())) {
    ranks_own.push_back(OrderedJson::parse(text));
    const auto weight = static_cast<double>(ranks_own.back().at("answers").size());
    for (const OrderedJson& metric : ranks_own.back().at("metrics")) {
      if (metric.at(1).is_null()) continue;
      means.add(metric.at(0).get<std::string>(), metric.at(1).get<double>(), weight);
    }
  }
  metrics = means.take();
  std::size_t answers = 0;
  for (const OrderedJson& one : ranks_own) answers += one.at("answers").size();
  const std::size_t group = answers / prompts.size();
  std::vector<RolledOut> all;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto count = static_cast<std::size_t>(ranks.count());
    const OrderedJson& from = ranks_own[i % count].at("answers");
    for (std::size_t g = 0; g < group; ++g)
      all.push_back(from_json(from.at(i / count * group + g)));
  }
  return all;
}

}  // namespace onset
