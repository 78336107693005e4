"""What the benchmarks share: the programs that they time, and where they ran."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

from baselines import cpu_values

HERE = os.path.dirname(os.path.abspath(__file__))
HLORUN = os.path.join(HERE, "..", "build", "bin", "hlorun")
ROOFLINE = os.path.join(HERE, "..", "build", "bin", "roofline")
FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")  # what code generation looks at


class Failed(SystemExit):
    """The last line that a program printed before it failed. Ends the benchmark where it is not caught."""


def arguments(description, rounds=3, iterations=3):
    """The parser of a benchmark: --hlorun, --rounds, --iterations."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlorun", default=HLORUN)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--iterations", type=int, default=iterations)
    return parser


def cpu():
    """CPU model, family and model numbers (virtual machines hide names), cores and FEATURES."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        values = cpu_values(file.read())
    flags = values.get("flags", "").split()
    name, family, model = (values.get(key, "unknown") for key in ("model name", "cpu family", "model"))
    return f"{name} (family {family} model {model}), {os.cpu_count()} cores: {' '.join(f for f in FEATURES if f in flags)}"


def run(command, env=None):
    """What the command prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        raise Failed(((done.stderr or done.stdout).strip().splitlines() or [f"{command[0]}: exit code {done.returncode}"])[-1])
    return done.stdout


def report(command, env=None):
    """The JSON in the last line that the command prints: of `hlorun --json`, say."""
    return json.loads(run(command, env).strip().splitlines()[-1])


def device_spec(roofline, device="", env=None):
    """What build/bin/roofline measures of the device (hlorun's --device)."""
    return json.loads(run([roofline, *([device] if device else [])], env))


def processor_seconds():
    """Of all commands that have ended. Other work on the machine stretches wall time more."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed_report(command, env=None):
    """The report, and the processor seconds of the whole command."""
    before = processor_seconds()
    return report(command, env), processor_seconds() - before


def seeded(spec):
    """hlorun's arguments for MODULE[:NORMAL[:INTEGERS]]: the module, which parameters are data, the bound of integer inputs."""
    module, _, rest = spec.partition(":")
    normal, _, integers = rest.partition(":")
    return [module, "--fill_elided", *([f"--normal={normal}"] if normal else []), *([f"--integers={integers}"] if integers else [])]


def on_xla_cpu(module, inputs, iterations, outputs=None):
    """The command that runs the module on XLA:CPU and prints a report like hlorun's."""
    command = [sys.executable, os.path.join(HERE, "xla_cpu.py"), module, "--inputs", inputs, "--iterations", str(iterations)]
    return command + (["--outputs", outputs] if outputs else [])


def on_torch(module, inputs, expected, iterations, bounds):
    """The command that runs the module's peer in PyTorch, if it has one, and prints reports of PyTorch's two sides."""
    return [sys.executable, os.path.join(HERE, "torch_of_module.py"), module, "--inputs", inputs, "--expected", expected,
            "--iterations", str(iterations), *bounds]


def module_name(path):
    """Its folder and name, without ".hlo"."""
    return os.path.join(os.path.basename(os.path.dirname(os.path.abspath(path))), os.path.basename(path).removesuffix(".hlo"))


def times(reports, side=""):
    """The best time and the median of the rounds' medians; keys begin with `side`."""
    return {side + "best_ms": min(r["best_ms"] for r in reports), side + "median_ms": statistics.median(r["median_ms"] for r in reports)}


def ratios(ours, theirs, side=""):
    """hlorun's times over another's of the same rounds; keys begin with `side`."""
    of_rounds = [a["median_ms"] / b["median_ms"] for a, b in zip(ours, theirs)]
    return {side + "ratio": min(r["best_ms"] for r in ours) / min(r["best_ms"] for r in theirs),
            side + "median_ratio": statistics.median(of_rounds), side + "spread": max(of_rounds) / min(of_rounds), side + "ratios": of_rounds}


def compared(ours, theirs):
    """hlorun's reports beside XLA:CPU's of the same rounds: what a row of a table says of both. Bytes: bench/xla_memory.py."""
    return {**times(ours), **times(theirs, "xla_"), **ratios(ours, theirs),
            "peak_bytes": ours[-1]["peak_bytes"], "xla_peak_bytes": theirs[-1]["peak_bytes"], "device": ours[-1]["device"],
            "compile_s": min(r["compile_s"] for r in ours), "xla_compile_s": min(r["compile_s"] for r in theirs), "kernels": ours[-1]["kernels"]}


def chosen(parser, names, known):
    """`names`, or all that are known where there are none. A usage error where one is not known."""
    unknown = set(names) - set(known)
    if unknown:
        parser.error(f"not one of {', '.join(known)}: {', '.join(sorted(unknown))}")
    return names or list(known)


def save_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"cpu": cpu(), "rows": rows}, file, indent=1)
