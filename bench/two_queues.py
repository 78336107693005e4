#!/usr/bin/env python3
"""Independent kernels of one work-group each: by a lane's two queues, and by one.

    python3 bench/two_queues.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 20]

The kernels are custom-calls, which a device's queue runs. By one queue they go where the DeviceSpec says that queues take an hour
to meet. Prints the medians of each round in alternation, and their ratio; exits 1 where the results differ.
"""
import json
import os
import statistics
import sys
import tempfile

from runs import arguments, cpu, report

STEPS = (2_000_000, 1_900_000)
KERNEL = """__kernel void logistic(__global const float* x, __global float* y) {
  float v = x[0];
  for (int i = 0; i < STEPS; ++i) y[i] = v = 3.9f * v * (1.0f - v);
}
"""
CALLS = {"custom_calls": [{"target": "logistic", "operands": ["f32[]"], "results": ["f32[n]"], "source": "logistic.cl",
                           "kernel": "logistic", "arguments": ["operand 0", "result 0"], "global": ["1"], "define": {"STEPS": "n"}}]}
MODULE = """HloModule two_calls
ENTRY main {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ya = f32[{0}] custom-call(a), custom_call_target="logistic"
  yb = f32[{1}] custom-call(b), custom_call_target="logistic"
  ROOT both = (f32[{0}], f32[{1}]) tuple(ya, yb)
}}
"""
ONE_QUEUE = {"cost_table": {"queues_meet_us": 3.6e9}}


def write_files(folder):
    texts = {"logistic.cl": KERNEL, "calls.json": json.dumps(CALLS), "two_calls.hlo": MODULE.format(*STEPS), "one.json": json.dumps(ONE_QUEUE)}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def main():
    flags = arguments(__doc__, rounds=3, iterations=20).parse_args()
    print(cpu())
    print(f"{'round':>6} {'two queues ms':>14} {'one ms':>8} {'ratio':>6}")
    ratios, differ = [], False
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        command = [flags.hlorun, "--json", f"--iterations={flags.iterations}", f"--custom_calls={folder}/calls.json", f"{folder}/two_calls.hlo"]
        for number in range(flags.rounds):
            two, one = report(command), report([*command, f"--device_spec={folder}/one.json"])
            differ |= two["results"] != one["results"]
            ratios.append(two["median_ms"] / one["median_ms"])
            print(f"{number:6} {two['median_ms']:14.2f} {one['median_ms']:8.2f} {ratios[-1]:6.2f}", flush=True)
    print(f"ratio {statistics.median(ratios):.2f}" + (", results differ" if differ else ""))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
