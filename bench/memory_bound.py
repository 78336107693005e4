#!/usr/bin/env python3
"""Memory-bound programs (bench/modules, written by make_modules.py) on hlorun and XLA:CPU in alternation: ratios and aims.

    python3 bench/memory_bound.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 3] [--json FILE] [NAME ...]

Outputs are compared in each run. An aim is the ratio that the project is to stay below; only ratios within one run count.
"""
import sys

from models import compare_programs

# name: (parameters that are data, bound of integer inputs, aim)
PROGRAMS = {
    "sort_flat_bf16": ("0", "", 0.02),
    "sort_rows_f32": ("0", "", 0.05),
    "sort_columns_f32": ("0", "", 0.05),
    "sort_long_f32": ("0", "", 0.05),
    "argsort": ("0", "", 0.05),
    "top_k_8": ("0", "", 0.5),
    "top_k_64": ("0", "", 0.5),
    "sort_by_two_keys": ("1", "1000", 0.1),
    "sort_rows_by_two_keys": ("1", "8", 0.05),
    "cumsum_rows": ("", "", 0.05),
    "cumsum_columns": ("", "", 0.05),
    "cumsum_window": ("", "", 0.05),
    "slice_scan_long": ("", "", 0.1),
    "slice_scan_rows": ("", "", 0.1),
    "slice_scan_columns": ("", "", 0.2),
    "slice_scan_recurrence": ("0,1", "", 0.2),
    "moving_maximum": ("0", "", 0.25),
    "box_filter": ("0", "", 0.1),
    "cross_entropy_gradient": ("0", "8192", 0.5),
    "nearest": ("0,1", "", 0.1),
    "density": ("0,1", "", 0.1),
    "concatenated_products": ("0,1,2,3", "", 0.2),
    "concatenated_statistics": ("0", "", 0.5),
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
    "update_many": ("0", "", 0.5),
    "sum_columns": ("0", "", 0.85),
    "sum_rows": ("0", "", 0.85),
}


if __name__ == "__main__":
    sys.exit(compare_programs(__doc__, PROGRAMS))
