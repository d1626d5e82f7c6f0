"""lm-evaluation-harness with transformers beside onset eval, on the same documents in one run.

    eval_peer.py MODEL_FOLDER TASK_FOLDER LM_EVAL_TASK [--shots N] [--limit N] [--threads N]
                 [--dtype float32|bfloat16] [--batch N] [--samples FILE] -- COMMAND..

MODEL_FOLDER is the model for transformers, TASK_FOLDER holds the harness's task files (paths in
them are relative to it), COMMAND is what answers the same documents with onset, for example
`build/release/onset eval MODEL --data DIR --tasks piqa --limit 500 -o OUT --log-samples`. It is run
before and after the harness. Prints wall and processor seconds of each: of onset the whole process,
of the harness its evaluation without its start (imports and the model's loading are printed apart).
With --samples (onset's samples_*.jsonl) also how far the log-likelihoods are apart and how many
choices differ.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("task_folder")
parser.add_argument("task")
parser.add_argument("--shots", type=int, default=0)
parser.add_argument("--limit", type=int)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--samples")
args = parser.parse_args(sys.argv[1:split])
command = sys.argv[split + 1:]


def usage(who):
    spent = resource.getrusage(who)
    return spent.ru_utime + spent.ru_stime


def report(name, wall, cpu):
    print(f"{name}: {wall:.1f} s, {cpu:.1f} processor seconds, load {os.getloadavg()[0]:.1f}", flush=True)


def run_onset():
    if not command:
        return
    wall, cpu = time.perf_counter(), usage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report("onset", time.perf_counter() - wall, usage(resource.RUSAGE_CHILDREN) - cpu)


run_onset()
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
begin = time.perf_counter()
import torch  # noqa: E402
from lm_eval import simple_evaluate  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

torch.set_num_threads(args.threads)
imported = time.perf_counter()
model = HFLM(pretrained=os.path.abspath(args.model), dtype=args.dtype, device="cpu", batch_size=args.batch)
print(f"harness: imports {imported - begin:.1f} s, loading {time.perf_counter() - imported:.1f} s", flush=True)
here = os.getcwd()
os.chdir(args.task_folder)
wall, cpu = time.perf_counter(), usage(resource.RUSAGE_SELF)
found = simple_evaluate(model=model, tasks=[args.task], num_fewshot=args.shots, limit=args.limit,
                        task_manager=TaskManager(include_path="."), bootstrap_iters=0, log_samples=True)
report(f"harness, {args.dtype}", time.perf_counter() - wall, usage(resource.RUSAGE_SELF) - cpu)
print(json.dumps(found["results"][args.task]))
os.chdir(here)
run_onset()

if args.samples:
    with open(args.samples) as file:
        ours = {row["doc_id"]: row for row in map(json.loads, file)}
    largest, changed, count = 0.0, 0, 0
    for row in found["samples"][args.task]:
        theirs = [float(answer[0][0]) for answer in row["resps"]]
        mine = [float(answer[0][0]) for answer in ours[row["doc_id"]]["resps"]]
        largest = max([largest] + [abs(a - b) for a, b in zip(theirs, mine)])
        changed += theirs.index(max(theirs)) != mine.index(max(mine))
        count += 1
    print(f"{count} documents: log-likelihoods differ by {largest:.2g} at most, {changed} choices differ")
