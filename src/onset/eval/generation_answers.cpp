#include "onset/eval/generation_answers.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"

namespace onset {
namespace {

// More than are generated at a time: rows that are done make room for others of the group.
constexpr std::int64_t groups_of_rows = 2;

std::string key_of(const GenerationRequest& request) {
  const SamplingOptions& sampling = request.sampling;
  ContentHash hash;
  hash.add("generation").add(request.ids).add(request.max_new_tokens);
  for (const std::string& stop : request.stop) hash.add(stop);
  hash.add(sampling.temperature).add(sampling.repetition_penalty);
  hash.add(sampling.frequency_penalty).add(sampling.presence_penalty);
  for (const auto& [id, bias] : sampling.logit_bias) hash.add(id).add(bias);
  if (sampling.temperature > 0) {
    hash.add(sampling.top_k).add(sampling.top_p).add(sampling.min_p);
    hash.add(static_cast<std::int64_t>(sampling.seed));
    hash.add(static_cast<std::int64_t>(request.number));
  }
  return hash.hex();
}

// A number in the random draws that depends on the prompt, not on its place.
std::uint64_t number_of(const std::string& prompt_key, std::uint64_t repetition) {
  std::uint64_t number = 0;
  constexpr std::size_t digits = 16;
  std::from_chars(prompt_key.data(), prompt_key.data() + digits, number, 16);
  return number + repetition;
}

Json json_of(const GenerationUpdate& last, const std::string& text, std::int64_t tokens) {
  return Json::array({text, tokens, *last.finish == FinishReason::length ? "length" : "stop"});
}

}  // namespace

void GenerationAnswers::add(std::size_t item, ItemAnswer& answer) {
  const EvalItem& asked = setting_.items[item];
  Prompt prompt{.item = item};
  GenerationRequest& request = prompt.request;
  request.ids = setting_.encoder.prompt(asked);
  require_known(setting_, item, request.ids);
  request.max_new_tokens = asked.max_new_tokens;
  request.sampling = setting_.options.sampling;
  request.stop = asked.stop;
  request.mask = setting_.options.mask;
  answer.context_tokens = static_cast<std::int64_t>(request.ids.size());
  if (!fits(setting_, item, answer.context_tokens + asked.max_new_tokens, answer)) {
    if (answer.skipped) return;
    const std::int64_t room = setting_.context - asked.max_new_tokens;
    if (room < 1) {
      throw input_error(
          str_cat(describe(asked), ": ", asked.max_new_tokens,
                  " new tokens leave no room for a prompt in the context of ", setting_.context),
          "--max-new-tokens asks for fewer");
    }
    request.ids.erase(request.ids.begin(), request.ids.begin() + (answer.context_tokens - room));
  }
  if (request.sampling.temperature > 0) {
    const std::string prompt_key = ContentHash().add(request.ids).hex();
    request.number = number_of(prompt_key, same_text_[prompt_key]++);
  }
  prompt.key = key_of(request);
  keys_[item] = prompt.key;
  if (planned_.insert(prompt.key).second) prompts_.push_back(std::move(prompt));
}

std::vector<AnswerUnit> GenerationAnswers::units() {
  // By content, not by place; prompts that begin alike are together.
  std::stable_sort(prompts_.begin(), prompts_.end(), [](const Prompt& a, const Prompt& b) {
    return std::tie(a.request.ids, a.key) < std::tie(b.request.ids, b.key);
  });
  const auto most = static_cast<std::size_t>(
      setting_.alone ? 1 : groups_of_rows * setting_.options.generation_rows);
  std::vector<AnswerUnit> units;
  for (std::size_t begin = 0; begin < prompts_.size(); begin += most) {
    const std::span<const Prompt> group =
        std::span<const Prompt>(prompts_).subspan(begin, std::min(most, prompts_.size() - begin));
    AnswerUnit unit{.steps = static_cast<std::int64_t>(group.size())};
    for (const Prompt& prompt : group) {
      unit.keys.push_back(prompt.key);
      unit.cost += prompt.request.max_new_tokens;
    }
    unit.compute = [this, group](const ResultCache& known, const Advance& advance) {
      return compute(group, known, advance);
    };
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<ResultCache::Entry> GenerationAnswers::compute(std::span<const Prompt> prompts,
                                                           const ResultCache& known,
                                                           const Advance& advance) const {
  Generator generator(
      setting_.model, &setting_.tokenizer,
      {.max_rows = setting_.options.generation_rows, .context = setting_.options.context});
  std::vector<ResultCache::Entry> entries;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::int64_t> tokens;
  for (const Prompt& prompt : prompts) {
    if (known.find(prompt.key) != nullptr) {
      advance(1);
      continue;
    }
    texts[prompt.key] = {};
    generator.submit(prompt.request, [&, this](const GenerationUpdate& update) {
      std::string& text = texts[prompt.key];
      text += update.text;
      tokens[prompt.key] += static_cast<std::int64_t>(update.tokens.size());
      if (!update.finish) return;
      require_input(*update.finish != FinishReason::failed, describe(setting_.items[prompt.item]),
                    ": ", update.error);
      entries.emplace_back(prompt.key, json_of(update, text, tokens[prompt.key]));
      advance(1);
    });
  }
  while (generator.step()) {
  }
  return entries;
}

bool GenerationAnswers::knows(const ResultCache& known, std::size_t item) const {
  const auto key = keys_.find(item);
  return key != keys_.end() && known.find(key->second) != nullptr;
}

void GenerationAnswers::fill(const ResultCache& known, std::size_t item, ItemAnswer& answer) const {
  const Json& value = known.at(keys_.at(item));
  answer.text = value.at(0).get<std::string>();
  answer.new_tokens = value.at(1).get<std::int64_t>();
  answer.truncated = value.at(2).get<std::string>() == "length";
  answer.finish = answer.truncated ? FinishReason::length : FinishReason::stop;
}

}  // namespace onset
