#include "inspect_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

std::string kind_name(RopeKind kind) {
  switch (kind) {
    case RopeKind::linear:
      return "linear";
    case RopeKind::llama3:
      return "llama3";
    case RopeKind::yarn:
      return "yarn";
    case RopeKind::longrope:
      return "longrope";
    case RopeKind::plain:
      break;
  }
  return "plain";
}

// GGUF files of stretched models may hold what each frequency is divided by.
bool has_divisors(const Checkpoint& checkpoint) {
  return checkpoint.find("rope_freqs.weight") != nullptr;
}

bool is_tied(const Checkpoint& checkpoint) {
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  return checkpoint.find(gguf ? "output.weight" : "lm_head.weight") == nullptr;
}

std::int64_t layers_with_rope(const ModelConfig& config, std::size_t rope) {
  return std::count_if(config.layers.begin(), config.layers.end(),
                       [rope](const LayerConfig& layer) { return layer.rope == rope; });
}

std::vector<std::int64_t> windowed_layers(const ModelConfig& config) {
  std::vector<std::int64_t> layers;
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    if (config.layers[static_cast<std::size_t>(l)].sliding_window > 0) layers.push_back(l);
  }
  return layers;
}

std::string whole_or_shortest(double value) {
  constexpr double exact = 1e15;
  return value == std::floor(value) && std::fabs(value) < exact
             ? grouped(static_cast<std::int64_t>(value))
             : shortest(value);
}

std::string rope_text(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::string text;
  for (std::size_t i = 0; i < config.ropes.size(); ++i) {
    const auto& rope = config.ropes[i];
    text += str_cat(i == 0 ? "" : "; ", kind_name(rope.kind), ", theta ",
                    whole_or_shortest(rope.theta));
    if (rope.kind != RopeKind::plain) text += ", factor " + shortest(rope.factor);
    if (rope.kind != RopeKind::plain && rope.original_context > 0) {
      text += str_cat(" over ", grouped(rope.original_context), " positions");
    }
    if (rope.rotary_dim > 0 && rope.rotary_dim < config.head_dim) {
      text += str_cat(", ", rope.rotary_dim, " of ", config.head_dim, " dims of a head");
    }
    if (config.ropes.size() > 1) {
      text += " in " + counted(layers_with_rope(config, i), "layer");
    }
  }
  return has_divisors(checkpoint) ? text + ", each frequency divided as rope_freqs.weight says"
                                  : text;
}

// "all but every 2nd": where the layers without a window are the multiples of a number.
std::string pattern_text(const std::vector<std::int64_t>& windowed, std::int64_t count) {
  if (static_cast<std::int64_t>(windowed.size()) == count) return "every layer";
  std::string text = str_cat(windowed.size(), " of ", count, " layers");
  std::int64_t first_full = 0;
  while (std::binary_search(windowed.begin(), windowed.end(), first_full)) ++first_full;
  const auto every = first_full + 1;
  bool repeats = every > 1;
  for (std::int64_t l = 0; l < count && repeats; ++l) {
    repeats = std::binary_search(windowed.begin(), windowed.end(), l) == ((l + 1) % every != 0);
  }
  if (repeats && 2 * every <= count) {
    return text + str_cat(", all but every ", every, every == 2 ? "nd" : every == 3 ? "rd" : "th");
  }
  const auto first = windowed.front();
  const auto last = windowed.back();
  if (last - first + 1 == static_cast<std::int64_t>(windowed.size())) {
    return text +
           (first == last ? str_cat(", layer ", first) : str_cat(", layers ", first, " to ", last));
  }
  return text;
}

std::int64_t mixture_layers(const ModelConfig& config) {
  return std::count_if(config.layers.begin(), config.layers.end(),
                       [](const LayerConfig& layer) { return layer.mixture; });
}

std::string score_name(RouterScore score) {
  return score == RouterScore::sigmoid ? "sigmoid" : "softmax";
}

// Of the weights, those that a token meets: all but the experts it is not sent to.
std::int64_t active_parameters(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto& mixture = config.mixture;
  return parameter_count(checkpoint) - mixture_layers(config) * (mixture.experts - mixture.chosen) *
                                           3 * mixture.ffn * config.hidden;
}

std::string mixture_text(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto& mixture = config.mixture;
  std::string text =
      str_cat(mixture.chosen, " of ", mixture.experts, " experts a token, FFN ", mixture.ffn,
              ", in ", mixture_layers(config), " of ", config.layer_count(), " layers");
  if (mixture.groups > 1) {
    text += str_cat(", from ", mixture.chosen_groups, " of ", mixture.groups, " groups");
  }
  if (mixture.shared_ffn > 0) text += str_cat(", shared expert of ", mixture.shared_ffn);
  text += str_cat(", ", score_name(mixture.score), " router; ",
                  grouped(active_parameters(config, checkpoint)), " parameters active");
  return text;
}

