#!/usr/bin/env python3
"""The peers of training_bench: transformers (and PEFT) on the same rows, by a loop or by TRL's SFTTrainer.

  training_peer.py MODEL_FOLDER full|lora f32|bf16 ROWS TOKENS STEPS [trl]
"""
import resource
import sys
import tempfile
import time

import torch
from transformers import AutoModelForCausalLM


def rows_of(count, length, vocabulary):
    """Ids that look like text to nobody, the same as in training_bench."""
    state, ids = 1, []
    for _ in range(count * length):
        state = state * 48271 % 2147483647
        ids.append(state % vocabulary)
    return torch.tensor(ids).view(count, length)


def adapter_config():
    from peft import LoraConfig

    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")


def train_by_loop(model, batch, lora, bf16, steps):
    """Seconds of all steps but the first."""
    if lora:
        from peft import get_peft_model

        model = get_peft_model(model, adapter_config())
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.0)
    begin = 0.0
    for step in range(steps + 1):
        if step == 1:
            begin = time.time()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step + 1} loss {loss.item():.5f}")
    return time.time() - begin


def plain_tokenizer(config):
    """TRL wants a tokenizer also of rows that are ids already; the folder has none."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {f"t{i}": i for i in range(config.vocab_size)}
    end = f"t{config.eos_token_id or 0}"
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t0"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=end)


def train_by_trl(model, batch, lora, bf16, steps):
    """The same; every step sees the same rows."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    ends = []

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            ends.append(time.time())

        def on_log(self, args, state, control, logs=None, **kwargs):
            if logs and "loss" in logs:
                print(f"step {state.global_step} loss {logs['loss']}")

    rows = batch.tolist()
    data = Dataset.from_dict({"input_ids": rows * (steps + 1), "labels": rows * (steps + 1)})
    with tempfile.TemporaryDirectory() as folder:
        config = SFTConfig(
            output_dir=folder, use_cpu=True, bf16=bf16, per_device_train_batch_size=len(rows),
            max_steps=steps + 1, learning_rate=1e-5, lr_scheduler_type="constant", max_length=None,
            gradient_checkpointing=False, logging_steps=1, save_strategy="no", report_to="none",
            disable_tqdm=True, shuffle_dataset=False,
            dataset_kwargs={"skip_prepare_dataset": True})
        trainer = SFTTrainer(model=model, args=config, train_dataset=data, callbacks=[Clock()],
                             peft_config=adapter_config() if lora else None,
                             processing_class=plain_tokenizer(model.config))
        trainer.train()
    return ends[-1] - ends[0]


def main():
    folder, mode, compute, rows, length, steps = sys.argv[1:7]
    rows, length, steps = int(rows), int(length), int(steps)
    by_trl = sys.argv[7:] == ["trl"]
    torch.set_num_threads(2)
    lora, bf16 = mode == "lora", compute == "bf16"
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16 if bf16 and lora else torch.float32)
    batch = rows_of(rows, length, model.config.vocab_size)
    seconds = (train_by_trl if by_trl else train_by_loop)(model, batch, lora, bf16, steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rows * length * steps / seconds:.1f} tokens/s, peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
