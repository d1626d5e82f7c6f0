"""What a training step costs on paper: the tables of docs/scaling.md.

    step_costs.py [--flops FULL LORA] [--network GB_S] [--decode TOKENS_S] ...

Memory follows onset's own plan (src/onset/train/memory_plan.h), time is floating-point operations
by a measured rate, traffic is what the ranks' sum of gradients sends. Rates are of one machine.
"""

import argparse
from dataclasses import dataclass

FLOAT = 4
HALF = 2
GIB = 2.0**30


@dataclass
class Shape:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    tied: bool
    qk_norm: bool = False

    def linears(self):
        """(inputs, outputs) of the linear layers of a block."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return [(self.hidden, q), (self.hidden, kv), (self.hidden, kv), (q, self.hidden),
                (self.hidden, self.ffn), (self.hidden, self.ffn), (self.ffn, self.hidden)]

    def head(self):
        return self.vocabulary * self.hidden

    def blocks(self):
        return self.layers * sum(a * b for a, b in self.linears())

    def weights(self):
        return self.blocks() + self.head() * (1 if self.tied else 2)

    def adapter(self, rank):
        return self.layers * sum(rank * (a + b) for a, b in self.linears())

    def block_bytes(self, lora):
        """What a block keeps of a token in bf16 compute; the inputs of trained layers are rounded."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        norms = FLOAT * (2 * self.hidden + q + 2 * kv + (q + kv if self.qk_norm else 0))
        inputs = (FLOAT if lora else HALF) * (2 * self.hidden + q)
        return norms + inputs + HALF * 2 * self.ffn

    def work_bytes(self):
        return FLOAT * (6 * self.hidden + 5 * self.ffn)


SHAPES = [
    Shape("SmolLM2-135M", 30, 576, 9, 3, 64, 1536, 49152, True),
    Shape("Qwen3-4B", 36, 2560, 32, 8, 128, 9728, 151936, True, qk_norm=True),
    Shape("Llama-3.1-8B", 32, 4096, 32, 8, 128, 14336, 128256, False),
]


def memory(shape, lora, tokens, rank, checkpointing):
    weights = shape.weights()
    trained = shape.adapter(rank) if lora else weights
    kept = shape.layers * shape.block_bytes(lora)
    if checkpointing:
        kept = shape.layers * shape.hidden * FLOAT + shape.block_bytes(lora)
    parts = {
        "weights": weights * (HALF if lora else FLOAT) + (FLOAT * trained if lora else 0),
        "gradients": FLOAT * trained,
        "moments": 2 * FLOAT * trained,
        "activations": tokens * (kept + shape.work_bytes()),
        "head": FLOAT * (16 << 20) + (HALF + (0 if lora else FLOAT)) * shape.head(),
    }
    # Several micro-batches make a step: gradients stay beside activations.
    return parts, sum(parts.values())


def operations(shape, lora, checkpointing):
    """A token: forward 2, gradient by inputs 2, by weights 2, the blocks' forward pass again 2."""
    passes = 4 if lora else 6
    total = passes * (shape.blocks() + shape.head())
    return total + (2 * shape.blocks() if checkpointing else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flops", type=float, nargs=2, default=[480, 430],
                        metavar=("FULL", "LORA"), help="GFLOP/s of a training step, bf16")
    parser.add_argument("--update", type=float, default=3500, help="AdamW, million weights a second")
    parser.add_argument("--network", type=float, nargs="*", default=[1.25, 12.5],
                        help="GB/s each way between machines")
    parser.add_argument("--decode", type=float, default=720,
                        help="tokens/s of SmolLM2's rollouts at 32 rows")
    parser.add_argument("--tokens", type=int, default=65536, help="of a step, all ranks together")
    parser.add_argument("--micro-batch", type=int, default=4096, help="tokens")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16, help="of the adapter")
    parser.add_argument("--rollout", type=int, default=64 * 8 * 256, help="new tokens of a GRPO step")
    args = parser.parse_args()
    base = SHAPES[0].blocks() + SHAPES[0].head()
    for shape in SHAPES:
        print(f"{shape.name}: {shape.weights() / 1e9:.3f} billion weights, "
              f"adapter {shape.adapter(args.rank) / 1e6:.1f} million")
        for lora in (False, True):
            parts, whole = memory(shape, lora, args.micro_batch, args.rank, True)
            trained = shape.adapter(args.rank) if lora else shape.weights()
            work = operations(shape, lora, True) * args.tokens
            rate = args.flops[1 if lora else 0] * 1e9
            alone = work / rate
            sent = 2 * (args.ranks - 1) / args.ranks * FLOAT * trained
            print(f"  {'LoRA' if lora else 'full'}: memory {whole / GIB:.1f} GiB ("
                  + ", ".join(f"{name} {size / GIB:.2f}" for name, size in parts.items()) + ")")
            print(f"    {work / 1e15:.2f} PFLOP a step: {alone:,.0f} s on one such machine, "
                  f"{alone / args.ranks:,.0f} s on {args.ranks}; AdamW "
                  f"{trained / args.update / 1e6:.2f} s; each rank sends {sent / 1e9:.2f} GB: "
                  + ", ".join(f"{sent / 1e9 / speed:.2f} s at {speed:g} GB/s"
                              for speed in args.network))
        decode = args.decode * base / (shape.blocks() + shape.head())
        print(f"  rollouts: {decode:.1f} tokens/s, {args.rollout:,} tokens in "
              f"{args.rollout / decode:,.0f} s, on {args.ranks} machines "
              f"{args.rollout / decode / args.ranks:,.0f} s")


if __name__ == "__main__":
    main()
