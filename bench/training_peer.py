#!/usr/bin/env python3
"""The peer of training_bench: transformers (and PEFT) on the same rows.

  training_peer.py MODEL_FOLDER full|lora f32|bf16 ROWS TOKENS STEPS
"""
import resource
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    folder, mode, compute, rows, length, steps = sys.argv[1:7]
    rows, length, steps = int(rows), int(length), int(steps)
    torch.set_num_threads(2)
    dtype = torch.bfloat16 if compute == "bf16" and mode == "lora" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    if mode == "lora":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(
            model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    model.train()
    state, ids = 1, []
    for _ in range(rows * length):
        state = state * 48271 % 2147483647
        ids.append(state % model.config.vocab_size)
    batch = torch.tensor(ids).view(rows, length)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.0)
    begin = 0.0
    for step in range(steps + 1):
        if step == 1:
            begin = time.time()
        with torch.autocast("cpu", torch.bfloat16, enabled=compute == "bf16"):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step + 1} loss {loss.item():.5f}")
    rate = rows * length * steps / (time.time() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rate:.1f} tokens/s, peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