std::string latent_text(const ModelConfig& config) {
  const auto& latent = config.latent;
  std::string text = str_cat("key-value latent of ", latent.kv_rank);
  if (latent.query_rank > 0) text += str_cat(", query latent of ", latent.query_rank);
  return text + str_cat("; keys of ", config.head_dim - latent.rope_dim, " + ", latent.rope_dim,
                        " rotated dims, values of ", config.value_dim);
}

OrderedJson mixture_json(const ModelConfig& config, const Checkpoint& checkpoint) {
  if (config.mixture.experts == 0) return nullptr;
  const auto& mixture = config.mixture;
  std::vector<std::int64_t> layers;
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    if (config.is_mixture(l)) layers.push_back(l);
  }
  return {{"experts", mixture.experts},
          {"experts_per_token", mixture.chosen},
          {"ffn", mixture.ffn},
          {"shared_ffn", mixture.shared_ffn},
          {"router", score_name(mixture.score)},
          {"groups", mixture.groups},
          {"groups_per_token", mixture.chosen_groups},
          {"active_parameters", active_parameters(config, checkpoint)},
          {"layers", layers}};
}

OrderedJson latent_json(const ModelConfig& config) {
  if (!config.has_latent_attention()) return nullptr;
  return {{"kv_rank", config.latent.kv_rank},
          {"query_rank", config.latent.query_rank},
          {"rope_dim", config.latent.rope_dim},
          {"value_dim", config.value_dim}};
}

}  // namespace

void add_config(OrderedJson& model, const ModelConfig& config, const Checkpoint& checkpoint) {
  OrderedJson ropes = OrderedJson::array();
  for (std::size_t i = 0; i < config.ropes.size(); ++i) {
    const auto& rope = config.ropes[i];
    const bool plain = rope.kind == RopeKind::plain;
    OrderedJson row{{"kind", kind_name(rope.kind)},
                    {"theta", finite_or_null(rope.theta)},
                    {"rotary_dim", rope.rotary_dim},
                    {"factor", plain ? OrderedJson(nullptr) : finite_or_null(rope.factor)}};
    row["original_context"] = !plain && rope.original_context > 0
                                  ? OrderedJson(rope.original_context)
                                  : OrderedJson(nullptr);
    row["frequency_divisors"] = has_divisors(checkpoint);
    row["layers"] = layers_with_rope(config, i);
    ropes.push_back(std::move(row));
  }
  model["rope"] = std::move(ropes);
  const auto windowed = windowed_layers(config);
  model["sliding_window"] = nullptr;
  if (!windowed.empty()) {
    const auto& layer = config.layers[static_cast<std::size_t>(windowed.front())];
    model["sliding_window"] = {{"keys", layer.sliding_window}, {"layers", windowed}};
  }
  const auto cap = [](double value) {
    return value > 0 ? OrderedJson(value) : OrderedJson(nullptr);
  };
  model["attention_softcap"] = cap(config.attention_softcap);
  model["logit_softcap"] = cap(config.logit_softcap);
  model["tied_embeddings"] = is_tied(checkpoint);
  model["mixture"] = mixture_json(config, checkpoint);
  model["latent_attention"] = latent_json(config);
}

std::vector<std::pair<std::string, std::string>> config_rows(const ModelConfig& config,
                                                             const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, std::string>> rows{{"RoPE", rope_text(config, checkpoint)}};
  if (config.mixture.experts > 0) rows.emplace_back("mixture", mixture_text(config, checkpoint));
  if (config.has_latent_attention()) rows.emplace_back("attention", latent_text(config));
  if (const auto windowed = windowed_layers(config); !windowed.empty()) {
    const auto& layer = config.layers[static_cast<std::size_t>(windowed.front())];
    rows.emplace_back("window", str_cat(grouped(layer.sliding_window), " keys in ",
                                        pattern_text(windowed, config.layer_count())));
  }
  std::string caps;
  if (config.attention_softcap > 0) caps = "scores " + shortest(config.attention_softcap);
  if (config.logit_softcap > 0) {
    caps += (caps.empty() ? "logits " : ", logits ") + shortest(config.logit_softcap);
  }
  if (!caps.empty()) rows.emplace_back("soft caps", caps);
  rows.emplace_back("head",
                    is_tied(checkpoint) ? "tied: the token embeddings" : "weights of its own");
  return rows;
}

}  // namespace onset::app
