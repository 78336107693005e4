#!/usr/bin/env python3
"""Whether anything became slower: ratios to XLA:CPU of a fixed set of programs beside those saved for this kind of CPU.

    python3 bench/regression.py [--hlorun build/bin/hlorun] [--shared DIR] [--rounds 5] [--json FILE] [--save] [NAME ...]

The set: modules of DIR (default: $HLORUN_SHARED; left out where there is none), programs of bench/modules, networks of bench/networks,
each in alternation with XLA:CPU, results compared. bench/baselines.py says what counts as slower; a row that looks slower is measured
again when all others have been, for a host's minutes differ, and is slower if both say so. The saved ratios are bench/baseline/CPU.json,
CPU being vendor, family, model, cores and features. --save writes it, or the rows named; the others stay. --save --add keeps the runs
that are there beside this one: of different hours, they tell how far the hours lie apart. Exit codes: 0 no row is slower, 1 one is, 2 trouble (a row that fails, a
wrong result), 3 no baseline for this CPU. Needs jax; less than 15 minutes on two cores.
"""
import argparse
import collections
import math
import os
import statistics
import sys
import tempfile
import traceback

import baselines
import memory_bound
import models
import network_parts
import networks
from runs import FEATURES, HERE, Failed, arguments, chosen, cpu, save_rows

# `measure(flags, folder)` gives a row with "ratios" and "device", or "error".
# `iterations`: timed runs of each side in a round; `rounds`: at most.
Work = collections.namedtuple("Work", "iterations measure rounds", defaults=(math.inf,))

# Of DIR: module and what it takes: (iterations, rounds). Runs of seconds: few rounds. vit takes minutes and is made of what cappa is.
MODULES = {"inference/imagenette.hlo:102": (2, 3), "inference/resnet50.hlo:153": (1, 3), "inference/cappa.hlo:215:32000": (2, 3),
           "small/mha_block_1x12x128x64_bf16.hlo:0,1,2": (60,), "small/layer_norm_1x4096x768_bf16.hlo:0,1,2": (60,),
           "small/sum_axis_1x4096x1024_bf16.hlo:0,1,2": (60,), "small/dlrm_keras_jax_f32_test_step.hlo::3": (30,),
           "small/bench_scan_N2000_M3.hlo": (200,), "small/jax.issue.33666.linx.frag_0100.module_0005.hlo": (200,),
           "small/jax.issue.33666.linx.slow_0100.module_0007.hlo": (200,)}
# Of bench/modules: iterations; the heavy sorts and sums only a few, for XLA:CPU takes up to a second each.
PROGRAMS = {"sort_flat_bf16": 2, "sort_rows_f32": 2, "sort_columns_f32": 5, "argsort": 5, "top_k_8": 3, "cumsum_rows": 3, "cumsum_columns": 3,
            "cumsum_window": 10, "softmax": 3, "layer_norm": 3, "transpose": 3, "nhwc_to_nchw": 5, "depthwise_bf16": 20,
            "embedding_gather": 5, "embedding_scatter_add": 3, "update_loop": 5, "sum_columns": 3, "sum_rows": 3, "gelu_erfc": 5,
            "convolution_1d": 10, "grouped_convolution": 10, "group_norm_silu": 10, "kept_attention": 20}
NETWORKS = {"mobilenet_v2": 10, "convnext": 5, "minilm": 10, "llama_decode": 10, "lstm": 10, "train_mlp": 20}


def work_of_modules(shared):
    for spec, (iterations, *rounds) in MODULES.items():
        path = os.path.join(shared, "models", spec)
        if os.path.exists(path.partition(":")[0]):
            name = spec.partition(":")[0].removesuffix(".hlo")
            yield name, Work(iterations, lambda flags, folder, path=path: models.measure(path, flags, folder), *rounds)


def work_of_programs():
    known = {**memory_bound.PROGRAMS, **network_parts.PROGRAMS}
    for name, iterations in PROGRAMS.items():
        spec = ":".join([os.path.join(HERE, "modules", name + ".hlo"), *known[name][:2]])
        yield "modules/" + name, Work(iterations, lambda flags, folder, spec=spec: models.measure(spec, flags, folder))


def work_of_networks():
    known = networks.networks()
    for name, iterations in NETWORKS.items():
        yield "networks/" + name, Work(iterations, lambda flags, folder, name=name: networks.measure(name, known[name], flags, folder))


