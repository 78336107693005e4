#!/usr/bin/env python3
"""Models written in PyTorch, four ways in alternation: hlorun, XLA:CPU, PyTorch eager, torch.compile. One run, ratios of all.

    python3 bench/torch_models.py [--rounds 5] [--iterations 5] [--keep FOLDER] [--constant] [--device D] [--json FILE] [--plot FILE.png]
                                  [--most RATIO] [NAME ...]

bench/bert.py and bench/torch_networks.py hold them; scripts/export_torch.py exports each, into --keep where it is not there yet.
Each round has other inputs, of which all four take their times, copied anew before each iteration by XLA:CPU, and by PyTorch with the
values in other places; hlorun's result is compared with PyTorch's in each round. --constant: weights that do not change, for hlorun (--constant_params) and
inductor (freezing); else each packs them in each run as it likes. Times are medians over the rounds of a round's median, in
brackets the best; ratios are hlorun's time over the other's, below 1 hlorun is faster: the median of the rounds, and their
largest over their smallest. What torch.compile cannot run is "not measured". Exits 1 where hlorun or XLA:CPU fails, or a model's ratio
to torch.compile is above --most or was not measured. Needs torch==2.13.0 torchax==0.0.13 jax==0.10.2 (and matplotlib for --plot).
"""
import math
import os
import statistics
import sys
import tempfile

import numpy as np
import torch

import bert
import torch_networks
from runs import HERE, Failed, arguments, chosen, cpu, on_xla_cpu, report, run, save_rows
from torch_peer import torch_report

# name: (what scripts/export_torch.py takes, the function itself, inputs of a seed)
MODELS = {
    "bert": ("bert.py:make", bert.make, bert.arguments),
    "mlp": ("torch_networks.py:mlp", torch_networks.mlp, torch_networks.mlp_inputs),
    "residual": ("torch_networks.py:residual", torch_networks.residual, torch_networks.residual_inputs),
    "vit": ("torch_networks.py:vit", torch_networks.vit, torch_networks.vit_inputs),
}
SIDES = {"hlorun": "hlorun", "xla": "XLA:CPU", "eager": "eager", "compiled": "torch.compile"}
PEERS = [side for side in SIDES if side != "hlorun"]


def exported(source, folder):
    """FOLDER/module.hlo and FOLDER/inputs, weights first. Returns the number of inputs."""
    if not os.path.exists(os.path.join(folder, "module.hlo")):
        # In a process of its own: torchax stays in the way of torch.compile.
        run([sys.executable, os.path.join(HERE, "..", "scripts", "export_torch.py"), os.path.join(HERE, source), "-o", folder])
    return len(os.listdir(os.path.join(folder, "inputs")))


def compiled(model, batch):
    """torch.compile's of the model, compiled for the batch; None where it has no compiler, or cannot."""
    try:
        made = torch.compile(model)
        made(*batch)
        return made
    except Exception as trouble:  # pylint: disable=broad-except  inductor raises what its parts raise
        print(f"torch.compile: {str(trouble).strip().splitlines()[0]}", file=sys.stderr)
        return None


def write_batch(folder, count, batch, expected):
    for i, tensor in enumerate(batch):
        np.save(os.path.join(folder, "inputs", f"{count - len(batch) + i}.npy"), tensor.numpy())
    np.save(os.path.join(folder, "expected", "0.npy"), expected.numpy())


def row_of(name, rounds):
    """`rounds`: for each side the reports of all rounds, none for a side that was not measured."""
    row = {"module": name}
    for side, reports in rounds.items():
        if not reports:
            continue
        row[f"{side}_ms"], row[f"{side}_best_ms"] = statistics.median(r["median_ms"] for r in reports), min(r["best_ms"] for r in reports)
        if side != "hlorun":
            ratios = [ours["median_ms"] / theirs["median_ms"] for ours, theirs in zip(rounds["hlorun"], reports)]
            row[f"{side}_ratios"], row[f"{side}_ratio"], row[f"{side}_spread"] = ratios, statistics.median(ratios), max(ratios) / min(ratios)
    ours, xla = rounds["hlorun"][-1], rounds["xla"][-1]
    return {**row, "compile_s": ours["compile_s"], "peak_bytes": ours["peak_bytes"], "xla_peak_bytes": xla["peak_bytes"]}


