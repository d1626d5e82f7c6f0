"""Prefill of random tokens with transformers, to set beside bench/model_bench.

    prefill_peer.py MODEL_FOLDER [TOKENS] [THREADS]

Prints tokens/s in float32 and bfloat16, the median of nine runs.
"""

import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM

folder = sys.argv[1]
tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 512
torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
for dtype in (torch.float32, torch.bfloat16):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    if hasattr(model.config, "num_experts_per_tok"):
        model.set_experts_implementation("grouped_mm")
    ids = torch.randint(0, model.config.vocab_size, (1, tokens))
    times = []
    with torch.no_grad():
        for run in range(10):
            begin = time.perf_counter()
            model(ids, use_cache=False, logits_to_keep=1)
            times.append(time.perf_counter() - begin)
    print(f"{dtype}: {tokens / statistics.median(times[1:]):.0f} tokens/s")
