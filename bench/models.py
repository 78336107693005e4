#!/usr/bin/env python3
"""Times modules on hlorun and XLA:CPU in alternation, checks that both give the same outputs, prints a table of ratios.

hlorun's inputs change from iteration to iteration, and it is the last result that is compared with XLA's. XLA runs on the
inputs of hlorun's last iteration throughout, copied anew before each, so that neither finds them in its caches.

    python3 bench/models.py [--hlorun build/bin/hlorun] [--rounds 5] [--iterations 3] [--json FILE] [--plot FILE.png]
                            [--device D] MODULE[:NORMAL[:INTEGERS]] ...

Modules in a folder called training are compared within scripts/lib/reference.py's bounds for training: 1e-3 relative, or 1e-2 of
the largest magnitude (they move by 4e-3 of it when their inputs move by one ulp). --rel_error_bound overrides.

NORMAL lists the parameters that are data ("0,1"), INTEGERS bounds integer inputs; both as hlorun's flags. Only ratios
within one run count: the machines are noisy. Columns: the best time of each side and the median of the rounds' medians; the ratio of
best times, the median of the rounds' ratios, and the largest of those over the smallest; the bytes that either side plans
(bench/xla_memory.py says what they count), and hlorun's over its largest live set. PyTorch beside both: bench/torch_models.py.
Needs jax, jaxlib, numpy (and matplotlib for --plot).
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "lib"))
from reference import error_bounds  # noqa: E402  found through the path above
from runs import HERE, Failed, arguments, chosen, compared, cpu, on_xla_cpu, report, save_rows, seeded


def measure(spec, flags, folder):
    """One line of the table; {"module", "error"} where a side fails."""
    module = spec.partition(":")[0]
    name = os.path.join(os.path.basename(os.path.dirname(module)), os.path.basename(module).removesuffix(".hlo"))
    inputs, expected = os.path.join(folder, "inputs"), os.path.join(folder, "expected")
    command = [flags.hlorun, "--json", *seeded(spec), *([f"--device={flags.device}"] if flags.device else [])]
    ours, theirs = [], []
    try:
        # With --vary_inputs iteration i (from 1) has seed i.
        report(command + ["--save_inputs=" + inputs, f"--seed={flags.iterations}"])
        for _ in range(flags.rounds):
            try:
                theirs.append(report(on_xla_cpu(module, inputs, flags.iterations, expected)))
            except Failed as trouble:
                raise Failed(f"XLA:CPU: {trouble}") from trouble
            checked = command + ["--vary_inputs", "--expect=" + expected, f"--iterations={flags.iterations}"]
            if flags.rel_error_bound:
                checked.append(f"--rel_error_bound={flags.rel_error_bound}")
            else:
                checked += error_bounds(module, expected)
            ours.append(report(checked))
    except Failed as trouble:
        return {"module": name, "error": str(trouble)}
    return {"module": name, **compared(ours, theirs),
            "peak_over_live": ours[-1]["peak_bytes"] / max(1, ours[-1]["largest_live_bytes"])}


def plot(rows, path):
    """Ratios to XLA:CPU as bars: the median of the rounds, and from which to which they went."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    rows = [r for r in rows if "ratios" in r][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(rows) + 1.5))
    medians = [r["median_ratio"] for r in rows]
    reach = [[m - min(r["ratios"]) for m, r in zip(medians, rows)], [max(r["ratios"]) - m for m, r in zip(medians, rows)]]
    axes.barh([r["module"] for r in rows], medians, xerr=reach, capsize=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("time relative to XLA:CPU (less is faster)")
    figure.tight_layout()
    figure.savefig(path)


def arguments_of_comparison(description, rounds=3):
    """What `measure` reads, and --json."""
    parser = arguments(description, rounds)
    parser.add_argument("--rel_error_bound")
    parser.add_argument("--device")
    parser.add_argument("--json")
    return parser


def measured(specs, flags, print_row):
    """A row for each module, printed as it comes. --json saves them."""
    rows = []
    for spec in specs:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(spec, flags, folder))
        print_row(rows[-1])
        sys.stdout.flush()
    if flags.json:
        save_rows(flags.json, rows)
    return rows


def failed(rows):
    return 1 if any("error" in row for row in rows) else 0


def compare_programs(description, programs):
    """The whole of a benchmark of modules in bench/modules. `programs` maps a name to (parameters that are data, bound of
    integer inputs, aim: the ratio to stay below, or None). Gives the exit code."""
    parser = arguments_of_comparison(description)
    parser.add_argument("names", nargs="*", default=[])
    flags = parser.parse_args()
    names = chosen(parser, flags.names, programs)
    print(cpu())
    print(f"{'program':24} {'hlorun ms':>10} {'XLA ms':>10} {'ratio':>6} {'median':>6} {'spread':>6} {'compile s':>9} {'XLA s':>6} {'aim':>5}")

    def print_row(row):
        name = os.path.basename(row["module"])
        if "error" in row:
            print(f"{name:24} {row['error']}")
            return
        aim = row["aim"] = programs[name][2]
        met = "" if aim is None else f" {aim:5.2f} {'met' if row['ratio'] <= aim else 'MISSED'}"
        print(f"{name:24} {row['best_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['ratio']:6.3f} {row['median_ratio']:6.3f} "
              f"{row['spread']:6.2f} {row['compile_s']:9.2f} {row['xla_compile_s']:6.2f}{met}")

    specs = [":".join([os.path.join(HERE, "modules", name + ".hlo"), *programs[name][:2]]) for name in names]
    return failed(measured(specs, flags, print_row))


def main():
    parser = arguments_of_comparison(__doc__, rounds=5)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--plot")
    flags = parser.parse_args()
    print(cpu())
    print(f"{'':42} {'hlorun ms':>21} {'XLA:CPU ms':>21} {'ratio':>20} {'compile s':>13} {'planned MiB':>22}\n"
          f"{'module':42} {'best':>10} {'median':>10} {'best':>10} {'median':>10} {'best':>6} {'median':>6} {'spread':>6} "
          f"{'hlorun':>6} {'XLA':>6} {'hlorun':>8} {'XLA':>8} {'ratio':>5} {'/live':>5}")

    def print_row(row):
        if "error" in row:
            print(f"{row['module']:42} {row['error']}")
            return
        peak, peer = row["peak_bytes"], row["xla_peak_bytes"]
        print(f"{row['module']:42} {row['best_ms']:10.3f} {row['median_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['xla_median_ms']:10.3f} "
              f"{row['ratio']:6.2f} {row['median_ratio']:6.2f} {row['spread']:6.2f} {row['compile_s']:6.2f} {row['xla_compile_s']:6.2f} "
              f"{peak / 2**20:8.2f} {peer / 2**20:8.2f} {peak / peer:5.2f} {row['peak_over_live']:5.3f}")

    rows = measured(flags.modules, flags, print_row)
    if flags.plot:
        plot(rows, flags.plot)
    return failed(rows)


if __name__ == "__main__":
    sys.exit(main())
