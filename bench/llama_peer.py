"""Greedy generation with llama.cpp (llama-cpp-python), to set beside bench/generate_bench.

    llama_peer.py MODEL.gguf [THREADS]

A prompt of 64 random tokens, 64 new ones; prints tokens/s of decoding at batch 1 (without the time
of the prompt) and of a prefill of 512 tokens. Medians. llama.cpp multiplies with activations
quantised to 8 bits.
"""

import random
import statistics
import sys
import time

from llama_cpp import Llama

threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
model = Llama(sys.argv[1], n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads,
              verbose=False)
random.seed(1)


def random_ids(count):
    return [random.randrange(model.n_vocab()) for _ in range(count)]


def decode_rate(count=63):
    model.reset()
    model.eval(random_ids(64))
    begin = time.perf_counter()
    for _ in range(count):
        model.eval([model.sample(temp=0.0)])
    return count / (time.perf_counter() - begin)


def prefill_rate(count=512):
    ids = random_ids(count)
    model.reset()
    begin = time.perf_counter()
    model.eval(ids)
    return count / (time.perf_counter() - begin)


decoding = [decode_rate() for _ in range(6)]
prefill = [prefill_rate() for _ in range(6)]
print(f"decoding at batch 1: {statistics.median(decoding[1:]):.1f} tokens/s; "
      f"prefill of 512: {statistics.median(prefill[1:]):.0f} tokens/s")
