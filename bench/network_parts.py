#!/usr/bin/env python3
"""Parts of networks (bench/modules, written by make_modules.py) on hlorun and XLA:CPU in alternation: a search for outliers.

    python3 bench/network_parts.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 3] [--json FILE] [NAME ...]

Outputs are compared in each run; only ratios within one run count. docs/performance.md says what each was before.
"""
import os
import sys
import tempfile

from models import arguments_of_comparison, measure
from runs import HERE, cpu, save_rows

# name: parameters that are data
PROGRAMS = {
    "gelu_erfc": "0",
    "gelu_tanh": "0",
    "transposed_convolution": "0,1",
    "convolution_1d": "0,1",
    "grouped_convolution": "0,1",
    "depthwise_nhwc": "0",
    "group_norm_silu": "0",
    "kept_attention": "0,1,2",
    "channel_shuffle": "0",
}


def main():
    parser = arguments_of_comparison(__doc__)
    parser.add_argument("names", nargs="*", default=[])
    flags = parser.parse_args()
    unknown = set(flags.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    print(cpu())
    print(f"{'program':24} {'hlorun ms':>10} {'XLA ms':>10} {'ratio':>6} {'median':>6}")
    rows = []
    for name in flags.names or PROGRAMS:
        module = os.path.join(HERE, "modules", name + ".hlo")
        with tempfile.TemporaryDirectory() as folder:
            row = measure(f"{module}:{PROGRAMS[name]}", flags, folder)
        rows.append(row)
        print(f"{name:24} {row['error']}" if "error" in row else
              f"{name:24} {row['best_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['ratio']:6.2f} {row['median_ratio']:6.2f}")
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
