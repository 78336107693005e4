#!/usr/bin/env python3
"""HLO convolutions on hlorun beside PyTorch, in alternation: the ratio of their speeds in one run.

    python3 bench/convolutions_vs_torch.py [--only resnet50,efficientnet,...] [--match TEXT] [--part I/N] [--json FILE]

hlorun's arrays are NHWC, its weights HWIO. PyTorch's time is that of its fastest way: conv2d of NCHW and of channels_last arrays,
and oneDNN's convolution with weights packed beforehand, as torch.compile's freezing has them. hlorun's weights are constant
(--constant_params), so it packs them before the clock starts too; --anew packs them in each run. Images change from run to run,
each written just before by one thread; below 300 MFLOP, --queued runs (100) are timed together. hlorun's last result of each
round is compared with PyTorch's. Needs torch and numpy. Ratios above 1: hlorun is faster. Exits 1 below --least_mean or --least.
"""
import sys

import torch
from torch.nn.functional import conv1d, conv2d, conv3d

from convolution_shapes import FAMILIES, Convolution
from runs import arguments, cpu, save_rows
from torch_peer import TYPES, Ours, Peer, Way, compare, selection_arguments, table

SMALL = 0.3  # GFLOP
CONVOLVE = {1: conv1d, 2: conv2d, 3: conv3d}
CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def times(count, text):
    return "x".join([str(text)] * count)


def module(c: Convolution):
    spatial = "012"[:c.rank]
    sizes = [",".join([str(n)] * c.rank) for n in (c.size, c.window, c.out)]
    return (f"HloModule convolution\nENTRY main {{\n  x = {c.type}[{c.batch},{sizes[0]},{c.channels}] parameter(0)\n"
            f"  w = {c.type}[{sizes[1]},{c.channels // c.groups},{c.features}] parameter(1)\n"
            f"  ROOT y = {c.type}[{c.batch},{sizes[2]},{c.features}] convolution(x, w), window={{size={times(c.rank, c.window)} "
            f"stride={times(c.rank, c.stride)} pad={times(c.rank, f'{c.padding}_{c.padding}')} rhs_dilate={times(c.rank, c.dilation)}}}, "
            f"dim_labels=b{spatial}f_{spatial}io->b{spatial}f, feature_group_count={c.groups}\n}}\n")


def operands(c: Convolution):
    """As PyTorch has them: NCHW and OIHW."""
    return [torch.randn([c.batch, c.channels] + [c.size] * c.rank).to(TYPES[c.type]),
            torch.randn([c.features, c.channels // c.groups] + [c.window] * c.rank).to(TYPES[c.type])]


def ways(c: Convolution):
    form = [[n] * c.rank for n in (c.padding, c.stride, c.dilation)]

    def plain(x_w):
        return CONVOLVE[c.rank](*x_w, None, c.stride, c.padding, c.dilation, c.groups)

    def last(x):
        return x.contiguous(memory_format=CHANNELS_LAST[c.rank])

    def packed(x, w):
        return x, torch.ops.mkldnn._reorder_convolution_weight(w, *form, c.groups, list(x.shape))

    def run_packed(x_w):
        return torch.ops.mkldnn._convolution_pointwise(*x_w, None, *form, c.groups, "none", [], "")

    found = {"NCHW": Way(lambda o: o, plain), "packed": Way(lambda o: packed(*o), run_packed)}
    if c.rank in CHANNELS_LAST:
        found["NHWC"] = Way(lambda o: [last(x) for x in o], plain)
        found["packed NHWC"] = Way(lambda o: packed(last(o[0]), o[1]), run_packed)
    return found


def expected(c: Convolution, x, w):
    x = x.movedim(-1, 1).float()
    w = w.movedim((-1, -2), (0, 1)).float()
    y = CONVOLVE[c.rank](x, w, None, c.stride, c.padding, c.dilation, c.groups)
    return y.movedim(1, -1).to(TYPES[c.type])


def main():
    parser = arguments(__doc__, rounds=3)
    selection_arguments(parser, FAMILIES)
    parser.add_argument("--anew", action="store_true", help="weights are packed in each run of hlorun's")
    flags = parser.parse_args()
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")
    constant = () if flags.anew else (1,)

    def measure(c):
        queued = flags.queued if c.gflop < SMALL else 1

        def ours(folder, iterations):
            return Ours(flags, folder, module(c), [c.type] * 2, lambda x, w: expected(c, x, w), iterations, queued, constant,
                        ["--normal=0,1"])

        return compare(flags, Peer(ways(c), lambda: operands(c), queued), ours)

    rows, failed = table(flags, FAMILIES, measure, "convolution")
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
