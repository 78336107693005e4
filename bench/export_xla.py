#!/usr/bin/env python3
"""Writes HLO text modules as programs that any newer jax runs on another machine (bench/gpu.py), beside their text.

    python3 bench/export_xla.py [--platform cuda] [--highest] DIR MODULE...

DIR/NAME.hlo and DIR/NAME.jax (jax.export's format). --highest: products and convolutions of f32 in full precision, where
XLA may otherwise round their operands to tf32. Modules whose constants were elided, or with ops that StableHLO lacks, are
left out by name. Needs jax, jaxlib, numpy, ml_dtypes, flatbuffers (scripts/requirements-test.txt has the versions).
"""

import argparse
import dataclasses
import os
import re
import sys

import jax
import jax.numpy as jnp
import jaxlib._jax as runtime
import numpy as np
from jax import export
from jax._src.export import _export
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from jaxlib import xla_client

from xla_cpu import leaves, single_device


def in_full_precision(text):
    def widened(match):
        line = match.group(0)
        if "operand_precision" in line:
            return line
        at = line.find(", metadata={")
        at = len(line) if at < 0 else at
        return line[:at] + ", operand_precision={highest,highest}" + line[at:]

    return re.sub(r"^[^=\n]*= [^=\n]*\b(?:dot|convolution)\([^\n]*", widened, text, flags=re.M)


def exported(text, platform):
    """The bytes of the module's StableHLO in the frame of an export of a program with the same arrays."""
    module = xla_client.hlo.hlo_module_from_text(text)
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    program = computation.program_shape()
    arguments = [leaf for shape in program.parameter_shapes() for leaf in leaves(shape)]
    results = leaves(program.result_shape())
    frame = export.export(
        jax.jit(lambda *_: tuple(jnp.zeros(r.dimensions(), np.dtype(r.numpy_dtype())) for r in results)), platforms=(platform,)
    )(*[jax.ShapeDtypeStruct(a.dimensions(), np.dtype(a.numpy_dtype())) for a in arguments])
    with jax_mlir.make_ir_context():
        stablehlo = ir.Module.parse(runtime.mlir.xla_computation_to_mlir_module(computation))
        code = _export._module_to_bytecode(stablehlo)  # pylint: disable=protected-access
    whole = dataclasses.replace(frame, mlir_module_serialized=code, module_kept_var_idx=tuple(range(len(arguments))))
    return whole.serialize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--highest", action="store_true")
    flags = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    os.makedirs(flags.directory, exist_ok=True)
    for path in flags.modules:
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            text = single_device(file.read())
        if "{...}" in text:
            print(f"{name} is left out: its constants were elided", file=sys.stderr)
            continue
        try:
            program = exported(in_full_precision(text) if flags.highest else text, flags.platform)
        except Exception as error:  # jaxlib's own types
            print(f"{name} is left out: {str(error).strip().splitlines()[0][:120]}", file=sys.stderr)
            continue
        for ending, contents in ((".hlo", text.encode()), (".jax", program)):
            with open(os.path.join(flags.directory, name + ending), "wb") as file:
                file.write(contents)


if __name__ == "__main__":
    main()
