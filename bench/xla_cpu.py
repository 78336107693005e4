#!/usr/bin/env python3
"""Runs an HLO text module on XLA:CPU through jaxlib and prints one line of JSON: the peer of bench/models.py.

    python3 bench/xla_cpu.py MODULE --inputs DIR [--outputs DIR] [--iterations N]

DIR/0.npy, 1.npy ... are the flattened entry parameters. Donation and partitioning annotations are taken out of the
module, so that it can run more than once on one device. Bytes: bench/xla_memory.py. Needs jax, jaxlib, numpy, ml_dtypes.
"""
import argparse
import json
import os
import re
import time

import numpy as np

from xla_memory import planned_bytes


def without_attribute(text, name):
    """Drops every `, name={...}`, braces balanced, strings respected."""
    pieces, position = [], 0
    for match in re.finditer(r",\s*" + re.escape(name) + r"=\{", text):
        if match.start() < position:
            continue
        depth, quoted, i = 1, False, match.end()
        while depth:
            c = text[i]
            if quoted:
                i += c == "\\"
                quoted = c != '"'
            elif c == '"':
                quoted = True
            else:
                depth += (c == "{") - (c == "}")
            i += 1
        pieces.append(text[position:match.start()])
        position = i
    return "".join(pieces) + text[position:]


def single_device(text):
    text = re.sub(r"custom-call\(([^()]*)\),[^\n]*custom_call_target=\"(?:Sharding|xla\.sdy\.FuncResultSharding)\"[^\n]*",
                  r"copy(\1)", text)
    for name in ("input_output_alias", "sharding", "frontend_attributes"):
        text = without_attribute(text, name)
    head, newline, body = text.partition("\n")
    return re.sub(r",\s*(?:num_partitions|replica_count)=\d+", "", head) + newline + body


def leaves(shape):
    return [leaf for element in shape.tuple_shapes() for leaf in leaves(element)] if shape.is_tuple() else [shape]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--outputs")
    parser.add_argument("--iterations", type=int, default=3)
    flags = parser.parse_args()

    import jax
    import jaxlib._jax as runtime
    from jax._src.interpreters import mlir as jax_mlir
    from jax._src.lib.mlir import ir
    from jaxlib import xla_client

    with open(flags.module, encoding="utf-8") as file:
        module = xla_client.hlo.hlo_module_from_text(single_device(file.read()))
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    device = jax.devices("cpu")[0]
    begin = time.perf_counter()
    with jax_mlir.make_ir_context():
        stablehlo = ir.Module.parse(runtime.mlir.xla_computation_to_mlir_module(computation))
        executable = device.client.compile_and_load(stablehlo, runtime.DeviceList((device,)), xla_client.CompileOptions())
    compile_s = time.perf_counter() - begin

    arrays = []
    shapes = [leaf for shape in computation.program_shape().parameter_shapes() for leaf in leaves(shape)]
    for i, shape in enumerate(shapes):
        array = np.load(os.path.join(flags.inputs, f"{i}.npy"))
        wanted = np.dtype(shape.numpy_dtype())
        arrays.append(array if array.dtype == wanted else array.view(wanted))

    def run():
        # In memory written just before, as hlorun's inputs are: arrays that lie in the caches from the run before are read
        # several times as fast.
        arguments = [jax.block_until_ready(jax.device_put(array.copy())) for array in arrays]
        start = time.perf_counter()
        results = executable.execute(arguments)
        for result in results:
            result.block_until_ready()
        return results, (time.perf_counter() - start) * 1e3

    results, first_ms = run()
    times = [run()[1] for _ in range(flags.iterations)]
    if flags.outputs:
        os.makedirs(flags.outputs, exist_ok=True)
        for i, result in enumerate(results):
            array = np.asarray(result)
            if array.dtype.itemsize == 1 and array.dtype.kind not in "biu":
                array = array.view(np.uint8)
            np.save(os.path.join(flags.outputs, f"{i}.npy"), array)
    print(json.dumps({"compile_s": compile_s, "first_ms": first_ms, "best_ms": min(times), "median_ms": float(np.median(times)),
                      **planned_bytes(executable.get_compiled_memory_stats())}))


if __name__ == "__main__":
    main()
