"""integrations/transformers/onset_wemask.py against the references of tests/data/models and against
onset itself: masked logits under hooks, behind the exported prefix, left-padded and decoding.

    transformers_test.py SOURCE_FOLDER ONSET_PROGRAM

Exit code 77, with a message, where transformers is not installed.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}; set ONSET_PEER_PYTHON to a Python with transformers")
    sys.exit(77)

SOURCE, ONSET = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.join(SOURCE, "integrations", "transformers"))
import onset_wemask  # noqa: E402

FAMILIES = ("llama_me", "qwen3", "gemma2", "mistral", "phi3_long", "deepseek_v2", "deepseek_v3")
# transformers computes chunks across the original context of longrope with two sets of frequencies,
# and its generate() drops the cache there.
CHUNKED_FAMILIES = tuple(name for name in FAMILIES if name != "phi3_long")
# With a sliding window transformers counts padding as tokens, mask or no mask.
PADDED_FAMILIES = ("llama_me", "qwen3", "deepseek_v2", "deepseek_v3")
NEW_TOKENS = 16
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def data(name):
    return os.path.join(SOURCE, "tests", "data", "models", name)


def onset(*arguments):
    done = subprocess.run([ONSET, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"onset {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Case:
    """A model of tests/data/models with its references, and a folder for masks."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            data(name), attn_implementation="eager", dtype=torch.float32).eval()
        self.reference = load_file(os.path.join(data(name), "reference.safetensors"))
        self.ids = self.reference["input_ids.b"]  # [1, T]

    def mask_file(self, *options):
        path = os.path.join(self.folder, "mask.json")
        onset("mask", "make", data(self.name), "--ids", "1,17,9", "-o", path, "--quiet",
              *(options or ("--k", "4", "--from-layer", "1")))
        return path

    def mask(self, *options):
        return onset_wemask.read_mask(self.mask_file(*options))

    def prefix(self, *options):
        path = os.path.join(self.folder, "prefix.safetensors")
        onset("mask", "export", data(self.name), "--wemask", self.mask_file(*options), "-o", path,
              "--token-id", str(int(self.ids[0, 0])))
        return onset_wemask.read_prefix(path, self.model)

    def of_onset(self, mask_path, ids):
        path = os.path.join(self.folder, "capture.safetensors")
        onset("capture", data(self.name), "--ids", ",".join(map(str, ids.tolist())), "--sites",
              "logits", "--wemask", mask_path, "-o", path)
        return load_file(path)["0.logits"]

    def logits(self, ids, **arguments):
        return self.model(ids, **arguments).logits

    def padded(self):
        """A short row left of which there is padding, and the whole one."""
        short = self.ids[:, :5]
        gap = self.ids.shape[1] - short.shape[1]
        ids = torch.cat([torch.cat([torch.zeros(1, gap, dtype=torch.long), short], 1), self.ids])
        attended = torch.ones_like(ids)
        attended[0, :gap] = 0
        return short, ids, attended


