#!/usr/bin/env python3
"""Parts of networks (bench/modules, written by make_modules.py) on hlorun and XLA:CPU in alternation: a search for outliers.

    python3 bench/network_parts.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 3] [--json FILE] [NAME ...]

Outputs are compared in each run; only ratios within one run count. docs/performance.md says what each was before.
"""
import sys

from models import compare_programs

# name: (parameters that are data, bound of integer inputs, aim)
PROGRAMS = {
    "gelu_erfc": ("0", "", None),
    "gelu_tanh": ("0", "", None),
    "transposed_convolution": ("0,1", "", None),
    "convolution_1d": ("0,1", "", None),
    "grouped_convolution": ("0,1", "", None),
    "depthwise_nhwc": ("0", "", None),
    "group_norm_silu": ("0", "", None),
    "kept_attention": ("0,1,2", "", None),
    "channel_shuffle": ("0", "", None),
}


if __name__ == "__main__":
    sys.exit(compare_programs(__doc__, PROGRAMS))
