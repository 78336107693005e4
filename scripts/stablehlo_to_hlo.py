#!/usr/bin/env python3
"""StableHLO (text or bytecode, portable artifacts included) to HLO text, through jaxlib.

    python3 scripts/stablehlo_to_hlo.py model.mlir -o graph.hlo

Without -o, and with "-" as input, it is a filter; hlorun calls it so.
"""

import argparse
import io
import sys


def read_portable_artifact(artifact: bytes) -> bytes:
    """jax.export's format, whose dialect has versions, as plain bytecode."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = ir.Context()
    stablehlo.register_dialect(context)
    with context:
        bytecode = io.BytesIO()
        stablehlo.deserialize_portable_artifact(context, artifact).operation.write_bytecode(bytecode)
    return bytecode.getvalue()


def convert(module: bytes) -> str:
    try:
        from jaxlib import _hlo, _jax
    except ImportError as error:
        raise SystemExit(f"jaxlib is missing ({error}): pip install jax==0.10.2")
    if module.startswith(b"ML\xefR") and b"StableHLO_v" in module[:32]:
        module = read_portable_artifact(module)
    computation = _jax.mlir.mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True  # the default elides values
    return computation.get_hlo_module().to_string(options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", help='a file, or "-" for stdin')
    parser.add_argument("-o", "--output", help="where the HLO text goes (stdout)")
    arguments = parser.parse_args()
    if arguments.input == "-":
        module = sys.stdin.buffer.read()
    else:
        with open(arguments.input, "rb") as file:
            module = file.read()
    text = convert(module)
    if arguments.output:
        with open(arguments.output, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
