"""Adapters that PEFT writes, under onset: the logits are PEFT's, and merged models are models that
transformers loads.

    peft_test.py SOURCE_FOLDER ONSET_PROGRAM

Exit code 77, with a message, where PEFT is not installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}; set ONSET_PEER_PYTHON to a Python with transformers and peft")
    sys.exit(77)

SOURCE, ONSET = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
IDS = [1, 17, 42, 99, 5, 63]
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
warnings.filterwarnings("ignore")

# Fused projections, norms of their own kind, tied heads, experts one by one and as one parameter.
CASES = {
    "llama": dict(target_modules="all-linear"),
    "qwen2": dict(target_modules=["q_proj", "down_proj", "lm_head"], use_rslora=True,
                  rank_pattern={r"layers\.1\.self_attn\.q_proj": 2}, alpha_pattern={"down_proj": 3}),
    "qwen3": dict(target_modules=r".*layers\.[01]\..*(q|k|v)_proj",
                  modules_to_save=["lm_head", "q_norm"]),
    "phi3": dict(target_modules=["qkv_proj", "gate_up_proj"], layers_to_transform=[1]),
    "gemma3": dict(target_modules=["o_proj"], modules_to_save=["input_layernorm", "embed_tokens"]),
    "olmo2": dict(target_modules="all-linear", exclude_modules=["v_proj"]),
    "deepseek_v3": dict(target_modules=["q_b_proj", "kv_b_proj", "kv_a_proj_with_mqa"]),
    "qwen3_moe": dict(target_modules=["q_proj"],
                      target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
    "mixtral": dict(target_modules=["v_proj"], target_parameters=["mlp.experts.down_proj"]),
}


def data(name):
    return os.path.join(SOURCE, "tests", "data", "models", name)


def onset(*arguments):
    done = subprocess.run([ONSET, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"onset {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32).eval()


def logits(model):
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0]


class PeftAdapters(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def adapted(self, name, options):
        """The model with a drawn adapter, which is saved."""
        torch.manual_seed(0)
        model = peft.get_peft_model(load(data(name)), peft.LoraConfig(
            r=4, lora_alpha=6, task_type="CAUSAL_LM", **options)).eval()
        with torch.no_grad():
            for key, value in model.named_parameters():
                if value.requires_grad:
                    value.add_(torch.randn_like(value) * (0.05 if "lora_" in key else 0.01))
        model.save_pretrained(self.path("adapter"))
        return model

    def onset_logits(self, model, *more):
        onset("capture", model, "--ids", ",".join(map(str, IDS)), "--sites", "logits",
              "-o", self.path("out.safetensors"), *more)
        return load_file(self.path("out.safetensors"))["0.logits"]

    def test_logits_and_merged_models(self):
        for name, options in CASES.items():
            with self.subTest(name):
                expected = logits(self.adapted(name, options))
                found = self.onset_logits(data(name), "--adapter", self.path("adapter"))
                torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)
                merged = self.path("merged_" + name)
                onset("merge", data(name), "--adapter", self.path("adapter"), "-o", merged,
                      "--dtype", "f32", "--quiet")
                torch.testing.assert_close(logits(load(merged)), expected, atol=2e-4, rtol=1e-4)
                with open(os.path.join(merged, "config.json"), encoding="utf-8") as file:
                    self.assertIn("fingerprint", json.load(file)["onset"]["adapter"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