def measure(name, flags, folder):
    """A row; {"module", "error"} where hlorun or XLA:CPU fails."""
    source, make, inputs = MODELS[name]
    try:
        count = exported(source, folder)
        model, batch = make()
        command = [flags.hlorun, "--json", f"--inputs={folder}/inputs", f"--expect={folder}/expected", f"--iterations={flags.iterations}",
                   *([f"--device={flags.device}"] if flags.device else []),
                   *([f"--constant_params=0-{count - len(batch) - 1}"] if flags.constant else []), f"{folder}/module.hlo"]
        rounds = {side: [] for side in SIDES}
        with torch.no_grad():
            fast = compiled(model, batch)
            for number in range(flags.rounds):
                batch = inputs(number + 1)
                write_batch(folder, count, batch, model(*batch))
                rounds["eager"].append(torch_report(model, batch, flags.iterations))
                if fast is not None:
                    fast(*batch)
                    rounds["compiled"].append(torch_report(fast, batch, flags.iterations))
                rounds["hlorun"].append(report(command))
                rounds["xla"].append(report(on_xla_cpu(f"{folder}/module.hlo", f"{folder}/inputs", flags.iterations)))
    except Failed as trouble:
        return {"module": name, "error": str(trouble)}
    return row_of(name, rounds)


def print_row(row):
    if "error" in row:
        print(f"{row['module']:10} {row['error']}", flush=True)
        return
    times = [f"{row[f'{side}_ms']:.2f} ({row[f'{side}_best_ms']:.2f})" if f"{side}_ms" in row else "not measured" for side in SIDES]
    ratios = [f"{row[f'{side}_ratio']:.2f} ({row[f'{side}_spread']:.2f})" if f"{side}_ratio" in row else "not measured" for side in PEERS]
    print(f"{row['module']:10}", *(f"{text:>18}" for text in times), *(f"{text:>13}" for text in ratios), flush=True)


def plot(rows, path):
    """Median ratios as bars, a group for each model."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    figure, axes = pyplot.subplots(figsize=(8, 0.9 * len(rows) + 1.5))
    for i, side in enumerate(PEERS):
        places = [(place + 0.25 * (i - 1), row[f"{side}_ratio"]) for place, row in enumerate(rows) if f"{side}_ratio" in row]
        axes.barh([place for place, _ in places], [ratio for _, ratio in places], 0.25, label=f"to {SIDES[side]}")
    axes.set_yticks(range(len(rows)), [row["module"] for row in rows])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("hlorun's time relative to the other's (less is faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = arguments(__doc__, rounds=5, iterations=5)
    parser.add_argument("--keep")
    parser.add_argument("--constant", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--most", type=float)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    flags = parser.parse_args()
    names = chosen(parser, flags.names, MODELS)
    if flags.constant:
        import torch._inductor.config as inductor  # pylint: disable=import-outside-toplevel
        inductor.freezing = True
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'':10}", *(f"{SIDES[side] + ' ms':>18}" for side in SIDES), *(f"{'/ ' + SIDES[side]:>13}" for side in PEERS))
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            at = os.path.join(flags.keep or folder, name)
            os.makedirs(at, exist_ok=True)
            rows.append(measure(name, flags, at))
        print_row(rows[-1])
    if flags.json:
        save_rows(flags.json, rows)
    if flags.plot:
        plot([row for row in rows if "error" not in row], flags.plot)
    over = [row for row in rows if "error" in row or (flags.most and row.get("compiled_ratio", math.inf) > flags.most)]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
