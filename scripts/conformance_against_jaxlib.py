#!/usr/bin/env python3
"""Holds the evaluator against XLA:CPU on all conformance cases.

    conformance_dump DIR [SUBSTRING]                 # writes the cases and the evaluator's results
    python3 scripts/conformance_against_jaxlib.py DIR [--verbose] [--only REGEX]

Each case is compiled and run by jaxlib in a child process (some abort it); results are compared as the case allows.
Prints one line for each difference and a summary; exit status 1 when there are differences. Needs jax, jaxlib, numpy, ml_dtypes.
"""
import argparse
import collections
import json
import multiprocessing
import os
import re
import sys

import ml_dtypes
import numpy as np

DTYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128, "bf16": ml_dtypes.bfloat16, "s2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
    "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e4m3": ml_dtypes.float8_e4m3, "f8e3m4": ml_dtypes.float8_e3m4,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}


def array(data, leaf):
    dtype = np.dtype(DTYPES[leaf["type"]])
    count = int(np.prod(leaf["dimensions"], dtype=np.int64))
    return np.frombuffer(data, dtype, count, leaf["offset"]).reshape(leaf["dimensions"])


def serve(connection, directory):
    """Runs in a child: takes case indices, gives back ("ok", [(dtype name, shape, bytes)]) or ("error", message)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    import jax
    jax.config.update("jax_enable_x64", True)
    import jaxlib._jax as _jax
    from jax._src.interpreters import mlir as jax_mlir
    from jax._src.lib.mlir import ir
    from jaxlib import xla_client
    device = jax.devices("cpu")[0]
    with open(os.path.join(directory, "cases.json")) as f:
        cases = json.load(f)
    with open(os.path.join(directory, "arrays.bin"), "rb") as f:
        data = f.read()
    while True:
        index = connection.recv()
        if index is None:
            return
        case = cases[index]
        try:
            proto = xla_client.hlo.hlo_module_from_text(case["text"]).as_serialized_hlo_module_proto()
            bytecode = _jax.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(proto))
            with jax_mlir.make_ir_context():
                executable = device.client.compile_and_load(
                    ir.Module.parse(bytecode), _jax.DeviceList((device,)), xla_client.CompileOptions())
            arguments = [jax.device_put(array(data, leaf), device) for leaf in case["inputs"]]
            results = [np.asarray(r) for r in executable.execute(arguments)]
            connection.send(("ok", [(r.dtype.name, r.shape, r.tobytes()) for r in results]))
        except Exception as error:  # the oracle may refuse a case in many ways
            connection.send(("error", str(error).replace("\n", " ")[:200]))


class Oracle:
    def __init__(self, directory):
        self.directory = directory
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.directory), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, index):
        try:
            self.connection.send(index)
            if not self.connection.poll(120):
                raise EOFError
            return self.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.kill()
            self.process.join()
            self.start()
            return ("error", "the oracle's process died")


def ulp_of(values, dtype):
    """Distance to the next value of the type, at each magnitude."""
    info = ml_dtypes.finfo(dtype)
    smallest = float(info.smallest_normal)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(values.astype(np.float64)), smallest)))
    return np.ldexp(1.0, exponent.astype(int) - int(info.nmant))


def differences(ours, theirs, case):
    """Indices (flat) where results differ by more than the case allows."""
    if ours.dtype.kind == "c":
        real = np.float32 if ours.dtype == np.complex64 else np.float64
        return sorted(set(differences(ours.real.astype(real), theirs.real.astype(real), case)) |
                      set(differences(ours.imag.astype(real), theirs.imag.astype(real), case)))
    a, b = ours.ravel(), theirs.ravel()
    if a.dtype.kind in "biu" or a.dtype.name.startswith(("int", "uint")):
        return [int(i) for i in np.flatnonzero(a != b)]
    with np.errstate(all="ignore"):
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    nan_a, nan_b = np.isnan(wide_a), np.isnan(wide_b)
    with np.errstate(all="ignore"):
        same = (wide_a == wide_b) & (case["sums"] | (np.signbit(wide_a) == np.signbit(wide_b)))
        error = np.abs(wide_a - wide_b)
        allowed = case["ulps"] * ulp_of(wide_b, a.dtype)
        finite = np.abs(wide_b[np.isfinite(wide_b)])
        allowed = np.maximum(allowed, case["relative"] * (finite.max() if finite.size else 0.0))
        close = np.isfinite(wide_a) & np.isfinite(wide_b) & (error <= allowed) & (allowed > 0)
    return [int(i) for i in np.flatnonzero(~(same | close | (nan_a & nan_b)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--verbose", action="store_true", help="show operands at differences, and cases not compared")
    parser.add_argument("--only", default="", help="cases whose name matches this regular expression")
    flags = parser.parse_args()
    with open(os.path.join(flags.directory, "cases.json")) as f:
        cases = json.load(f)
    with open(os.path.join(flags.directory, "arrays.bin"), "rb") as f:
        data = f.read()
    oracle = Oracle(flags.directory)
    counts = collections.Counter()
    for index, case in enumerate(cases):
        if not re.search(flags.only, case["name"]):
            continue
        kind, theirs = oracle.run(index)
        if kind == "error" or "error" in case:
            who = "both" if kind == "error" and "error" in case else "oracle" if kind == "error" else "evaluator"
            counts[f"refused by {who}"] += 1
            if flags.verbose or who == "evaluator":
                print(f"{case['name']}: refused by {who}: {case.get('error') if who != 'oracle' else theirs}")
            continue
        wrong = []
        for leaf, (name, shape, content) in zip(case["outputs"], theirs, strict=True):
            ours = array(data, leaf)
            if ours.shape != tuple(shape) or ours.nbytes != len(content):  # jaxlib calls random s32 u32
                wrong.append(f"{ours.dtype.name}{list(ours.shape)}, oracle {name}{list(shape)}")
                continue
            result = np.frombuffer(content, ours.dtype).reshape(shape)
            indices = differences(ours, result, case)
            for i in indices[: 6 if flags.verbose else 2]:
                operands = [array(data, x).ravel()[i] for x in case["inputs"] if i < np.prod(x["dimensions"])]
                wrong.append(f"[{i}] of {operands}: {ours.ravel()[i]}, oracle {result.ravel()[i]}")
            if indices:
                wrong.append(f"{len(indices)} of {ours.size}")
        if wrong and case["oracle_fault"]:
            counts["differs where the oracle is wrong"] += 1
            continue
        counts["differs" if wrong else "agrees"] += 1
        if wrong:
            print(f"{case['name']}: " + "; ".join(wrong))
    print(dict(counts))
    return 1 if counts["differs"] or counts["refused by evaluator"] else 0


if __name__ == "__main__":
    sys.exit(main())
