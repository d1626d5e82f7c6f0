// The settings that all methods share.
#include "onset/train/settings_rows.h"

namespace onset {
namespace {

constexpr SettingRange from_one{.min = 1};
constexpr SettingRange above_zero{.min = 0, .above_min = true};
constexpr SettingRange share{.min = 0, .max = 1};
constexpr SettingRange below_one{.min = 0, .max = 1, .below_max = true};
constexpr SettingRange layers{.min = 0, .max = 100000};

}  // namespace

void add_data_rows(SettingRows& rows, TrainSettings& settings) {
  TrainDataSettings& data = settings.data;
  const bool has_prompts = settings.method != TrainMethod::pretrain;
  rows.group("Data");
  rows.add_path("train_file", data.train_file, "FILE", "what is trained on; docs/train-data.md");
  rows.add_path("eval_file", data.eval_file, "FILE", "what is evaluated during the run");
  rows.add("hold_out", data.hold_out, "N",
           has_prompts ? "evaluate on one in N prompts instead, chosen by a hash of the prompt"
                       : "evaluate on one in N texts instead, chosen by a hash of the text");
  rows.add("columns", data.columns, "OURS=THEIRS", "the file's column for one of ours");
  if (has_prompts) {
    rows.add("text_as_chat", data.text_as_chat, "",
             "a prompt that is a text is what the user says, a completion what the assistant does");
    rows.add("system", data.system, "TEXT", "with text_as_chat: a first message");
    rows.add("enable_thinking", data.enable_thinking, "", "of chat formats that ask");
  }
  rows.add("eos_token", data.eos_token, "TOKEN",
           "what ends a text; the tokenizer's own when not given");
  rows.add("limit", data.limit, "N", "read the first N rows; 0: all");
  rows.add("shuffle_dataset", data.shuffle_dataset, "",
           "a new order each epoch; otherwise the file's");
  rows.add("check_leaks", data.check_leaks, "",
           "warn of training prompts that are items of a task of onset eval")
      .shapes_curve = false;
  Setting& tasks = rows.add_path("task_data", data.task_data, "DIR",
                                 "where the tasks' data are, for check_leaks");
  tasks.shapes_curve = false;
}

void add_trainer_rows(SettingRows& rows, TrainerSettings& trainer) {
  rows.group("Steps");
  rows.add("learning_rate", trainer.learning_rate, "X", "at its highest");
  // transformers has a warm-up in the longer names alone; here the warm-up settings say it.
  rows.add_choice<ScheduleShape>("lr_scheduler_type", trainer.lr_scheduler_type,
                                 {{"constant", ScheduleShape::constant},
                                  {"linear", ScheduleShape::linear},
                                  {"cosine", ScheduleShape::cosine},
                                  {"constant_with_warmup", ScheduleShape::constant},
                                  {"linear_with_warmup", ScheduleShape::linear},
                                  {"cosine_with_warmup", ScheduleShape::cosine}},
                                 "how the rate goes on after the warm-up");
  rows.add("warmup_steps", trainer.warmup_steps, "N", "steps of warm-up, from rate 0");
  rows.add("warmup_ratio", trainer.warmup_ratio, "X", "the same as a share of all steps").range =
      share;
  rows.add("num_train_epochs", trainer.num_train_epochs, "X", "times through the data");
  rows.add("max_steps", trainer.max_steps, "N", "so many steps, whatever the epochs; 0: by epochs")
      .range.min = -1;
  rows.add("per_device_train_batch_size", trainer.per_device_train_batch_size, "N",
           "sequences of a micro-batch on one rank")
      .range = from_one;
  rows.add("gradient_accumulation_steps", trainer.gradient_accumulation_steps, "N",
           "micro-batches of a step")
      .range = from_one;
  rows.add("max_grad_norm", trainer.max_grad_norm, "X",
           "clip the norm of all gradients to this; 0: no clipping");
  AdamWOptions& adam = trainer.optimizer;
  rows.add("weight_decay", adam.weight_decay, "X", "AdamW's");
  rows.add_choice<WeightDecay>(
      "decay", adam.decays, {{"matrices", WeightDecay::matrices}, {"all", WeightDecay::all}},
      "what decays: all tensors, or matrices but neither norms nor biases");
  rows.add("adam_beta1", adam.beta1, "X", "AdamW's").range = below_one;
  rows.add("adam_beta2", adam.beta2, "X", "AdamW's").range = below_one;
  rows.add("adam_epsilon", adam.epsilon, "X", "AdamW's").range = above_zero;
  rows.add("seed", trainer.seed, "N", "of everything that is random");
  rows.add("device", trainer.device, "NAME", "where it is computed: cpu, cuda or cuda:N")
      .shapes_curve = false;
  rows.add("bf16", trainer.bf16, "", "compute in bfloat16; weights and optimizer stay in float32");
  rows.add("gradient_checkpointing", trainer.gradient_checkpointing, "",
           "compute blocks again instead of keeping their activations")
      .shapes_curve = false;
  rows.add("skip_non_finite", trainer.skip_non_finite, "",
           "leave out a step whose gradient is not finite, instead of ending");
}

void add_saving_rows(SettingRows& rows, TrainerSettings& trainer) {
  rows.group("Results");
  const auto begin = rows.size();
  rows.add_path("output_dir", trainer.output_dir, "DIR", "where everything is written");
  rows.add("logging_steps", trainer.logging_steps, "N", "steps between lines of metrics.jsonl")
      .range = from_one;
  rows.add("tensorboard", trainer.tensorboard, "", "TensorBoard's event files beside it");
  rows.add("eval_steps", trainer.eval_steps, "N",
           "steps between evaluations; 0: at the end of each epoch");
  rows.add("per_device_eval_batch_size", trainer.per_device_eval_batch_size, "N",
           "sequences at a time, there")
      .range = from_one;
  rows.add("save_steps", trainer.save_steps, "N", "steps between checkpoints; 0: at the end alone");
  rows.add("save_total_limit", trainer.save_total_limit, "N", "checkpoints kept; 0: all");
  rows.add("load_best_model_at_end", trainer.load_best_model_at_end, "",
           "keep the best checkpoint too, and end with it");
  rows.add("metric_for_best_model", trainer.metric_for_best_model, "NAME",
           "what is best; eval_loss when not given");
  rows.add("greater_is_better", trainer.greater_is_better, "",
           "not given: no for losses, yes for others");
  rows.add("resume_from_checkpoint", trainer.resume_from_checkpoint, "DIR",
           "go on after it; last: the latest in output_dir");
  rows.add("watch", trainer.watch, "N",
           "measure massive activations by layer every N steps; 0: never");
  rows.mark_off_curve(begin);
}

void add_lora_rows(SettingRows& rows, LoraSettings& lora) {
  rows.group("LoRA");
  rows.add("use_peft", lora.use_peft, "", "train an adapter, not the weights themselves");
  rows.add_path("adapter", lora.adapter, "DIR", "begin with this adapter (PEFT's layout)");
  rows.add("lora_r", lora.r, "N", "rank").range = from_one;
  rows.add("lora_alpha", lora.alpha, "X", "the product is scaled by alpha / rank").range =
      above_zero;
  rows.add("lora_dropout", lora.dropout, "X", "share of its input that is dropped").range =
      below_one;
  rows.add("use_rslora", lora.use_rslora, "", "scale by alpha / sqrt(rank)");
  rows.add("lora_target_modules", lora.target_modules, "A,B",
           "names of linear layers, one regex of whole names, or all-linear")
      .separates = true;
  rows.add("lora_modules_to_save", lora.modules_to_save, "A,B", "modules that are trained whole")
      .separates = true;
  rows.add("rank_pattern", lora.rank_pattern, "NAME=N", "another rank for these modules").range =
      from_one;
  rows.add("alpha_pattern", lora.alpha_pattern, "NAME=X", "another alpha for these modules").range =
      above_zero;
}

void add_wemask_rows(SettingRows& rows, TrainSettings& settings) {
  TrainWemaskSettings& mask = settings.wemask;
  rows.group("WeMask");
  rows.add_path("wemask", mask.wemask, "FILE", "train under this mask (onset mask make)");
  rows.add_choice<MaskUpdate>(
      "wemask_update", mask.update,
      {{"frozen", MaskUpdate::frozen}, {"recompute", MaskUpdate::recompute}},
      "keep its dims, or choose them anew from the gains before each step");
  if (settings.method == TrainMethod::dpo || settings.method == TrainMethod::grpo) {
    rows.add_choice<ReferenceWemask>(
        "reference_wemask", mask.reference,
        {{"same", ReferenceWemask::same}, {"none", ReferenceWemask::none}},
        "the reference runs under the mask too, or without one");
  }
  if (settings.method == TrainMethod::pretrain) {
    rows.add("wemask_from_layer", mask.from_layer, "N",
             "instead of a file: mask from this layer on, from the first step")
        .range = layers;
    rows.add("wemask_rate", mask.rate, "X", "with it: the share of the hidden dims; 0.25").range = {
        .min = 0, .max = 1, .above_min = true};
    rows.add("wemask_k", mask.k, "N", "or their number").range = from_one;
  }
}

}  // namespace onset
