#!/usr/bin/env python3
"""Our partitioner beside XLA's own, on annotated modules: what one device computes, holds and sends.

    python3 scripts/compare_partitioning.py [--shared ../shared] [--bin build/bin] [--only REGEX] [--keep DIR]

For each module NAME_N.hlo of SHARED/models/sharded: XLA's text for N forced host devices (use_spmd_partitioning,
use_shardy_partitioner) and ours, both priced by `hlo-opt --cost` (FLOPs; bytes sent by the ring algorithm; loops times their
trip counts), and peak bytes: arguments, results and temporaries of get_compiled_memory_stats beside the plan's. Prints a
table; exits 1 when a ratio is above 1.1 or a value had to be replicated. Needs jax, jaxlib, numpy.
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
LIMIT = 1.1
# Everything between a parsed module and the last pass that changes what is computed or sent.
PASSES = ("inline-calls,flatten-control,expand-custom-calls,spmd-propagate,spmd-partition,remove-markers,rules,cse,"
          "combine-collectives,dce,trip-counts")

XLA = r"""
import sys, os
path, count, out, shared = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
sys.path.insert(0, shared)
import json
import jax, numpy as np
import jaxlib._jax as _jax
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from jaxlib import xla_client
from xla_reference import strip_attribute
text = strip_attribute(open(path).read(), "input_output_alias")
proto = xla_client.hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
computation = xla_client.XlaComputation(proto)
bytecode = _jax.mlir.xla_computation_to_mlir_module(computation)
options = xla_client.CompileOptions()
options.num_partitions = count
build = options.executable_build_options
build.num_partitions, build.num_replicas = count, 1
build.use_spmd_partitioning, build.use_shardy_partitioner = True, "sdy" in text
build.device_assignment = xla_client.DeviceAssignment.create(np.arange(count).reshape(1, count))
client = jax.devices("cpu")[0].client
with jax_mlir.make_ir_context():
    executable = client.compile_and_load(ir.Module.parse(bytecode), _jax.DeviceList(tuple(jax.devices()[:count])), options)
open(out, "w").write(executable.hlo_modules()[0].to_string())
m = executable.get_compiled_memory_stats()
print(json.dumps({"peak": m.argument_size_in_bytes + m.output_size_in_bytes + m.temp_size_in_bytes - m.alias_size_in_bytes}))
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return done


def compare(path, flags, folder):
    name = os.path.basename(path)[:-4]
    count = int(name.rsplit("_", 1)[1])
    hlo_opt, hlorun = os.path.join(flags.bin, "hlo-opt"), os.path.join(flags.bin, "hlorun")
    xla_text = os.path.join(folder, name + ".xla.txt")
    xla_peak = json.loads(run([sys.executable, "-c", XLA, path, str(count), xla_text, flags.shared]).stdout.splitlines()[-1])["peak"]
    theirs = json.loads(run([hlo_opt, "--passes=", "--cost", xla_text]).stdout)
    done = run([hlo_opt, f"--passes={PASSES}", "--cost", "--explain", path])
    ours = json.loads(done.stdout)
    replicated = done.stderr.count("cannot be cut")
    plan = json.loads(run([hlorun, f"--num_partitions={count}", "--compile_only", "--json", path]).stdout.splitlines()[-1])
    row = {"module": name, "replicated": replicated, "compile_s": plan["compile_s"]}
    for key, mine, other in (("flops", ours["flops"], theirs["flops"]), ("peak", plan["peak_bytes"], xla_peak),
                             ("sent", ours["collective_bytes"], theirs["collective_bytes"])):
        row[key] = (mine, other, mine / other if other else float(mine > 0))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", os.path.join(HERE, "..", "..", "shared")))
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    flags = parser.parse_args()
    folder = flags.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    worst = 0
    print("| module | GFLOP a device: ours, XLA's, ratio | peak MiB: ours, XLA's, ratio | sent MiB: ours, XLA's, ratio | replicated | compile s |")
    print("|---|---|---|---|---|---|")
    for path in sorted(glob.glob(os.path.join(flags.shared, "models", "sharded", "*.hlo"))):
        if not re.search(flags.only, path):
            continue
        row = compare(path, flags, folder)
        cells = []
        for key, unit in (("flops", 1e9), ("peak", 2**20), ("sent", 2**20)):
            mine, other, ratio = row[key]
            worst = max(worst, ratio)
            cells.append(f"{mine / unit:.2f}, {other / unit:.2f}, {ratio:.2f}")
        worst = max(worst, 9 * row["replicated"])
        print(f"| {row['module']} | {' | '.join(cells)} | {row['replicated']} | {row['compile_s']:.2f} |", flush=True)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
