#!/usr/bin/env python3
"""Checks real modules against XLA:CPU: every module, with weight-like inputs and with its data parameters, on every OpenCL
platform, with both classes of schedules. Prints a table and exits 1 when anything differs.

    python3 scripts/check_models.py [--shared ../shared] [--hlorun build/bin/hlorun] [--only REGEX] [--keep DIR]
                                    [--platforms pocl,intel] [--classes cpu,gpu] [--iterations N] [--zeroed]
                                    [--flag=--device_spec=FILE ...]

That the check can fail is checked too: --zeroed runs each module once more, on the first platform and class, with one
input array all zeros (a data parameter where there is one), and wants --expect to tell the difference.

Inputs and expected outputs are made once by SHARED/xla_reference.py and kept in --keep (default: a temporary folder).
Needs jax, jaxlib, numpy, ml_dtypes; Intel's runtime is found in the Python environment.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from platforms import intel_environment  # noqa: E402  found through the path above
from reference import error_bounds, reference  # noqa: E402

# module: (data parameters, bound of integer inputs, hlorun flags)
F32, BF16 = [], ["--rel_error_bound=2e-2"]
MODULES = {
    "inference/imagenette": ("102", None, F32),
    "inference/resnet50": ("153", None, F32),
    "inference/vit": ("199", None, F32),
    "inference/cappa": ("215", "32000", F32),
    "training/imagenette": ("165", "10", F32),
    "small/mha_block_1x12x128x64_bf16": ("0,1,2", None, BF16),
    "small/layer_norm_1x4096x768_bf16": ("0,1,2", None, BF16),
    "small/sum_axis_1x4096x1024_bf16": ("0,1,2", None, BF16),
    "small/dlrm_keras_jax_f32_test_step": (None, "3", ["--fill_elided"]),
    "small/bench_scan_N2000_M3": (None, None, F32),
    "small/jax.issue.33666.linx.frag_0100.module_0005": (None, None, F32),
    "small/jax.issue.33666.linx.slow_0100.module_0007": (None, None, F32),
}


def zeroed_inputs(folder, into, normal):
    """FOLDER's inputs with one array all zeros: the first data parameter, else the largest array that is not zero already.
    Returns its number."""
    import numpy as np
    paths = sorted(glob.glob(os.path.join(folder, "inputs", "*.npy")))
    number = {p: int(os.path.basename(p).removesuffix(".npy")) for p in paths}
    chosen = int(normal.split(",")[0]) if normal else None
    if chosen is None:
        bytes_of = lambda p: (bool(np.load(p).astype(bool).any()), os.path.getsize(p), -number[p])
        chosen = number[max(paths, key=bytes_of)]
    os.makedirs(into)
    for path in paths:
        copy = os.path.join(into, os.path.basename(path))
        if number[path] == chosen:
            np.save(copy, np.zeros_like(np.load(path)))
        else:
            os.symlink(os.path.abspath(path), copy)
    return chosen


def tells_zeroed(command, folder, normal, environment, label):
    """Whether --expect fails with one input zeroed; prints a line."""
    with tempfile.TemporaryDirectory(prefix="hlorun_zeroed_") as temporary:
        inputs = os.path.join(temporary, "inputs")
        chosen = zeroed_inputs(folder, inputs, normal)
        command = [f"--inputs={inputs}" if c.startswith("--inputs=") else c for c in command]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    verdict = {0: "NOT NOTICED", 1: "noticed"}.get(done.returncode, "TROUBLE")
    print(f"{label} input {chosen} zeroed: {verdict}", flush=True)
    return done.returncode == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", os.path.join(HERE, "..", "..", "shared")))
    parser.add_argument("--hlorun", default=os.path.join(HERE, "..", "build", "bin", "hlorun"))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--platforms", default="pocl,intel")
    parser.add_argument("--classes", default="cpu")
    parser.add_argument("--iterations", default="1")
    parser.add_argument("--zeroed", action="store_true")
    parser.add_argument("--flag", action="append", default=[], help="another flag of hlorun")
    flags = parser.parse_args()
    keep = flags.keep or tempfile.mkdtemp(prefix="hlorun_models_")
    environments = {"pocl": {}, "intel": intel_environment(sys.prefix, keep)}
    failures = 0
    for name, (normal, integers, bounds) in MODULES.items():
        if not re.search(flags.only, name):
            continue
        module = os.path.join(flags.shared, "models", name + ".hlo")
        for variant in ["defaults"] + (["data"] if normal or integers else []):
            folder = os.path.join(keep, name.replace("/", "_"), variant)
            data = variant == "data"
            trouble = reference(flags.shared, module, folder, normal if data else None, integers if data else None)
            if trouble:
                print(f"{name:52} {variant:8} XLA:CPU: {trouble}")
                failures += 1
                continue
            extra = [*bounds, *error_bounds(module, folder + "/expected")]
            try_zeroed = flags.zeroed and (data or not (normal or integers))
            for platform in flags.platforms.split(","):
                if environments[platform] is None:
                    print(f"{name:52} {variant:8} {platform}: not installed")
                    continue
                for device_class in flags.classes.split(","):
                    command = [flags.hlorun, "--json", f"--device_class={device_class}", f"--iterations={flags.iterations}",
                               f"--inputs={folder}/inputs", f"--expect={folder}/expected", *extra, *flags.flag, module]
                    environment = {**os.environ, **environments[platform]}
                    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
                    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
                    verdict = {0: "equal", 1: "DIFFERENT"}.get(done.returncode, "TROUBLE")
                    failures += done.returncode != 0 or report.get("host_thunks", 0) != 0
                    print(f"{name:52} {variant:8} {platform:6} {device_class:4} {verdict:9} "
                          f"best {report.get('best_ms', float('nan')):10.3f} ms, compile {report.get('compile_s', float('nan')):6.2f} s, "
                          f"host thunks {report.get('host_thunks', '?')}", flush=True)
                    if done.returncode != 0:
                        print("    " + "\n    ".join(done.stderr.strip().splitlines()[:4]), flush=True)
                    if try_zeroed:
                        try_zeroed = False
                        failures += not tells_zeroed(command, folder, normal, environment,
                                                     f"{name:52} {variant:8} {platform:6} {device_class:4}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
