#!/usr/bin/env python3
"""Modules without annotations, cut by hlorun itself, beside the same modules as annotated by hand: right, and how fast.

  bench/scaling/auto_shard.py [--shared=../shared] [--keep=FOLDER] [--ranks=2,4] [--rounds=3] [--only=NAME,..] [--build=build]

`mpirun -n N hlorun` of SHARED/models/sharded/NAME_N.hlo alternates with the same without its shardings. "training" is
SHARED/models/training/imagenette.hlo, which nobody annotated. Each run compares with XLA:CPU's outputs of the program
without annotations, which are made in --keep where they are missing. "transformer" is bench/scaling/transformer_step.py,
compared with JAX's outputs (needs jax); by hand its batch is cut. --memory_limit goes to the runs without annotations.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
from launcher import mpirun  # noqa: E402  found through the path above
from reference import error_bounds, reference  # noqa: E402

# name: (data parameters, bound of integer inputs), as in SHARED/models/README.md
MODELS = {"imagenette": ("102", None), "vit": ("199", None), "cappa": ("215", "32000"), "training": ("165", "10")}


def without_shardings(text, shared):
    """As SHARED/xla_reference.py makes it for XLA:CPU."""
    sys.path.insert(0, shared)
    import xla_reference  # pylint: disable=import-outside-toplevel,import-error
    return xla_reference.unpartitioned(text)


class Job:
    """A module without annotations, the same as annotated by hand (or None), and the folder of inputs and expected outputs."""

    def __init__(self, name, ranks, flags):
        models = os.path.join(flags.shared, "models")
        self.bounds, self.hand = [], None
        if name == "transformer":
            self.folder = os.path.join(flags.keep, name)
            self.module, self.hand = transformer(self.folder, ranks)
            return
        normal, integers = MODELS[name]
        if name == "training":
            self.module, self.folder = os.path.join(models, "training", "imagenette.hlo"), os.path.join(flags.keep, name, "data")
        else:
            self.hand = os.path.join(models, "sharded", f"{name}_{ranks}.hlo")
            self.module, self.folder = (os.path.join(flags.keep, f"{name}_{ranks}{end}") for end in (".hlo", "/data"))
            with open(self.hand, encoding="utf-8") as source, open(self.module, "w", encoding="utf-8") as target:
                target.write(without_shardings(source.read(), flags.shared))
        trouble = reference(flags.shared, self.module, self.folder, normal, integers)
        if trouble:
            sys.exit(f"{name}: XLA:CPU: {trouble}")
        self.bounds = error_bounds(self.module, os.path.join(self.folder, "expected"))


def transformer(folder, ranks):
    """The exported step, and the same with the batch of its words cut over the ranks."""
    step = os.path.join(ROOT, "bench", "scaling", "transformer_step.py")
    module, hand = os.path.join(folder, "module.hlo"), os.path.join(folder, f"hand_{ranks}.hlo")
    if not os.path.exists(module):
        subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "export_jax.py"), f"{step}:step", "--arguments",
                        f"{step}:example_arguments", "-o", folder], check=True, stdout=subprocess.DEVNULL)
    with open(module, encoding="utf-8") as source:
        text, cuts = re.subn(r"(%words\S* = s32\S* parameter\(\d+\))", rf"\1, sharding={{devices=[{ranks},1]<=[{ranks}]}}", source.read())
    if cuts != 1:
        sys.exit(f"{module}: no single parameter %words")
    with open(hand, "w", encoding="utf-8") as target:
        target.write(text)
    return module, hand


def run(flags, module, ranks, folder, extra):
    command = ["timeout", "600", *mpirun(ranks), os.path.join(flags.build, "bin", "hlorun"), "--json", "--warmup=0",
               f"--iterations={flags.iterations}", f"--inputs={folder}/inputs", f"--expect={folder}/expected", *extra, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")), {})
    choice = next((line.split("sharding: ", 1)[1].split(" (")[0] for line in done.stderr.splitlines() if "sharding: " in line), "")
    verdict = {0: "equal", 1: "DIFFERENT"}.get(done.returncode, "TROUBLE: " + (done.stderr.strip().splitlines() or [""])[-1])
    return report.get("best_ms", float("nan")), report.get("peak_bytes", 0) / 2**20, choice, verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", os.path.join(os.path.dirname(ROOT), "shared")))
    parser.add_argument("--keep", default="")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--only", default="imagenette,vit,training,transformer")
    parser.add_argument("--memory_limit", default="")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    flags = parser.parse_args()
    flags.keep = flags.keep or tempfile.mkdtemp(prefix="hlorun_auto_shard_")
    os.makedirs(flags.keep, exist_ok=True)
    extra = [f"--memory_limit={flags.memory_limit}"] if flags.memory_limit else []
    wrong = 0
    print("| module | ranks | choice | against XLA:CPU | ms | peak MiB | by hand ms | peak MiB | auto / hand |\n|---|---|---|---|---|---|---|---|---|")
    for name in flags.only.split(","):
        for ranks in map(int, flags.ranks.split(",")):
            job = Job(name, ranks, flags)
            ours, theirs = [], []
            for _ in range(flags.rounds):
                ours.append(run(flags, job.module, ranks, job.folder, job.bounds + extra))
                if job.hand:
                    theirs.append(run(flags, job.hand, ranks, job.folder, job.bounds))
            own = statistics.median(r[0] for r in ours)
            verdicts = {r[3] for r in ours + theirs}
            wrong += verdicts != {"equal"}
            row = f"| {name} | {ranks} | {ours[0][2]} | {', '.join(sorted(verdicts))} | {own:.0f} | {ours[0][1]:.0f} | "
            if theirs:
                other = statistics.median(r[0] for r in theirs)
                row += f"{other:.0f} | {theirs[0][1]:.0f} | {own / other:.2f} |"
            else:
                row += "none | | |"
            print(row, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