def measured(work, flags):
    """The row of one measurement, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        limits = {"iterations": work.iterations, "rounds": min(flags.rounds, work.rounds)}
        return work.measure(argparse.Namespace(**{**vars(flags), **limits}), folder)


def judged_again(work, flags, row, earlier):
    """(row, verdict) of work whose first measurement, `row`, looked slower: measured once more, and the milder one counts."""
    again = measured(work, flags)
    if "error" in again or statistics.median(again["ratios"]) < statistics.median(row["ratios"]):
        row = again
    return row, verdict_of(row, earlier)


def verdict_of(row, earlier):
    return None if "error" in row else baselines.verdict(row["ratios"], earlier)


def judged(works, flags, earlier):
    """{name: (row, verdict)} of {name: work}, printed as they come. What looks slower is measured again last, minutes later."""
    found, again = {}, []
    for name, work in works.items():
        row = measured(work, flags)
        found[name] = row, verdict_of(row, earlier.get(name))
        print_row(name, *found[name])
        if found[name][1] and found[name][1][0] == baselines.SLOWER:
            again.append(name)
    for name in again:
        found[name] = judged_again(works[name], flags, found[name][0], earlier[name])
        print_row(name + ", again", *found[name])
    return found


def print_row(name, row, judgement):
    if judgement is None:
        print(f"{name:56} {row['error']}", flush=True)
        return
    word, change, limit = judgement
    beside = "" if change is None else f" {change:6.2f} {limit:6.2f}"
    print(f"{name:56} {row['median_ms']:10.3f} {row['xla_median_ms']:10.3f} {row['median_ratio']:7.3f} "
          f"{row['spread']:6.2f}{beside:14} {word}", flush=True)


def parsed():
    parser = arguments(__doc__, rounds=5)
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", ""))
    parser.add_argument("--device")
    parser.add_argument("--baseline", help="another file than the one of this CPU")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--add", action="store_true", help="with --save: beside the runs that were saved, not instead of them")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    parser.set_defaults(rel_error_bound=None)
    flags = parser.parse_args()
    if flags.add and not flags.save:
        parser.error("--add says how --save saves; give both")
    known = dict([*work_of_modules(flags.shared), *work_of_programs(), *work_of_networks()])
    return flags, {name: known[name] for name in chosen(parser, flags.names, known)}


def other_device(rows, baseline):
    """A device whose ratios say nothing beside the baseline's, or None."""
    devices = {row["device"] for row in rows.values() if "device" in row}
    return next((device for device in devices if baseline and device != baseline["device"]), None)


def main():
    flags, works = parsed()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        key = baselines.cpu_key(file.read(), os.cpu_count(), FEATURES)
    path = flags.baseline or os.path.join(HERE, "baseline", key + ".json")
    baseline = baselines.load(path)
    print(cpu())
    if baseline is None and not flags.save:
        print(f"no baseline for this CPU: there is no {path}; --save makes it")
        return 3
    earlier = {} if flags.save else baseline["rows"]
    print(f"{'':56} {'hlorun ms':>10} {'XLA ms':>10} {'ratio':>7} {'spread':>6} {'change':>6} {'limit':>6}")
    found = judged(works, flags, earlier)
    rows = {name: row for name, (row, _) in found.items()}
    return finish(flags, path, baseline, rows, {name: judgement for name, (_, judgement) in found.items()})


def finish(flags, path, baseline, rows, judgements):
    """Says what became of the rows, saves what flags ask for, and gives the exit code."""
    failed = [name for name, row in rows.items() if "error" in row]
    if flags.json:
        save_rows(flags.json, [{"name": name, **row, "verdict": judgements[name] and judgements[name][0]} for name, row in rows.items()])
    device = other_device(rows, baseline)
    if device:
        print(f"this ran on {device}, {path} is of {baseline['device']}: give another --baseline")
        return 2
    for word in (baselines.SLOWER, baselines.FASTER, baselines.NOISY, baselines.NEW):
        names = [name for name, judgement in judgements.items() if judgement and judgement[0] == word]
        print(f"{word}: {', '.join(names) or 'none'}")
    print(f"failed: {', '.join(failed) or 'none'}")
    if flags.save:
        good = {name: [float(f"{ratio:.4g}") for ratio in row["ratios"]] for name, row in rows.items() if "error" not in row}
        if good:
            earlier = baseline["rows"] if baseline else {}
            if flags.add:
                good = {name: baselines.runs_of(earlier[name]) + [ratios] if name in earlier else ratios for name, ratios in good.items()}
            device = next(row["device"] for row in rows.values() if "device" in row)
            baselines.save(path, {"cpu": cpu(), "device": device, "rows": {**earlier, **good}})
            print(f"saved {len(good)} rows: {path}")
        return 2 if failed else 0
    return baselines.exit_code([judgement[0] for judgement in judgements.values() if judgement], failed)


def guarded():
    """main's exit code, and 2 for what it did not foresee: 1 would say that a row is slower."""
    try:
        return main()
    except (Exception, Failed):  # pylint: disable=broad-except
        traceback.print_exc()
        return 2


if __name__ == "__main__":
    sys.exit(guarded())
