#!/usr/bin/env python3
"""Exports the worked examples of dynamic programs: NAME/module.hlo, NAME/cases/CASE.inputs.npz and CASE.expected.npz.

    python3 examples/dynamic/export.py [-o FOLDER] [NAME ...]

The classes are in programs.py. Expected outputs are PyTorch's own, of the class as a user writes it, on arrays of actual
size. Needs torch==2.13.0 torchax==0.0.13 jax==0.10.2, and hlo-opt (build/bin, or $HLO_OPT) for sizes that vary.
"""

import argparse
import os
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "scripts"), os.path.join(ROOT, "scripts/lib")]
import bounded  # noqa: E402  found through the path above
import export_torch  # noqa: E402
import programs  # noqa: E402
from export_jax import hlo_text  # noqa: E402


def exported(example):
    """The class that is rewritten with cond, while_loop and map, as an ExportedProgram."""
    module = example.module().eval()
    dimensions = {name: torch.export.Dim(name, min=0, max=bound) for name, bound in example.bounds.items()}
    shapes = None
    if dimensions:
        shapes = tuple({d: dimensions[part] for d, part in enumerate(spec.split(",")) if part in dimensions} if isinstance(spec, str) else None
                       for spec in example.specs)
    return torch.export.export(module, example.traced, dynamic_shapes=shapes)


def text_of(example, program):
    """(states, HLO text) of an example; `program` is None where it is a JAX function."""
    states, function = ([], example.jax) if program is None else export_torch.to_jax(program)
    if example.wrap:
        function = example.wrap(function)
    arguments = [np.asarray(a.cpu() if isinstance(a, torch.Tensor) else a) for a in example.traced]
    specs = [s.shape for s in states] + [spec if isinstance(spec, str) else a.shape for spec, a in zip(example.specs, arguments)]
    dtypes = [s.dtype for s in states] + [np.dtype("int32") if a.dtype == np.int64 else a.dtype for a in arguments]
    if example.bounds or example.sizes_are_data:
        return states, bounded.export_text(function, specs, dtypes, example.bounds, hlo_text)
    import jax

    shapes = [jax.ShapeDtypeStruct(s, d) for s, d in zip(specs, dtypes)]
    donated = tuple(len(states) + d for d in example.donate)
    return states, hlo_text(jax.jit(function, keep_unused=True, donate_argnums=donated).lower(*shapes).compiler_ir("hlo"))


def expected_of(example, arguments):
    tensors = [torch.from_numpy(np.array(a)) for a in arguments]
    results = example.original(*tensors)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [np.asarray(r.detach().numpy() if isinstance(r, torch.Tensor) else r) for r in results]


def narrow(array):
    array = np.asarray(array)
    return array.astype(np.int32) if array.dtype == np.int64 else array


def write(example, program, expected, folder):
    states, text = text_of(example, program)
    cases = os.path.join(folder, example.name, "cases")
    os.makedirs(cases, exist_ok=True)
    with open(os.path.join(folder, example.name, "module.hlo"), "w") as file:
        file.write(text.replace(ROOT + "/", "").replace(os.path.dirname(np.__path__[0]) + "/", ""))  # paths of this machine
    for case, arguments in example.cases().items():
        for kind, arrays in (("inputs", [*states, *arguments]), ("expected", expected[case])):
            np.savez(os.path.join(cases, f"{case}.{kind}.npz"), **{str(i): narrow(a) for i, a in enumerate(arrays)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples; all when none is given")
    parser.add_argument("-o", "--output", default=HERE)
    flags = parser.parse_args()
    chosen = [e for e in programs.EXAMPLES if not flags.names or e.name in flags.names]
    # PyTorch's part first: importing torchax changes its default device.
    prepared = [(e, None if e.jax else exported(e), {c: expected_of(e, a) for c, a in e.cases().items()}) for e in chosen]
    for example, program, expected in prepared:
        write(example, program, expected, flags.output)
        print(f"{example.name}: {', '.join(example.cases())}")


if __name__ == "__main__":
    main()
