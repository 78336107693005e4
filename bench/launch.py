#!/usr/bin/env python3
"""One tiny kernel run to its end: hlorun's f32[16] addition beside enqueue-and-finish of a bare kernel on the platform's devices.

    python3 bench/launch.py [--hlorun build/bin/hlorun] [--roofline build/bin/roofline] [--rounds 5] [--iterations 2000] [--json FILE]

The peer is build/bin/roofline's launch_and_finish_us (best of 5 x 200), on PoCL's device with threads and on its basic one, in
alternation with hlorun. hlorun's time is that of a whole run, arguments and results included, in steps of 0.1 us. Aim: at most 1.3 times the
quicker device's; both figures and the ratio are medians of the rounds. Exits 1 above it.
"""
import os
import statistics
import sys

from runs import HERE, ROOFLINE, arguments, cpu, device_spec, report, save_rows

MODULE = os.path.join(HERE, "modules", "tiny_add.hlo")
DEVICES = ("pthread", "basic")
AIM = 1.3


def launch_us(flags, device):
    return device_spec(flags.roofline, env=dict(os.environ, POCL_DEVICES=device))["cost_table"]["launch_and_finish_us"]


def main():
    parser = arguments(__doc__, rounds=5, iterations=2000)
    parser.add_argument("--roofline", default=ROOFLINE)
    parser.add_argument("--json")
    flags = parser.parse_args()
    if not os.path.exists(flags.roofline):
        sys.exit(f"{flags.roofline} is not there: ninja -C build roofline builds it")
    print(cpu())
    print(f"{'round':>6} {'hlorun best us':>14} {'median':>8} " + " ".join(f"{device:>10}" for device in DEVICES) + f" {'ratio':>6}")
    rows = []
    for number in range(flags.rounds):
        row = {device: launch_us(flags, device) for device in DEVICES}
        ours = report([flags.hlorun, "--json", f"--iterations={flags.iterations}", MODULE])
        row.update(best_us=ours["best_ms"] * 1e3, median_us=ours["median_ms"] * 1e3)
        row["ratio"] = row["median_us"] / min(row[device] for device in DEVICES)
        rows.append(row)
        print(f"{number:6} {row['best_us']:14.1f} {row['median_us']:8.1f} " + " ".join(f"{row[device]:10.2f}" for device in DEVICES) +
              f" {row['ratio']:6.2f}", flush=True)
    ratio = statistics.median(row["ratio"] for row in rows)
    print(f"ratio {ratio:.2f}, aim {AIM}: {'met' if ratio <= AIM else 'MISSED'}")
    if flags.json:
        save_rows(flags.json, rows)
    return 0 if ratio <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
