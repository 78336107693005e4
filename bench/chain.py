#!/usr/bin/env python3
"""Whether compiling and running grow linearly: chains of 1, 10, 100, 1,000 layers, and the passes alone on 100,000 ops.

    python3 bench/chain.py [--build build] [--layers 1,10,100,1000] [--instructions 10000,100000]

A layer is y = tanh(x . w + b) of f32[64,256] with weights of its own. Columns: processor seconds of a process that compiles with
empty caches, of one that compiles with warm ones, and the best run; then processor seconds of hlo-opt on a chain of dependent
elementwise ops, each of which reads the two before it. Processor time, for a loaded machine stretches wall time.
"""
import argparse
import os
import tempfile

from runs import HERE, processor_seconds, report, run


def layers(count):
    lines = ["HloModule layers", "ENTRY main {", "  x0 = f32[64,256] parameter(0)"]
    for i in range(count):
        lines += [f"  w{i} = f32[256,256] parameter({2 * i + 1})", f"  b{i} = f32[256] parameter({2 * i + 2})",
                  f"  d{i} = f32[64,256] dot(x{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                  f"  s{i} = f32[64,256] broadcast(b{i}), dimensions={{1}}", f"  a{i} = f32[64,256] add(d{i}, s{i})",
                  f"  {'ROOT ' if i == count - 1 else ''}x{i + 1} = f32[64,256] tanh(a{i})"]
    return "\n".join(lines + ["}", ""])


def instructions(count):
    names = ("add", "multiply", "maximum", "subtract")
    lines = ["HloModule chain", "ENTRY main {", "  x0 = f32[64,64] parameter(0)"]
    for i in range(count):
        root = "ROOT " if i == count - 1 else ""
        lines.append(f"  {root}x{i + 1} = f32[64,64] {names[i % 4]}(x{i}, x{max(0, i - 1)})")
    return "\n".join(lines + ["}", ""])


def seconds(command, env=None):
    before = processor_seconds()
    run(command, env)
    return processor_seconds() - before


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--layers", type=numbers, default=[1, 10, 100, 1000])
    parser.add_argument("--instructions", type=numbers, default=[10000, 100000])
    flags = parser.parse_args()
    hlorun, hlo_opt = (os.path.join(flags.build, "bin", name) for name in ("hlorun", "hlo-opt"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.hlo")
        print(f"{'layers':>12} {'kernels':>8} {'cold s':>8} {'warm s':>8} {'run ms':>9} {'run us/layer':>12}")
        for count in flags.layers:
            with open(path, "w", encoding="utf-8") as file:
                file.write(layers(count))
            env = dict(os.environ, POCL_CACHE_DIR=os.path.join(folder, f"pocl{count}"))
            os.mkdir(env["POCL_CACHE_DIR"])
            compile_only = [hlorun, "--compile_only", f"--cache_dir={folder}/cache{count}", path]
            cold, warm = seconds(compile_only, env), seconds(compile_only, env)
            result = report([hlorun, "--json", "--iterations=5", f"--cache_dir={folder}/cache{count}", path], env)
            print(f"{count:12} {result['kernels']:8} {cold:8.2f} {warm:8.2f} {result['best_ms']:9.3f} "
                  f"{1000 * result['best_ms'] / count:12.1f}", flush=True)
        print(f"{'instructions':>12} {'passes s':>8} {'us each':>8}")
        for count in flags.instructions:
            with open(path, "w", encoding="utf-8") as file:
                file.write(instructions(count))
            spent = seconds([hlo_opt, path, "-o", "/dev/null"])
            print(f"{count:12} {spent:8.2f} {1e6 * spent / count:8.1f}", flush=True)


if __name__ == "__main__":
    main()
