#!/usr/bin/env python3
"""Looks rows up in an f32[256000,2304] table, 2.4 GB in one array, on every OpenCL platform, and checks them.

    python3 scripts/large_embedding.py [--hlorun build/bin/hlorun] [--platforms pocl,intel] [--rows 256000] [--columns 2304]

The table's file is sparse: zeros, but for the rows that are looked up and their neighbours. Needs 3 GB of free memory and
nothing but Python; Intel's runtime is found in the Python environment.
"""
import argparse
import array
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from platforms import intel_environment  # noqa: E402  found through the path above

TOKENS = 64


def header(descr, shape):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def write(path, descr, shape, values):
    with open(path, "wb") as file:
        file.write(header(descr, shape) + values.tobytes())


def row(token, columns):
    """Exact in f32, another one for each token."""
    return array.array("f", ((token % 65536) * 16 + column % 16 for column in range(columns)))


def tokens(rows):
    """First, last, around 2 GiB and 4 GiB of bytes, and others in no order; one of them twice."""
    chosen = [0, rows - 1, 1, rows // 2] + [(7919 * i + 13) % rows for i in range(TOKENS - 5)]
    return array.array("i", chosen + [chosen[-1]])


def make(folder, rows, columns):
    for name in ("inputs", "expected"):
        os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, "inputs", "0.npy"), "wb") as file:
        head = header("<f4", (rows, columns))
        file.write(head)
        file.truncate(len(head) + rows * columns * 4)
        for token in tokens(rows):
            for near in (token, (token + 1) % rows):
                file.seek(len(head) + near * columns * 4)
                file.write(row(near, columns).tobytes())
    write(os.path.join(folder, "inputs", "1.npy"), "<i4", (TOKENS,), tokens(rows))
    expected = array.array("f")
    for token in tokens(rows):
        expected.extend(row(token, columns))
    write(os.path.join(folder, "expected", "0.npy"), "<f4", (TOKENS, columns), expected)
    with open(os.path.join(folder, "module.hlo"), "w", encoding="utf-8") as file:
        file.write(f"""HloModule embedding
ENTRY main {{
  table = f32[{rows},{columns}] parameter(0)
  tokens = s32[{TOKENS}] parameter(1)
  indices = s32[{TOKENS},1] reshape(tokens)
  ROOT rows = f32[{TOKENS},{columns}] gather(table, indices), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{columns}}}
}}
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlorun", default=os.path.join(HERE, "..", "build", "bin", "hlorun"))
    parser.add_argument("--platforms", default="pocl,intel")
    parser.add_argument("--rows", type=int, default=256000)
    parser.add_argument("--columns", type=int, default=2304)
    flags = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hlorun_embedding_") as folder:
        make(folder, flags.rows, flags.columns)
        environments = {"pocl": {}, "intel": intel_environment(sys.prefix, folder)}
        for platform in flags.platforms.split(","):
            if environments[platform] is None:
                print(f"{platform}: not installed")
                continue
            done = subprocess.run([flags.hlorun, "--json", "--iterations=3", f"--inputs={folder}/inputs",
                                   f"--expect={folder}/expected", "--abs_error_bound=0", f"{folder}/module.hlo"],
                                  capture_output=True, text=True, check=False, env={**os.environ, **environments[platform]})
            report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            verdict = {0: "equal", 1: "DIFFERENT"}.get(done.returncode, "TROUBLE")
            failures += done.returncode != 0
            print(f"{platform:6} f32[{flags.rows},{flags.columns}] {verdict}: {report.get('argument_bytes', 0)} bytes of arguments, "
                  f"first {report.get('first_ms', float('nan')):.3f} ms, best {report.get('best_ms', float('nan')):.3f} ms", flush=True)
            if done.returncode != 0:
                print("    " + "\n    ".join(done.stderr.strip().splitlines()[:4]), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
