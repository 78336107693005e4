#!/usr/bin/env python3
"""Whole loops as one kernel against kernels written by hand (bench/hand_written), and XLA:CPU where jax is installed.

    python3 bench/hand_written.py [--models ../shared/models/small] [--hlorun build/bin/hlorun] [--rounds 5] [--iterations 200]

Both run through hlorun (the hand-written ones as custom-calls), so launches and waits are in both. Results are compared
first. Aim: at most 1.5 times the hand-written kernel's time.
"""
import os
import tempfile

import numpy as np

from runs import HERE, Failed, arguments, on_xla_cpu, report

# model: the call that does the same
PAIRS = {
    "bench_scan_N2000_M3": """HloModule scan
ENTRY e { x = f32[2000,3] parameter(0)
  ROOT r = (f32[3], f32[2000,3]) custom-call(x), custom_call_target="hand::scan" }
""",
    "jax.issue.33666.linx.frag_0100.module_0005": """HloModule split
ENTRY e { k = u32[2] parameter(0)
  ROOT r = u32[20,2] custom-call(k), custom_call_target="hand::split" }
""",
    "jax.issue.33666.linx.slow_0100.module_0007": """HloModule normal
ENTRY e { k = u32[2] parameter(0)
  ROOT r = f32[20,200] custom-call(k), custom_call_target="hand::normal" }
""",
}


def xla_cpu_us(path, inputs, iterations):
    """None where jax is not installed."""
    try:
        return report(on_xla_cpu(path, inputs, iterations))["best_ms"] * 1e3
    except Failed:
        return None


def main():
    parser = arguments(__doc__, rounds=5, iterations=200)
    parser.add_argument("--models", default=os.path.join(HERE, "../../shared/models/small"))
    flags = parser.parse_args()

    def run(path, *more):
        return report([flags.hlorun, "--json", f"--custom_calls={HERE}/hand_written/kernels.json", *more, path])

    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PAIRS.items():
            model, hand = os.path.join(flags.models, name + ".hlo"), os.path.join(folder, "hand.hlo")
            with open(hand, "w") as file:
                file.write(text)
            inputs = [random.uniform(-1, 1, (2000, 3)).astype(np.float32) if "scan" in name else np.array([17, 42], np.uint32)]
            np.savez(os.path.join(folder, "inputs.npz"), **{"0": inputs[0]})
            os.makedirs(os.path.join(folder, "arrays"), exist_ok=True)
            np.save(os.path.join(folder, "arrays", "0.npy"), inputs[0])
            given = f"--inputs={folder}/inputs.npz"
            run(hand, given, f"--outputs={folder}/{name}")
            run(model, given, f"--expect={folder}/{name}")
            ours, by_hand = [], []
            for _ in range(flags.rounds):
                for path, times in ((model, ours), (hand, by_hand)):
                    times.append(run(path, given, "--warmup=20", f"--iterations={flags.iterations}")["best_ms"] * 1e3)
            xla = xla_cpu_us(model, os.path.join(folder, "arrays"), flags.iterations)
            beside = "not measured" if xla is None else f"{xla:.1f} us"
            print(f"{name}: {min(ours):.1f} us, by hand {min(by_hand):.1f} us ({min(ours) / min(by_hand):.2f}), XLA:CPU {beside}", flush=True)


if __name__ == "__main__":
    main()
