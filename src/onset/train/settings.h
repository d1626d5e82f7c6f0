// What a run of `train` is told, by the names that TRL 1.16 gives these things. Torch-free.
//
// Plain values: a test, or a program that links onset, fills them by hand. The names, ranges and
// helps under which the command line, a TOML file and the echo of a run know the same fields are
// the table of settings_table.h. docs/train-settings.md lists them with their defaults.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/generate/sampling.h"
#include "onset/train/advantages.h"
#include "onset/train/data_options.h"
#include "onset/train/loss_options.h"
#include "onset/train/mask_update.h"
#include "onset/train/optimizer_options.h"
#include "onset/train/packing.h"
#include "onset/train/rewards.h"
#include "onset/train/schedule.h"

namespace onset {

enum class TrainMethod { sft, dpo, grpo, pretrain };
[[nodiscard]] std::string_view name_of(TrainMethod method);

// Files, columns and what is left out; docs/train-data.md.
struct TrainDataSettings {
  std::string train_file = {};
  std::string eval_file = {};  // empty: none
  std::int64_t hold_out = 0;   // one prompt in so many is kept for evaluation; 0: none
  std::map<std::string, std::string> columns = {};  // the file's columns by ours
  bool text_as_chat = false;
  std::string system = {};
  std::optional<bool> enable_thinking = {};
  std::string eos_token = {};  // empty: as the tokenizer says
  std::int64_t limit = 0;      // the first rows alone; 0: all
  bool shuffle_dataset = true;
  bool check_leaks = true;         // of the known tasks' items into the training prompts
  std::string task_data = "data";  // the folder that holds the tasks' data
};

struct TrainerSettings {
  std::string output_dir = {};
  double learning_rate = 2e-5;  // at its highest
  std::int64_t warmup_steps = 0;
  double warmup_ratio = 0;  // in place of warmup_steps, a share of all steps
  double num_train_epochs = 3;
  std::int64_t max_steps = 0;  // above 0: so many, whatever the epochs
  // Sequences of a micro-batch on a rank (SFT: rows; DPO: pairs; GRPO: completions).
  std::int64_t per_device_train_batch_size = 8;
  std::int64_t per_device_eval_batch_size = 8;
  std::int64_t gradient_accumulation_steps = 1;
  double max_grad_norm = 1;  // 0: no clipping
  std::int64_t seed = 42;
  std::int64_t logging_steps = 10;
  std::int64_t save_steps = 500;            // 0: at the end alone
  std::int64_t save_total_limit = 0;        // 0: all
  std::int64_t eval_steps = 0;              // 0: at the end of each epoch
  std::string metric_for_best_model = {};   // empty: eval_loss
  std::string resume_from_checkpoint = {};  // empty: begin anew; "last", or a folder checkpoint-N
  std::int64_t watch = 0;  // measure massive activations every so many steps; 0: never
  AdamWOptions optimizer = {};
  ScheduleShape lr_scheduler_type = ScheduleShape::linear;
  std::optional<bool> greater_is_better = {};  // not given: no for losses, else yes
  bool load_best_model_at_end = false;
  std::string device = "cpu";  // model/device.h says which there are
  bool bf16 = false;           // computes in bfloat16; weights and moments stay float32
  bool gradient_checkpointing = false;
  bool skip_non_finite = false;  // go on after a gradient that is not finite
  bool tensorboard = true;       // event files beside metrics.jsonl
};

// Adapters, by PEFT's names.
struct LoraSettings {
  bool use_peft = false;
  std::string adapter = {};  // the folder of one to go on with
  std::int64_t r = 16;
  double alpha = 32;
  double dropout = 0;
  bool use_rslora = false;
  std::vector<std::string> target_modules = {"all-linear"};
  std::vector<std::string> modules_to_save = {};
  std::map<std::string, std::int64_t> rank_pattern = {};
  std::map<std::string, double> alpha_pattern = {};
};

enum class ReferenceWemask {
  same,  // the reference is masked as the policy is
  none,
};

struct TrainWemaskSettings {
  std::string wemask = {};  // a mask's file; empty: no mask, or the one described here
  MaskUpdate update = MaskUpdate::frozen;
  ReferenceWemask reference = ReferenceWemask::same;
  // A mask for a model that does not exist yet (pretrain): both, or from_layer and k.
  std::optional<std::int64_t> from_layer = {};
  std::optional<double> rate = {};
  std::optional<std::int64_t> k = {};

