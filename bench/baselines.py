"""Ratios to XLA:CPU beside those of an earlier run on the same kind of CPU: which rows became slower. Nothing is measured here.

A row is the ratios of its rounds, hlorun's time over XLA:CPU's. How far a median may lie from the earlier one depends on how
far the rounds of both runs lie from their own medians: on a quiet machine TOLERANCE, else as much more as they say.
"""
import json
import math
import os
import statistics

# Less than this is not looked for. A round figure: on an idle machine it was not measured what medians of the same binary differ by.
TOLERANCE = 1.10
# Rounds that scatter more than this say nothing: the row is called noisy, unless its median is further off than that.
NOISIEST = 1.5

SLOWER, FASTER, SAME, NOISY, NEW = "slower", "faster", "same", "noisy", "new"


def scatter(ratios):
    """By what factor the rounds lie from their median, the middle one of these factors: one bad round does not count."""
    middle = statistics.median(ratios)
    return math.exp(statistics.median(abs(math.log(ratio / middle)) for ratio in ratios))


def runs_of(earlier):
    """Saved rounds by run: `save` is given those of one run as a list of ratios, of several as a list of such lists."""
    return earlier if isinstance(earlier[0], list) else [earlier]


def allowed(ratios, earlier):
    """How many times the earlier median a median may be. Two scatters from each run: of so few rounds a median moves by about one."""
    return max(TOLERANCE, (scatter(ratios) * max(scatter(run) for run in runs_of(earlier))) ** 2)


def verdict(ratios, earlier):
    """What became of a row: (word, median over the earlier median, what is allowed). Of several earlier runs, which tell how far the
    host's hours lie apart, the nearest median counts, and what lies between them is the same. `earlier` is None for a row without a
    baseline."""
    if earlier is None:
        return NEW, None, None
    median, medians, limit = statistics.median(ratios), [statistics.median(run) for run in runs_of(earlier)], allowed(ratios, earlier)
    change = median / min(max(median, min(medians)), max(medians))
    if max(change, 1 / change) <= limit:
        return (NOISY if limit > NOISIEST else SAME), change, limit
    return (SLOWER if change > 1 else FASTER), change, limit


def exit_code(verdicts, failed):
    """Of a whole run: 2 where a row gave no figure, 1 where one is slower, else 0."""
    return 2 if failed else int(SLOWER in verdicts)


def cpu_values(cpuinfo):
    """{field: its first value} of the text of /proc/cpuinfo."""
    values = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        values.setdefault(name.strip(), value.strip())
    return values


def cpu_key(cpuinfo, cores, features):
    """A file name for CPUs whose ratios may be compared: vendor, family, model, cores, and those of `features` that it has.
    `cpuinfo`: the text of /proc/cpuinfo."""
    values = cpu_values(cpuinfo)
    flags = values.get("flags", "").split()
    parts = [values.get("vendor_id", "unknown"), values.get("cpu family", "0"), values.get("model", "0"), f"{cores}cores"]
    return "-".join(parts + [feature for feature in features if feature in flags])


def load(path):
    """What `save` wrote, or None where there is no such file."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, baseline):
    """Under another name first: who is stopped half-way leaves the earlier file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(baseline, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(path + ".new", path)
