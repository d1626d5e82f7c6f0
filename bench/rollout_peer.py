"""Sampling with transformers, to set beside bench/rollout_bench.

    rollout_peer.py MODEL_FOLDER [THREADS] [float32|bfloat16] [COMPLETIONS [LENGTH]]

Prompts of 64 random tokens, four completions each, at temperature 1; a completion that ended is
padded, and its padding is not counted.
"""

import sys
import time

import torch
from transformers import AutoModelForCausalLM

folder = sys.argv[1]
torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
dtype = getattr(torch, sys.argv[3] if len(sys.argv) > 3 else "float32")
completions = int(sys.argv[4]) if len(sys.argv) > 4 else 8
length = int(sys.argv[5]) if len(sys.argv) > 5 else 64

model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
pad = 0 if model.config.eos_token_id != 0 else 1
for turn in range(4):
    torch.manual_seed(turn)
    prompts = torch.randint(0, model.config.vocab_size, (completions // 4, 64))
    ids = prompts.repeat_interleave(4, dim=0)
    begin = time.perf_counter()
    with torch.no_grad():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True,
                             temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=length,
                             pad_token_id=pad)
    seconds = time.perf_counter() - begin
    tokens = int((out[:, 64:] != pad).sum())
    if turn > 0:
        print(f"{completions} completions, {tokens} tokens: {tokens / seconds:.1f} tokens/s",
              flush=True)
