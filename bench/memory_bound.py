#!/usr/bin/env python3
"""Memory-bound programs (bench/modules, written by make_modules.py) on hlorun and XLA:CPU in alternation: ratios and aims.

    python3 bench/memory_bound.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 3] [--json FILE] [NAME ...]

Outputs are compared in each run. An aim is the ratio that the project is to stay below; only ratios within one run count.
"""
import os
import sys
import tempfile

from models import arguments_of_comparison, measure
from runs import HERE, cpu, save_rows

# name: (parameters that are data, bound of integer inputs, aim)
PROGRAMS = {
    "sort_flat_bf16": ("0", "", 0.02),
    "sort_rows_f32": ("0", "", 0.05),
    "sort_columns_f32": ("0", "", 0.05),
    "sort_long_f32": ("0", "", 0.05),
    "argsort": ("0", "", 0.05),
    "top_k_8": ("0", "", 0.5),
    "top_k_64": ("0", "", 0.5),
    "cumsum_rows": ("", "", 0.05),
    "cumsum_columns": ("", "", 0.05),
    "cumsum_window": ("", "", 0.05),
    "softmax": ("0", "", 0.25),
    "layer_norm": ("0", "", 0.25),
    "rms_norm": ("0", "", 0.25),
    "transpose": ("0", "", 0.5),
    "nhwc_to_nchw": ("0", "", 0.75),
    "nchw_to_nhwc": ("0", "", 0.75),
    "depthwise_bf16": ("0", "", 0.06),
    "embedding_gather": ("0", "32000", 0.75),
    "embedding_scatter_add": ("0,2", "32000", 0.75),
    "update_loop": ("0,1", "", 0.5),
    "sum_columns": ("0", "", 0.85),
    "sum_rows": ("0", "", 0.85),
}


def main():
    parser = arguments_of_comparison(__doc__)
    parser.add_argument("names", nargs="*", default=[])
    flags = parser.parse_args()
    unknown = set(flags.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    print(cpu())
    print(f"{'program':24} {'hlorun ms':>10} {'XLA ms':>10} {'ratio':>6} {'median':>6} {'spread':>6} {'aim':>5}  {'compile s':>9} {'XLA s':>6}")
    rows = []
    for name in flags.names or PROGRAMS:
        normal, integers, aim = PROGRAMS[name]
        module = os.path.join(HERE, "modules", name + ".hlo")
        with tempfile.TemporaryDirectory() as folder:
            row = measure(f"{module}:{normal}:{integers}", flags, folder)
        rows.append(row | {"aim": aim})
        if "error" in row:
            print(f"{name:24} {row['error']}")
        else:
            met = "met" if row["ratio"] <= aim else "MISSED"
            print(f"{name:24} {row['best_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['ratio']:6.3f} {row['median_ratio']:6.3f} "
                  f"{row['spread']:6.2f} {aim:5.2f}  {row['compile_s']:9.2f} {row['xla_compile_s']:6.2f} {met}")
        sys.stdout.flush()
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