  [[nodiscard]] bool given() const { return !wemask.empty() || from_layer.has_value(); }
};

struct SftSettings {
  std::int64_t max_length = 1024;  // 0: any
  TruncationMode truncation_mode = TruncationMode::keep_start;
  bool packing = false;
  PackingStrategy packing_strategy = PackingStrategy::bfd;
  bool assistant_only_loss = true;
  std::optional<bool> completion_only_loss = {};
};

struct DpoSettings {
  DpoLossOptions loss = {};
  std::int64_t max_length = 1024;  // 0: any
  TruncationMode truncation_mode = TruncationMode::keep_start;
};

struct GrpoSettings {
  std::int64_t num_generations = 8;  // completions of a prompt
  std::int64_t max_prompt_length = 0;
  SamplingOptions sampling = {};  // its seed is the run's
  GrpoLossOptions loss = {.kl_times_ratio = true, .max_completion_length = 512};
  std::optional<double> epsilon_high = {};  // not given: as the lower one
  AdvantageOptions advantages = {};
  std::int64_t num_iterations = 1;
  bool mask_truncated_completions = false;
  std::vector<std::string> reward_funcs = {};  // rewards.h; none where the data hold rewards
  std::vector<double> reward_weights = {};     // none: 1 each
  std::string reward_answer = "answer";        // the column that holds the right answer
  double reward_timeout = 60;  // seconds that an external command may take for a batch
};

// The shape of a new model; its vocabulary is the tokenizer's.
struct PretrainSettings {
  std::string model_type = "llama";
  std::int64_t hidden_size = 256;
  std::int64_t num_hidden_layers = 8;
  std::int64_t num_attention_heads = 8;
  std::int64_t num_key_value_heads = 0;  // 0: as num_attention_heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  std::int64_t intermediate_size = 0;    // 0: 8/3 of hidden_size, up to a multiple of 64
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000;
  bool tie_word_embeddings = true;
  double initializer_range = 0.02;
  std::int64_t block_size = 512;  // tokens of a row
};

struct TrainSettings {
  TrainMethod method = TrainMethod::sft;
  std::string model = {};  // a folder or a .gguf; pretrain: where the tokenizer comes from
  TrainDataSettings data = {};
  TrainerSettings trainer = {};
  LoraSettings lora = {};
  TrainWemaskSettings wemask = {};
  // Those of the method count, the others are as they are here.
  SftSettings sft = {};
  DpoSettings dpo = {};
  GrpoSettings grpo = {};
  PretrainSettings pretrain = {};
};

// TRL's defaults for the method; pretrain's are those of GPT-3's 125M (Brown et al. 2005.14165,
// appendix B), with a shorter warm-up.
[[nodiscard]] TrainSettings default_settings(TrainMethod method);

// The settings with everything filled in that others decide (epsilon_high, shapes). Throws usage
// errors, before anything is read: values out of their range, settings that contradict each other
// or have no effect, with the reason. `ranks`: processes that share a step.
[[nodiscard]] TrainSettings checked_settings(TrainSettings settings, std::int64_t ranks);

// What the settings say to the parts of a run; of checked ones.
[[nodiscard]] Schedule schedule_of(const TrainerSettings& settings, std::int64_t total_steps);
[[nodiscard]] RewardOptions reward_options(const GrpoSettings& settings);
// Whether a larger value of the metric is the better one.
[[nodiscard]] bool greater_is_better(const TrainerSettings& settings);

}  // namespace onset
