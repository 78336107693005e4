#!/usr/bin/env python3
"""Times modules on hlorun, XLA:CPU and PyTorch in alternation, checks that all give the same outputs, prints a table of ratios.

hlorun's inputs change from iteration to iteration, and it is the last result that is compared with XLA's. XLA runs on the
inputs of hlorun's last iteration throughout, copied anew before each, so that neither finds them in its caches. PyTorch, eager and
torch.compile, has a peer of some of the real modules (bench/module_peers.py): it is checked on those inputs within hlorun's bounds, then
its data are other values in each iteration, written just before; its weights stay.

    python3 bench/models.py [--hlorun build/bin/hlorun] [--rounds 5] [--iterations 3] [--json FILE] [--plot FILE.png]
                            [--device D] [--without_torch] MODULE[:NORMAL[:INTEGERS]] ...

Modules in a folder called training are compared within scripts/lib/reference.py's bounds for training: 1e-3 relative, or 1e-2 of
the largest magnitude (they move by 4e-3 of it when their inputs move by one ulp). --rel_error_bound overrides.

NORMAL lists the parameters that are data ("0,1"), INTEGERS bounds integer inputs; both as hlorun's flags. Only ratios
within one run count: the machines are noisy. Columns: the best time of each side and the median of the rounds' medians; ratios of
hlorun's time to another side's: of best times, the median of the rounds' ratios, and the largest of those over the smallest; the
bytes that hlorun and XLA plan (bench/xla_memory.py says what they count), and hlorun's over its largest live set. "-": no peer, or no
PyTorch; a peer that differs, or cannot run, has no times, and a line says why. Exits 1 where a side fails or differs. Models that are
written in PyTorch and exported: bench/torch_models.py. Needs jax, jaxlib, numpy (torch for its columns, matplotlib for --plot).
"""
import importlib.util
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "lib"))
from reference import error_bounds  # noqa: E402  found through the path above
from runs import (HERE, Failed, arguments, chosen, compared, cpu, module_name, on_torch, on_xla_cpu, ratios, report, save_rows, seeded,
                  times)

TORCH_SIDES = {"eager": "PyTorch eager", "compiled": "torch.compile"}


class TorchRounds:
    """PyTorch's reports of all rounds, or what was wrong."""

    def __init__(self, wanted):
        self.has_peer, self.reports, self.trouble = wanted, {side: [] for side in TORCH_SIDES}, {}

    def run(self, *of_module):
        """A round of a module; `of_module` as bench/runs.py has it."""
        if not self.has_peer:
            return
        try:
            found = report(on_torch(*of_module))
        except Failed as trouble:
            found = {side: {"trouble": f"failed: {trouble}"} for side in TORCH_SIDES}
        self.has_peer = bool(found)
        for side, times_or_trouble in found.items():
            if "trouble" in times_or_trouble:
                self.trouble[side] = times_or_trouble["trouble"]
            else:
                self.reports[side].append(times_or_trouble)

    def columns(self, ours):
        """What a row says of PyTorch beside hlorun's reports."""
        row = {f"{side}_trouble": trouble for side, trouble in self.trouble.items()}
        for side, reports in self.reports.items():
            if reports and side not in self.trouble:
                row |= {**times(reports, side + "_"), **ratios(ours, reports, side + "_")}
        return row


def measure(spec, flags, folder, with_torch=False):
    """One line of the table; {"module", "error"} where hlorun or XLA fails."""
    module = spec.partition(":")[0]
    name = module_name(module)
    inputs, expected = os.path.join(folder, "inputs"), os.path.join(folder, "expected")
    command = [flags.hlorun, "--json", *seeded(spec), *([f"--device={flags.device}"] if flags.device else [])]
    ours, theirs, torch_rounds = [], [], TorchRounds(with_torch)
    try:
        # With --vary_inputs iteration i (from 1) has seed i.
        report(command + ["--save_inputs=" + inputs, f"--seed={flags.iterations}"])
        for _ in range(flags.rounds):
            try:
                theirs.append(report(on_xla_cpu(module, inputs, flags.iterations, expected)))
            except Failed as trouble:
                raise Failed(f"XLA:CPU: {trouble}") from trouble
            bounds = [f"--rel_error_bound={flags.rel_error_bound}"] if flags.rel_error_bound else error_bounds(module, expected)
            torch_rounds.run(module, inputs, expected, flags.iterations, bounds)
            ours.append(report(command + ["--vary_inputs", "--expect=" + expected, f"--iterations={flags.iterations}", *bounds]))
    except Failed as trouble:
        return {"module": name, "error": str(trouble)}
    return {"module": name, **compared(ours, theirs), **torch_rounds.columns(ours),
            "peak_over_live": ours[-1]["peak_bytes"] / max(1, ours[-1]["largest_live_bytes"])}


