"""Models that onset saved, opened by transformers: every weight is found, the logits are those of
tests/data/models, and the tokenizer of a GGUF gives the ids of the model's own.

    saved_models_test.py SOURCE_FOLDER SAVE_PROBE ONSET_PROGRAM

Exit code 77, with a message, where transformers is not installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}; set ONSET_PEER_PYTHON to a Python with transformers")
    sys.exit(77)

SOURCE, PROBE, ONSET = (os.path.abspath(path) for path in sys.argv[1:4])
DATA = os.path.join(SOURCE, "tests", "data")
DEMO = os.path.join(SOURCE, ".deps", "models", "smollm2-135m-instruct-q4_1.gguf")
FOLDERS = ("llama", "llama3", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe",
           "deepseek_v2", "deepseek_v2_lite", "deepseek_v3", "phi3", "phi3_long", "gemma2",
           "gemma3", "olmo2")
GGUF_FOLDERS = ("llama", "llama3", "llama_me", "qwen2", "qwen3", "mixtral", "qwen3_moe",
                "deepseek_v2_lite", "deepseek_v3")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def save(model, folder, *options):
    done = subprocess.run([PROBE, model, folder, *options], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"save_probe {model}: {done.stderr}")


def load(folder, **options):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True,
        **{"dtype": torch.float32, **options})
    left = {kind: names for kind, names in info.items() if names}
    if left:
        raise AssertionError(f"{folder}: {left}")
    return model.eval()


def capture(model, ids, folder):
    path = os.path.join(folder, "capture.safetensors")
    subprocess.run([ONSET, "capture", model, "--ids", ",".join(map(str, ids)), "--sites", "logits",
                    "-o", path], check=True, capture_output=True)
    return load_file(path)["0.logits"]


class SavedModels(unittest.TestCase):
    def equals_the_reference(self, source, model):
        reference = load_file(os.path.join(source, "reference.safetensors"))
        for prompt in ("a", "b"):
            with torch.no_grad():
                found = model(reference[f"input_ids.{prompt}"].long()).logits
            torch.testing.assert_close(found, reference[f"logits.{prompt}"].view_as(found),
                                       atol=1e-4, rtol=1e-4)

    def test_folders(self):
        for name in FOLDERS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source = os.path.join(DATA, "models", name)
                save(source, folder)
                self.equals_the_reference(source, load(folder))

    def test_gguf_files(self):
        for name in GGUF_FOLDERS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source = os.path.join(DATA, "models", name)
                save(os.path.join(source, "f32.gguf"), folder)
                self.equals_the_reference(source, load(folder))

    def test_bfloat16(self):
        with tempfile.TemporaryDirectory() as folder:
            save(os.path.join(DATA, "models", "llama"), folder, "bf16")
            model = load(folder, dtype="auto")
            self.assertEqual(model.dtype, torch.bfloat16)

    def test_the_demonstration_model(self):
        if not os.path.exists(DEMO):
            self.skipTest("the demonstration model was not fetched")
        with tempfile.TemporaryDirectory() as folder:
            save(DEMO, folder)
            model = load(folder)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            with open(os.path.join(DATA, "tokenizers", "smollm2.encode.jsonl")) as lines:
                for line in lines:
                    row = json.loads(line)
                    found = tokenizer(row["text"], add_special_tokens=False)["input_ids"]
                    self.assertEqual(found, row["ids"], row["text"])
            ids = tokenizer("My favorite color is Dark Blue. 2 + 2 = 4,\n  it's so.")["input_ids"]
            with torch.no_grad():
                found = model(torch.tensor([ids])).logits[0]
            torch.testing.assert_close(found, capture(DEMO, ids, folder), atol=1e-3, rtol=1e-3)
            chat = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}],
                                                 tokenize=False, add_generation_prompt=True)
            self.assertIn("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", chat)
            self.assertEqual(model.generation_config.eos_token_id,
                             tokenizer.convert_tokens_to_ids(["<|im_end|>"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
