// The settings of one method each.
#include "onset/train/settings_rows.h"

namespace onset {
namespace {

constexpr SettingRange from_one{.min = 1};
constexpr SettingRange above_zero{.min = 0, .above_min = true};
constexpr SettingRange share{.min = 0, .max = 1};

const std::vector<std::pair<std::string, TruncationMode>> truncations = {
    {"keep_start", TruncationMode::keep_start}, {"keep_end", TruncationMode::keep_end}};

void add_sampling_rows(SettingRows& rows, SamplingOptions& sampling) {
  rows.add("temperature", sampling.temperature, "X", "of sampling").range = above_zero;
  rows.add("top_p", sampling.top_p, "X", "sample from the most likely tokens of this mass")
      .range = {.min = 0, .max = 1, .above_min = true};
  rows.add("top_k", sampling.top_k, "N", "sample from the N most likely tokens; 0: from all");
  rows.add("min_p", sampling.min_p, "X", "no token below this share of the most likely one").range =
      share;
  rows.add("repetition_penalty", sampling.repetition_penalty, "X", "1: none").range = above_zero;
}

}  // namespace

void add_sft_rows(SettingRows& rows, SftSettings& sft) {
  rows.group("SFT");
  rows.add("max_length", sft.max_length, "N", "tokens of an example, or of a packed row; 0: any");
  rows.add_choice("truncation_mode", sft.truncation_mode, truncations,
                  "what stays of a longer one");
  rows.add("packing", sft.packing, "", "several examples in a row, apart from each other");
  rows.add_choice<PackingStrategy>("packing_strategy", sft.packing_strategy,
                                   {{"bfd", PackingStrategy::bfd},
                                    {"bfd_split", PackingStrategy::bfd_split},
                                    {"wrapped", PackingStrategy::wrapped}},
                                   "best fit, the same with long ones split, or row by row");
  rows.add("assistant_only_loss", sft.assistant_only_loss, "",
           "of conversations: train what the assistant says");
  rows.add("completion_only_loss", sft.completion_only_loss, "",
           "of prompt and completion: train the completion; not given: yes");
}

void add_dpo_rows(SettingRows& rows, DpoSettings& dpo) {
  rows.group("DPO");
  rows.add("beta", dpo.loss.beta, "X", "how dear it is to leave the reference").range = above_zero;
  rows.add_choice<DpoLossType>("loss_type", dpo.loss.type,
                               {{"sigmoid", DpoLossType::sigmoid},
                                {"robust", DpoLossType::robust},
                                {"ipo", DpoLossType::ipo},
                                {"ipo_sum", DpoLossType::ipo_sum}},
                               "sigmoid is DPO's own");
  rows.add("label_smoothing", dpo.loss.label_smoothing, "X",
           "share of pairs taken to be the wrong way round")
      .range = {.min = 0, .max = 0.5, .below_max = true};
  rows.add("max_length", dpo.max_length, "N", "tokens of prompt and completion; 0: any");
  rows.add_choice("truncation_mode", dpo.truncation_mode, truncations,
                  "what stays of a longer one");
}

void add_grpo_rows(SettingRows& rows, GrpoSettings& grpo) {
  rows.group("GRPO");
  rows.add("num_generations", grpo.num_generations, "N", "completions of a prompt").range.min = 2;
  rows.add("max_prompt_length", grpo.max_prompt_length, "N", "leave out longer prompts; 0: none");
  rows.add("max_completion_length", grpo.loss.max_completion_length, "N",
           "tokens at which a completion is cut off")
      .range = from_one;
  add_sampling_rows(rows, grpo.sampling);
  rows.add("beta", grpo.loss.beta, "X", "weight of the KL term; 0: no reference");
  rows.add("use_bias_correction_kl", grpo.loss.kl_times_ratio, "", "the KL term times the ratio");
  rows.add("epsilon", grpo.loss.epsilon_low, "X", "clip ratios below 1 - X").range = {
      .min = 0, .max = 1, .below_max = true};
  rows.add("epsilon_high", grpo.epsilon_high, "X", "and above 1 + X; not given: as epsilon");
  rows.add_choice<GrpoLossType>("loss_type", grpo.loss.type,
                                {{"dapo", GrpoLossType::dapo},
                                 {"grpo", GrpoLossType::grpo},
                                 {"bnpo", GrpoLossType::bnpo},
                                 {"dr_grpo", GrpoLossType::dr_grpo}},
                                "what the sum over tokens is divided by");
  rows.add_choice<RewardScale>(
      "scale_rewards", grpo.advantages.scale,
      {{"group", RewardScale::group}, {"batch", RewardScale::batch}, {"none", RewardScale::none}},
      "what advantages are divided by");
  rows.add("num_iterations", grpo.num_iterations, "N", "updates for each set of completions")
      .range = from_one;
  rows.add("mask_truncated_completions", grpo.mask_truncated_completions, "",
           "leave completions that were cut off out of the loss");
  rows.group("Rewards");
  rows.add("reward_funcs", grpo.reward_funcs, "REWARD",
           "gsm8k_strict, gsm8k_flexible, boxed_math, format:REGEX, length:MAX, command:PROGRAM; "
           "several are added up");
  rows.add("reward_weights", grpo.reward_weights, "X,Y", "one for each; 1 when not given").range = {
      .min = -std::numeric_limits<double>::infinity()};
  rows.back().separates = true;
  rows.add("reward_answer", grpo.reward_answer, "COLUMN",
           "the data's column with the right answer");
  rows.add("reward_timeout", grpo.reward_timeout, "SECONDS", "for a command, each step").range =
      above_zero;
}

void add_pretrain_rows(SettingRows& rows, PretrainSettings& model) {
  rows.group("Model");
  rows.add_choice<std::string>("model_type", model.model_type,
                               {{"llama", "llama"}, {"qwen3", "qwen3"}},
                               "its family; qwen3 also norms queries and keys");
  rows.add("hidden_size", model.hidden_size, "N", "width of the residual stream").range = from_one;
  rows.add("num_hidden_layers", model.num_hidden_layers, "N", "blocks").range = from_one;
  rows.add("num_attention_heads", model.num_attention_heads, "N", "query heads").range = from_one;
  rows.add("num_key_value_heads", model.num_key_value_heads, "N", "0: as many");
  rows.add("head_dim", model.head_dim, "N", "0: hidden_size / num_attention_heads");
  rows.add("intermediate_size", model.intermediate_size, "N",
           "width of the FFN; 0: 8/3 of hidden_size, up to a multiple of 64");
  rows.add("rms_norm_eps", model.rms_norm_eps, "X", "of the norms").range = above_zero;
  rows.add("rope_theta", model.rope_theta, "X", "RoPE's base").range = above_zero;
  rows.add("tie_word_embeddings", model.tie_word_embeddings, "",
           "one matrix for embedding and output");
  rows.add("initializer_range", model.initializer_range, "X",
           "standard deviation of the first weights")
      .range = above_zero;
  rows.add("block_size", model.block_size, "N", "tokens of a row").range.min = 2;
}

}  // namespace onset