def of(*names):
    """The test for each of these models."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for name in names:
                with self.subTest(name), tempfile.TemporaryDirectory() as folder, \
                        torch.no_grad():
                    test(self, Case(name, folder))
        return run
    return decorate


class TransformersTest(unittest.TestCase):
    def close(self, found, expected, what):
        excess = ((found - expected).abs() - (1e-4 + 1e-4 * expected.abs())).max().item()
        self.assertLessEqual(excess, 0.0, what)

    @of(*FAMILIES)
    def test_hooks_give_the_masked_logits(self, case):
        for placement, key in (("post_norm", "wemask_post"), ("pre_norm", "wemask_pre")):
            mask = case.mask("--k", "4", "--from-layer", "1", "--placement", placement)
            with onset_wemask.apply(case.model, mask):
                found = case.logits(case.ids)[0]
            self.close(found, case.reference[f"logits.{key}.b"], placement)
        self.close(case.logits(case.ids)[0], case.reference["logits.b"], "removed again")

    @of(*CHUNKED_FAMILIES)
    def test_hooks_mean_the_same_tokens_with_a_cache(self, case):
        expected = case.reference["logits.wemask_post.b"]
        with onset_wemask.apply(case.model, case.mask()):
            first = case.model(case.ids[:, :6], use_cache=True)
            name = onset_wemask._cache_name(case.model)
            rest = case.model(case.ids[:, 6:], **{name: getattr(first, name)})
        self.close(torch.cat([first.logits, rest.logits], 1)[0], expected, "in two chunks")

    def greedy(self, case, **inputs):
        return case.model.generate(**inputs, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS,
                                   do_sample=False, output_logits=True, eos_token_id=None,
                                   return_dict_in_generate=True)

    def check_greedy(self, case, found):
        self.assertEqual(found.sequences[0, case.ids.shape[1]:].tolist(),
                         case.reference["wemask.greedy.tokens.b"].tolist())
        self.close(torch.cat(found.logits), case.reference["wemask.greedy.logits.b"], "greedy")

    @of(*FAMILIES)
    def test_hooks_mask_no_decoded_token(self, case):
        with onset_wemask.apply(case.model, case.mask()):
            self.check_greedy(case, self.greedy(case, input_ids=case.ids,
                                                attention_mask=torch.ones_like(case.ids)))

    @of(*FAMILIES)
    def test_the_prefix_gives_the_masked_logits_without_mask_code(self, case):
        for placement, key in (("post_norm", "wemask_post"), ("pre_norm", "wemask_pre")):
            prefix = case.prefix("--k", "4", "--from-layer", "1", "--placement", placement)
            found = case.model(**prefix.for_forward(case.ids)).logits[0]
            self.close(found, case.reference[f"logits.{key}.b"][1:], placement)
        if case.name in CHUNKED_FAMILIES:
            self.check_greedy(case, self.greedy(case, **case.prefix().for_generate(case.ids)))
        else:
            with self.assertRaisesRegex(onset_wemask.WeMaskError, "would be lost"):
                case.prefix().for_generate(case.ids)

    @of(*PADDED_FAMILIES)
    def test_left_padded_rows_are_what_they_are_alone(self, case):
        short, ids, attended = case.padded()
        gap = ids.shape[1] - short.shape[1]
        with onset_wemask.apply(case.model, case.mask()):
            alone = case.logits(short)[0]
            positions = (attended.cumsum(1) - 1).clamp(min=0)
            for given in ({}, {"position_ids": positions}):
                together = case.logits(ids, attention_mask=attended, **given)
                self.close(together[0, gap:], alone, "the short row")
                self.close(together[1], case.reference["logits.wemask_post.b"], "the whole row")
            generated = self.greedy(case, input_ids=ids, attention_mask=attended)
            solo = self.greedy(case, input_ids=short, attention_mask=torch.ones_like(short))
        self.close(torch.stack(generated.logits, 1)[0], torch.cat(solo.logits), "short, decoded")
        prefix = case.prefix()
        together = case.model(**prefix.for_forward(ids, attended)).logits
        self.close(together[0, gap:], alone[1:], "the short row behind the prefix")
        self.close(together[1], case.reference["logits.wemask_post.b"][1:], "the whole row")
        behind = self.greedy(case, **prefix.for_generate(ids, attended))
        self.close(torch.stack(behind.logits, 1)[0], torch.cat(solo.logits), "short, decoded")

    @of("llama_me", "qwen3")
    def test_packed_rows_are_masked_at_the_beginning_of_each_text(self, case):
        two = torch.cat([case.ids[:, :5], case.ids], 1)
        positions = torch.cat([torch.arange(5), torch.arange(case.ids.shape[1])])[None]
        mask = case.mask()
        masked = []
        with onset_wemask.apply(case.model, mask) as applied:
            rows = applied.rows
            applied.rows = lambda stream: masked.append(rows(stream)) or masked[-1]
            packed = case.logits(two, position_ids=positions, use_cache=False)[0]
        self.assertEqual(masked[0][0].nonzero().flatten().tolist(), [0, 5])
        self.close(packed[5:], case.reference["logits.wemask_post.b"], "the second text")

    @of("llama_me", "qwen3_me", "gemma2", "deepseek_v3")
    def test_every_kind_of_mask_equals_onset(self, case):
        common = ("--k", "4", "--from-layer", "1")
        kinds = [(*common, "--criterion", criterion, "--gamma", gamma, "--placement", placement)
                 for criterion in ("weight", "activation", "magnitude", "random", "lowest")
                 for gamma, placement in (("1", "post_norm"), ("0.5", "pre_norm"))]
        kinds += [(*common, "--token", "positions", "--position", "0", "--position", "3"),
                  (*common, "--to-layer", "1"), (*common, "--official-compat"),
                  ("--k", "4", "--from-layer", "2", "--token", "massive")]
        for options in kinds:
            if "massive" in options and not case.name.endswith("_me"):
                continue  # nothing is massive there
            path = case.mask_file(*options)
            with onset_wemask.apply(case.model, onset_wemask.read_mask(path)):
                found = case.logits(case.ids)[0]
            self.close(found, case.of_onset(path, case.ids[0]), " ".join(options))

    # transformers' norms compute in float32 whatever the model's type is.
    @of("qwen3")
    def test_gradients_pass_through_the_mask(self, case):
        model = case.model.double()

        def loss():
            return model(case.ids, labels=case.ids).loss

        with onset_wemask.apply(model, case.mask()), torch.enable_grad():
            loss().backward()
            weight = model.model.embed_tokens.weight
            direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1),
                                    dtype=torch.float64)
            slope = (weight.grad * direction).sum().item()
            losses, step = [], 1e-4
            for factor in (1, -2):  # one step ahead, then one behind
                weight.data += factor * step * direction
                losses.append(loss().item())
        by_differences = (losses[0] - losses[1]) / (2 * step)
        self.assertGreater(abs(slope), 1e-2)
        self.assertAlmostEqual(slope, by_differences, delta=1e-3 * abs(slope))

    @of("llama_me")
    def test_what_cannot_be_done_is_refused_with_the_reason(self, case):
        mask = case.mask()
        other = transformers.AutoModelForCausalLM.from_pretrained(data("qwen3"))
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "another model"):
            onset_wemask.apply(other, mask)
        without_norm = transformers.AutoModelForCausalLM.from_pretrained(data("olmo2"))
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "no norm before attention"):
            onset_wemask.apply(without_norm, mask)
        with onset_wemask.apply(case.model, mask):
            with self.assertRaisesRegex(onset_wemask.WeMaskError, "attention mask must be"):
                case.logits(case.ids, attention_mask=torch.ones(1, 1, 14, 14))
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "begins with another"):
            case.prefix().for_forward(torch.tensor([[9, 1, 4]]))
        for key, value, reason in (("k", 0, "out of range"), ("criterion", "x", "known are"),
                                   ("sed", 1, "unknown")):
            with self.assertRaisesRegex(onset_wemask.WeMaskError, reason):
                onset_wemask.check_mask({**mask, key: value})

    @of("gemma2")
    def test_other_gains_are_warned_of_and_refused_where_strict(self, case):
        mask, path = case.mask(), os.path.join(case.folder, "prefix.safetensors")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            onset_wemask.apply(case.model, mask).remove()
            case.prefix()
        case.model.model.layers[1].input_layernorm.weight.data[3] += 0.5
        with self.assertWarnsRegex(UserWarning, "other norm gains"):
            onset_wemask.apply(case.model, mask).remove()
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "other norm gains"):
            onset_wemask.apply(case.model, mask, strict=True)
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "other norm gains"):
            onset_wemask.read_prefix(path, case.model)

    @of("llama_me")
    def test_a_mask_beside_a_checkpoint_is_not_in_a_plain_save(self, case):
        mask = case.mask()
        saved, again = (os.path.join(case.folder, name) for name in ("saved", "again"))
        with self.assertRaisesRegex(onset_wemask.WeMaskError, "no saved checkpoint"):
            onset_wemask.save_mask_beside(case.folder, mask)
        case.model.save_pretrained(saved)
        with self.assertWarnsRegex(UserWarning, "leaves it behind"):
            onset_wemask.save_mask_beside(saved, mask)
        self.assertEqual(onset_wemask.load_mask_beside(saved), mask)
        with open(os.path.join(saved, "wemask.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), mask)
        transformers.AutoModelForCausalLM.from_pretrained(saved).save_pretrained(again)
        self.assertIsNone(onset_wemask.load_mask_beside(again))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
