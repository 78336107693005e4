#!/usr/bin/env python3
"""What compiling costs: compile_s + (first_ms - best_ms) / 1000 with empty caches, beside XLA:CPU's, and again with warm ones.

    python3 bench/cold_compile.py [--hlorun build/bin/hlorun] [--rounds 1] [--iterations 2] MODULE[:NORMAL[:INTEGERS]] ...

Each cold run gets an empty POCL_CACHE_DIR and --cache_dir; the warm one is the next start with the same. Besides wall time the
processor time of each process is printed (start, inputs and runs included), which a loaded machine stretches less. Needs jax.
"""
import os
import sys
import tempfile

from runs import Failed, arguments, cpu, on_xla_cpu, save_rows, seeded, timed_report


def cost(result):
    return result["compile_s"] + max(0.0, result["first_ms"] - result["best_ms"]) / 1000


def measure(spec, flags):
    module = spec.partition(":")[0]
    command = [flags.hlorun, "--json", f"--iterations={flags.iterations}", *seeded(spec)]
    row = {"module": os.path.basename(module).removesuffix(".hlo")}
    for _ in range(flags.rounds):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, POCL_CACHE_DIR=os.path.join(folder, "pocl"))
            os.mkdir(env["POCL_CACHE_DIR"])
            ours = command + [f"--cache_dir={folder}/hlorun"]
            inputs = os.path.join(folder, "inputs")
            cold, cold_cpu = timed_report(ours, env)
            warm, warm_cpu = timed_report(ours + ["--save_inputs=" + inputs], env)
            peer, peer_cpu = timed_report(on_xla_cpu(module, inputs, flags.iterations))
        for name, result, processor in (("cold", cold, cold_cpu), ("warm", warm, warm_cpu), ("xla", peer, peer_cpu)):
            row[name] = min(cost(result), row.get(name, float("inf")))
            row[name + "_cpu"] = min(processor, row.get(name + "_cpu", float("inf")))
        row["kernels"] = cold["kernels"]
    return row


def main():
    parser = arguments(__doc__, rounds=1, iterations=2)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--json")
    flags = parser.parse_args()
    print(cpu())
    print(f"{'module':44} {'kernels':>7} {'cold s':>8} {'warm s':>7} {'XLA s':>7} {'cold CPU':>8} {'warm CPU':>8} {'XLA CPU':>8}")
    rows = []
    for spec in flags.modules:
        try:
            row = measure(spec, flags)
        except Failed as error:
            print(f"{os.path.basename(spec):44} {error}", flush=True)
            continue
        rows.append(row)
        print(f"{row['module']:44} {row['kernels']:7} {row['cold']:8.2f} {row['warm']:7.2f} {row['xla']:7.2f} "
              f"{row['cold_cpu']:8.2f} {row['warm_cpu']:8.2f} {row['xla_cpu']:8.2f}", flush=True)
    if not rows:
        return 1
    total = {key: sum(row[key] for row in rows) for key in ("cold", "warm", "xla")}
    allowed = 2.5 * total["xla"] + 0.5 * len(rows)
    over = [row["module"] for row in rows if row["cold"] > 5 * row["xla"] + 1.2]
    print(f"sum: cold {total['cold']:.2f} s, allowed 2.5 x {total['xla']:.2f} + 0.5 x {len(rows)} = {allowed:.2f} s; "
          f"warm {total['warm']:.2f} s; above 5 x XLA + 1.2 s: {', '.join(over) or 'none'}")
    if flags.json:
        save_rows(flags.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
