"""Greedy generation with transformers, to set beside bench/generate_bench.

    generate_peer.py MODEL_FOLDER [THREADS] [float32|bfloat16]

Prompts of 64 random tokens, 64 new ones; prints tokens/s of decoding at batch 1, 8 and 32 (the time
of a call without the time of its prefill) and of a prefill of 512 tokens. Medians.
"""

import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM

folder = sys.argv[1]
torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
wanted = sys.argv[3] if len(sys.argv) > 3 else None


def seconds(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


for dtype in (torch.float32, torch.bfloat16):
    if wanted and str(dtype) != f"torch.{wanted}":
        continue
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    model.generation_config.eos_token_id = None

    def generate(ids, count):
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                       max_new_tokens=count, min_new_tokens=count, pad_token_id=0)

    line = []
    with torch.no_grad():
        for batch in (1, 8, 32):
            rates = []
            for _ in range(4):
                ids = torch.randint(0, model.config.vocab_size, (batch, 64))
                first = seconds(lambda: generate(ids, 1))
                whole = seconds(lambda: generate(ids, 64))
                rates.append(batch * 63 / (whole - first))
            line.append(f"decoding at batch {batch}: {statistics.median(rates[1:]):.1f} tokens/s")
        ids = torch.randint(0, model.config.vocab_size, (1, 512))
        times = [seconds(lambda: model(ids, use_cache=True, logits_to_keep=1)) for _ in range(6)]
        line.append(f"prefill of 512: {512 / statistics.median(times[1:]):.0f} tokens/s")
    print(f"{dtype}: " + "; ".join(line), flush=True)