def plot(rows, path):
    """Ratios as bars, a group for each module: the median of the rounds, and from which to which they went."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    rows = [r for r in rows if "ratios" in r]
    figure, axes = pyplot.subplots(figsize=(8, 0.9 * len(rows) + 1.5))
    for i, (side, label) in enumerate({"": "XLA:CPU", **{side + "_": name for side, name in TORCH_SIDES.items()}}.items()):
        known = {place: r for place, r in enumerate(rows) if side + "ratios" in r}
        medians = [r[side + "median_ratio"] for r in known.values()]
        reach = [[r[side + "median_ratio"] - min(r[side + "ratios"]) for r in known.values()],
                 [max(r[side + "ratios"]) - r[side + "median_ratio"] for r in known.values()]]
        axes.barh([place + 0.25 * (i - 1) for place in known], medians, 0.25, xerr=reach, capsize=3, label=f"to {label}")
    axes.set_yticks(range(len(rows)), [r["module"] for r in rows])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("hlorun's time relative to the other's (less is faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def arguments_of_comparison(description, rounds=3):
    """What `measure` reads, and --json."""
    parser = arguments(description, rounds)
    parser.add_argument("--rel_error_bound")
    parser.add_argument("--device")
    parser.add_argument("--json")
    return parser


def measured(specs, flags, print_row, with_torch=False):
    """A row for each module, printed as it comes. --json saves them."""
    rows = []
    for spec in specs:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(spec, flags, folder, with_torch))
        print_row(rows[-1])
        sys.stdout.flush()
    if flags.json:
        save_rows(flags.json, rows)
    return rows


def is_wrong(trouble):
    """That torch.compile has no compiler, or cannot, is no failure."""
    return trouble is not None and not trouble.startswith("not measured")


def failed(rows):
    return 1 if any("error" in row or any(is_wrong(row.get(side + "_trouble")) for side in TORCH_SIDES) for row in rows) else 0


def compare_programs(description, programs):
    """The whole of a benchmark of modules in bench/modules. `programs` maps a name to (parameters that are data, bound of
    integer inputs, aim: what the median of the rounds' ratios is to stay below, or None). Gives the exit code."""
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
        met = "" if aim is None else f" {aim:5.2f} {'met' if row['median_ratio'] <= aim else 'MISSED'}"
        print(f"{name:24} {row['best_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['ratio']:6.3f} {row['median_ratio']:6.3f} "
              f"{row['spread']:6.2f} {row['compile_s']:9.2f} {row['xla_compile_s']:6.2f}{met}")

    specs = [":".join([os.path.join(HERE, "modules", name + ".hlo"), *programs[name][:2]]) for name in names]
    return failed(measured(specs, flags, print_row))


HEADER = (f"{'':42} {'hlorun ms':>21} {'XLA:CPU ms':>21} {'ratio':>20} {'compile s':>13} {'planned MiB':>29}"
          + "".join(f"{name + ' ms':>22} {'ratio':>20}" for name in TORCH_SIDES.values())
          + f"\n{'module':42} {'best':>10} {'median':>10} {'best':>10} {'median':>10} {'best':>6} {'median':>6} {'spread':>6} "
          f"{'hlorun':>6} {'XLA':>6} {'hlorun':>8} {'XLA':>8} {'ratio':>5} {'/live':>5}"
          + f" {'best':>10} {'median':>10} {'best':>6} {'median':>6} {'spread':>6}" * len(TORCH_SIDES))


def torch_columns(row, side):
    """The times and ratios of one of PyTorch's sides."""
    if side + "_best_ms" not in row:
        return f" {'-':>10} {'-':>10} {'-':>6} {'-':>6} {'-':>6}"
    return (f" {row[side + '_best_ms']:10.3f} {row[side + '_median_ms']:10.3f} {row[side + '_ratio']:6.2f} {row[side + '_median_ratio']:6.2f} "
            f"{row[side + '_spread']:6.2f}")


def lines(row):
    """A row as the table has it, and what is wrong with PyTorch."""
    if "error" in row:
        return f"{row['module']:42} {row['error']}"
    peak, peer = row["peak_bytes"], row["xla_peak_bytes"]
    return (f"{row['module']:42} {row['best_ms']:10.3f} {row['median_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['xla_median_ms']:10.3f} "
            f"{row['ratio']:6.2f} {row['median_ratio']:6.2f} {row['spread']:6.2f} {row['compile_s']:6.2f} {row['xla_compile_s']:6.2f} "
            f"{peak / 2**20:8.2f} {peer / 2**20:8.2f} {peak / peer:5.2f} {row['peak_over_live']:5.3f}"
            + "".join(torch_columns(row, side) for side in TORCH_SIDES)
            + "".join(f"\n    {name}: {row[side + '_trouble']}" for side, name in TORCH_SIDES.items() if side + "_trouble" in row))


def main():
    parser = arguments_of_comparison(__doc__, rounds=5)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--plot")
    parser.add_argument("--without_torch", action="store_true")
    flags = parser.parse_args()
    with_torch = not flags.without_torch and importlib.util.find_spec("torch") is not None
    print(cpu())
    if not with_torch and not flags.without_torch:
        print("PyTorch is not installed: its columns are empty")
    print(HEADER)
    rows = measured(flags.modules, flags, lambda row: print(lines(row)), with_torch)
    if flags.plot:
        plot(rows, flags.plot)
    return failed(rows)


if __name__ == "__main__":
    sys.exit(main())
