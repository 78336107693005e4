#!/usr/bin/env python3
"""Whole networks of many kinds, and what surrounds them, traced by JAX: on hlorun and XLA:CPU in alternation.

    python3 bench/networks.py [--hlorun build/bin/hlorun] [--rounds 3] [--iterations 10] [--keep FOLDER] [--json FILE] [NAME ...]

bench/networks holds them; none of them was looked at when the compiler was written, so this is a search for outliers. hlorun's results are
compared with XLA:CPU's in each round. Both read the same inputs in each iteration. Ratios are hlorun's time over XLA:CPU's; only those within one run count. Needs jax.
"""
import multiprocessing
import os
import sys
import tempfile

from runs import HERE, Failed, arguments, chosen, compared, cpu, on_xla_cpu, report, save_rows

sys.path[:0] = [os.path.join(HERE, "networks"), os.path.join(HERE, "..", "scripts")]

# Relative or absolute error: outputs of random networks of up to 50 layers, of magnitude 1 to 10.
BOUNDS, BOUNDS_NARROW = (1e-3, 5e-3), (2e-2, 1e-1)
# Of halves (names that end so), and of bytes, where a sum beside the middle of two steps goes to either.
NARROW = ("f16", "resnet_s8", "mobilenet_s8", "transformer_s8", "aware_of_bytes", "scaled_step")


def networks():
    import algorithms  # pylint: disable=import-outside-toplevel
    import compressed  # pylint: disable=import-outside-toplevel
    import estimates  # pylint: disable=import-outside-toplevel
    import filters  # pylint: disable=import-outside-toplevel
    import images  # pylint: disable=import-outside-toplevel
    import losses  # pylint: disable=import-outside-toplevel
    import narrow  # pylint: disable=import-outside-toplevel
    import pixels  # pylint: disable=import-outside-toplevel
    import sciences  # pylint: disable=import-outside-toplevel
    import signals  # pylint: disable=import-outside-toplevel
    import texts  # pylint: disable=import-outside-toplevel
    import trainings  # pylint: disable=import-outside-toplevel

    kinds = (algorithms, compressed, estimates, filters, images, losses, narrow, pixels, signals, texts, trainings, sciences)
    return {name: network for kind in kinds for name, network in kind.NETWORKS.items()}


def export(network, folder):
    """FOLDER/module.hlo and FOLDER/inputs: the weights, then the inputs."""
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
    import numpy as np  # pylint: disable=import-outside-toplevel
    from export_jax import hlo_text, write_program  # pylint: disable=import-outside-toplevel
    from layers import Weights  # pylint: disable=import-outside-toplevel

    function, *rest = network
    dtype = jnp.float32 if isinstance(rest[-1], tuple) else rest.pop()
    random = np.random.default_rng(1)
    inputs = [jnp.asarray(random.integers(0, 10, shape) if kind == jnp.int32 else random.standard_normal(shape), kind) for shape, kind in rest]
    weights = Weights(dtype)
    function(weights, *inputs)
    lowered = jax.jit(lambda arrays, inputs: function(Weights(dtype).replay(arrays), *inputs), keep_unused=True).lower(weights.arrays, inputs)
    write_program(folder, hlo_text(lowered.compiler_ir("hlo")), jax.tree.leaves((weights.arrays, inputs)))


def measure(name, network, flags, folder):
    os.makedirs(folder, exist_ok=True)
    module, inputs, expected = (os.path.join(folder, part) for part in ("module.hlo", "inputs", "expected"))
    ours, theirs = [], []
    relative, absolute = BOUNDS_NARROW if name.endswith(NARROW) else BOUNDS
    try:
        if not os.path.exists(module):
            export(network, folder)
        bounds = [f"--rel_error_bound={relative}", f"--abs_error_bound={absolute}"]
        for _ in range(flags.rounds):
            theirs.append(report(on_xla_cpu(module, inputs, flags.iterations, expected)))
            ours.append(report([flags.hlorun, "--json", f"--inputs={inputs}", f"--expect={expected}", f"--iterations={flags.iterations}", *bounds,
                                *([f"--device={flags.device}"] if flags.device else []), module]))
    except Failed as trouble:
        return {"network": name, "error": str(trouble)}
    return {"network": name, **compared(ours, theirs)}


def measure_exported(name, export_to, flags, folder):
    """Of what export_to(name, folder) writes, in a process of its own: libraries stay in the way of the next export."""
    if not os.path.exists(os.path.join(folder, "module.hlo")):
        process = multiprocessing.get_context("spawn").Process(target=export_to, args=(name, folder))
        process.start()
        process.join()
        if process.exitcode != 0:
            return {"network": name, "error": "could not be exported"}
    return measure(name, None, flags, folder)


def compare(description, known, row_of, rounds, iterations):
    """What the command line asks for: a row a program, by row_of(name, what `known` has of it, flags, folder), and the exit status."""
    parser = arguments(description, rounds, iterations)
    parser.add_argument("--keep")
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    names = chosen(parser, flags.names, known)
    print(cpu())
    print(f"{'network':32} {'hlorun ms':>10} {'XLA ms':>10} {'ratio':>6} {'median':>6} {'compile s':>9} {'XLA s':>6} {'kernels':>7}")
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            row = row_of(name, known[name], flags, os.path.join(flags.keep or folder, name))
        rows.append(row)
        print(f"{name:32} {row['error']}" if "error" in row else
              f"{name:32} {row['best_ms']:10.3f} {row['xla_best_ms']:10.3f} {row['ratio']:6.2f} {row['median_ratio']:6.2f} "
              f"{row['compile_s']:9.2f} {row['xla_compile_s']:6.2f} {row['kernels']:7}", flush=True)
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(compare(__doc__, networks(), measure, rounds=3, iterations=10))
