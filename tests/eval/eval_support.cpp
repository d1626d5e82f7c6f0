#include "eval/eval_support.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "onset/model/decoder.h"

namespace onset::testing {

SmallModel::SmallModel(Compute compute, std::int64_t context) {
  Json tokenizer = small_tokenizer({{" ", "A"}, {"t", "h"}, {"th", "e"}, {" ", "the"}, {"a", "n"}});
  const auto pieces = static_cast<TokenId>(tokenizer["model"]["vocab"].size());
  bos_ = pieces;
  tokenizer["added_tokens"] =
      Json::array({added_token("<s>", pieces), added_token("</s>", pieces + 1)});
  static_cast<void>(folder_.write("tokenizer.json", tokenizer.dump()));
  const Json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_bos_token", false}};
  static_cast<void>(folder_.write("tokenizer_config.json", config.dump()));
  Toy toy;
  toy.config["vocab_size"] = pieces + 2;
  toy.config["hidden_size"] = 16;
  toy.config["num_attention_heads"] = 4;
  toy.config["num_key_value_heads"] = 2;
  toy.config["eos_token_id"] = pieces + 1;
  toy.config["max_position_embeddings"] = context > 0 ? context : 512;
  toy.draw(5);
  toy.write(folder_.path());
  model_.emplace(Model::open(folder_.path(), {compute, Residency::resident}));
  tokenizer_.emplace(Tokenizer::open(folder_.path()));
}

std::vector<EvalItem> choice_items() {
  const std::string examples = "Question: is the sky blue?\nAnswer: A\n\n";
  std::vector<EvalItem> items;
  const auto add = [&](const std::string& context, const std::vector<std::string>& texts) {
    EvalItem item{.doc = static_cast<std::int64_t>(items.size()), .context = context};
    for (const std::string& text : texts)
      item.choices.push_back({.continuation = text, .text = text});
    items.push_back(std::move(item));
  };
  for (const std::string word : {"one", "two", "three", "four"}) {
    add(examples + "Question: what is " + word + "?\nAnswer:", {" A", " B", " C", " D"});
  }
  add("To boil an egg:", {" put the egg into water", " put the egg into the sun", " eat it", " A"});
  add("x", {" the", " then", " th"});
  add(examples + "Question: and the rest?\nAnswer: ", {"A", "B"});
  add("alone", {" and so on"});
  return items;
}

std::vector<EvalItem> generation_items(std::int64_t count) {
  std::vector<EvalItem> items;
  for (std::int64_t i = 0; i < count; ++i) {
    items.push_back({.kind = ItemKind::generation,
                     .doc = i,
                     .context = "Question: what is " + std::to_string(i) + "?\nAnswer:",
                     .max_new_tokens = 6 + i % 3});
  }
  return items;
}

std::vector<PlainScore> plain_scores(const SmallModel& small, const EvalItem& item,
                                     const MaskSpec* mask) {
  const c10::InferenceMode inference;
  const auto hooks = mask == nullptr ? nullptr : masking(*mask, small.model());
  std::vector<PlainScore> scores;
  for (const TokenPair& pair : ItemEncoder(small.tokenizer(), std::nullopt).pairs(item)) {
    std::vector<std::int64_t> ids = pair.context;
    ids.insert(ids.end(), pair.continuation.begin(), pair.continuation.end());
    const std::vector<SequenceInput> batch{{.ids = ids}};
    const at::Tensor logprobs = small.model()
                                    .decoder()
                                    .forward(batch, LogitRows::all, hooks.get())
                                    .logits.to(at::kDouble)
                                    .log_softmax(1);
    PlainScore score;
    for (std::size_t t = 0; t < pair.continuation.size(); ++t) {
      const auto row = static_cast<std::int64_t>(pair.context.size() + t) - 1;
      score.loglik += logprobs[row][pair.continuation[t]].item<double>();
      score.greedy =
          score.greedy && logprobs[row].argmax().item<std::int64_t>() == pair.continuation[t];
    }
    scores.push_back(score);
  }
  return scores;
}

std::shared_ptr<const MaskSpec> small_mask(const SmallModel& small, MaskOptions options) {
  if (!options.from_layer) options.from_layer = 1;
  if (!options.k) options.k = 6;
  return std::make_shared<const MaskSpec>(make_mask(small.model(), options));
}

}  // namespace onset::testing
