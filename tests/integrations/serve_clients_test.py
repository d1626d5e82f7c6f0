"""onset serve with clients that others wrote: the openai package, and lm-eval through
/v1/completions beside lm-eval's own transformers backend on the same file.

    serve_clients_test.py ONSET_PROGRAM MODEL.gguf

Exit code 77, with a message, where the openai package or the model is not there; lm-eval's part is
left out where lm_eval, transformers or gguf are not installed.
"""

import os
import subprocess
import sys
import tempfile
import unittest

try:
    import openai
except ImportError as missing:
    print(f"skipped: {missing}; set ONSET_PEER_PYTHON to a Python with the openai package")
    sys.exit(77)

ONSET, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
if not os.path.exists(MODEL):
    print(f"skipped: the demonstration model is not at {MODEL}")
    sys.exit(77)

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
CONTINUATIONS = [("The capital of France is", " Paris"), ("The capital of France is", " a banana"),
                 ("Water freezes at zero degrees", " Celsius"), ("A dog says", " moo"),
                 ("The sun rises in the", " east and sets in the west")]


class ServeClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([ONSET, "serve", MODEL, "--port", "0", "--alias", "smol"],
                                      stderr=subprocess.PIPE, text=True)
        for line in cls.server.stderr:
            if line.startswith("listening on "):
                cls.url = line.split()[-1] + "/v1"
                break
        cls.client = openai.OpenAI(base_url=cls.url, api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        assert cls.server.wait(30) == 0
        cls.server.stderr.close()

    def chat(self, **more):
        return self.client.chat.completions.create(
            model="smol", messages=QUESTION, max_tokens=12, temperature=0, **more)

    def test_streams_add_up_to_the_whole_answer(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["smol"])
        for mask in ("off", "on"):
            whole = self.chat(extra_body={"wemask": mask})
            self.assertIn("Paris", whole.choices[0].message.content)
            pieces, usage = [], None
            for chunk in self.chat(extra_body={"wemask": mask}, stream=True,
                                   stream_options={"include_usage": True}):
                pieces += [choice.delta.content or "" for choice in chunk.choices]
                usage = chunk.usage or usage
            self.assertEqual("".join(pieces), whole.choices[0].message.content)
            self.assertEqual(usage, whole.usage)

    def test_log_probabilities_and_completions(self):
        answer = self.chat(logprobs=True, top_logprobs=2)
        for token in answer.choices[0].logprobs.content:
            self.assertEqual(bytes(token.bytes).decode(), token.token)
            self.assertAlmostEqual(token.logprob, token.top_logprobs[0].logprob)  # greedy
        scored = self.client.completions.create(
            model="smol", prompt=[text for text, _ in CONTINUATIONS], max_tokens=0, echo=True,
            logprobs=1)
        for (text, _), choice in zip(CONTINUATIONS, scored.choices):
            self.assertEqual(choice.text, text)
            self.assertIsNone(choice.logprobs.token_logprobs[0])
            self.assertEqual("".join(choice.logprobs.tokens), text)

    def test_refusals_are_the_packages_own_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
        self.assertEqual(caught.exception.param, "tools")
        with self.assertRaises(openai.NotFoundError):
            self.client.completions.create(model="other", prompt="a")

    def test_lm_eval_scores_as_with_transformers(self):
        try:
            import gguf  # noqa: F401
            import transformers
            from lm_eval.api.instance import Instance
            from lm_eval.models.huggingface import HFLM
            from lm_eval.models.openai_completions import LocalCompletionsAPI
        except ImportError as missing:
            self.skipTest(str(missing))
        transformers.logging.disable_progress_bar()
        folder, name = os.path.split(MODEL)
        requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(CONTINUATIONS)]
        with tempfile.TemporaryDirectory() as saved:
            transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(saved)
            ours = LocalCompletionsAPI(model="smol", base_url=self.url + "/completions",
                                       tokenizer=saved).loglikelihood(requests)
            reference = HFLM(pretrained=folder, gguf_file=name, tokenizer=saved, device="cpu",
                             dtype="float32").loglikelihood(requests)
        for (found, greedy), (expected, expected_greedy) in zip(ours, reference):
            self.assertAlmostEqual(found, expected, delta=1e-3 + 1e-3 * abs(expected))
            self.assertEqual(greedy, expected_greedy)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
