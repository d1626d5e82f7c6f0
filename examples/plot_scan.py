"""Draws what `onset scan` found: magnitude by layer, and |state| of the massive token by dimension.

    onset scan MODEL --prompt TEXT --json -o scan.json
    onset capture MODEL --prompt TEXT --sites 'layers.*.resid_post' -o states.safetensors
    python examples/plot_scan.py scan.json states.safetensors figure.png   (numpy, matplotlib)
"""
import json
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
except ImportError as error:
    sys.exit(f"plot_scan.py needs numpy and matplotlib ({error}): pip install numpy matplotlib")
if len(sys.argv) != 4:
    sys.exit(__doc__)


def read_safetensors(path):
    raw = open(path, "rb").read()
    begin = 8 + int.from_bytes(raw[:8], "little")
    kinds = {"F32": np.float32, "I64": np.int64}
    return {name: np.frombuffer(raw, kinds[t["dtype"]], int(np.prod(t["shape"])),
                                begin + t["data_offsets"][0]).reshape(t["shape"])
            for name, t in json.loads(raw[8:begin]).items() if name != "__metadata__"}


scan, states = json.load(open(sys.argv[1])), read_safetensors(sys.argv[2])
me, candidate = scan["me_layer"], scan["candidate"]  # candidate: where there is no ME layer
shown = candidate["prompt"] if me is None else [p["me_layer"] for p in scan["prompts"]].index(me)
ids, layers = scan["prompts"][shown]["ids"], scan["prompts"][shown]["layers"]
if f"{shown}.ids" not in states or states[f"{shown}.ids"].tolist() != ids:
    sys.exit(f"{sys.argv[2]} holds other ids for prompt {shown} than {sys.argv[1]}: "
             "give scan and capture the same prompts, and the same --bos and --chat")
me, token = (candidate["layer"], candidate["token"]) if me is None else (me, layers[me]["token"])
state = np.abs([states[f"{shown}.layers.{l}.resid_post"][token] for l in range(len(layers))])  # [L, D]

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.semilogy([l["max_abs"] for l in layers], "o-", color="tab:red", label="largest |x|")
left.semilogy([l["median_abs"] for l in layers], color="gray", label="median |x|")
left.axvline(me, linestyle=":", color="tab:red", label=f"layer {me}")
left.set(xlabel="layer", ylabel="|x|")
left.legend()
image = right.imshow(np.log10(state + 1e-3), aspect="auto", origin="lower", cmap="magma")
right.set(xlabel="dimension", ylabel="layer", title=f"|x| of token {token} of prompt {shown}")
figure.colorbar(image, label="log10 |x|")
figure.savefig(sys.argv[3], dpi=150)
