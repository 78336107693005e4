#!/usr/bin/env python3
"""Checks that HLO text printed by hlorun means to jaxlib what the original means.

    python3 scripts/compare_text_with_jaxlib.py ../shared/models/*/*.hlo

For each file, jaxlib parses the original and hlorun's print of it, and both HloModuleProtos are compared field by field;
ids are replaced by positions first. Exit code 1 when any file differs.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys

# Field numbers of xla/service/hlo.proto.
MODULE_COMPUTATIONS, MODULE_ID, MODULE_ENTRY_ID, MODULE_SCHEDULE = 3, 5, 6, 7
COMPUTATION_NAME, COMPUTATION_INSTRUCTIONS, COMPUTATION_ID, COMPUTATION_ROOT = 1, 2, 5, 6
INSTRUCTION_NAME, INSTRUCTION_ID = 1, 35
INSTRUCTION_IDS = {36: "instruction", 37: "instruction", 38: "computation"}
MAPS = {68, 19}  # frontend attributes of an instruction and of a module: entries have no order


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields_of(data):
    """A message as [(field number, value)]: an int, or bytes."""
    fields, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            length, at = read_varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            width = 8 if kind == 1 else 4
            value, at = data[at : at + width], at + width
        fields.append((tag >> 3, value))
    return fields


def ids_of(value):
    if isinstance(value, int):
        return [value]
    ids, at = [], 0
    while at < len(value):
        one, at = read_varint(value, at)
        ids.append(one)
    return ids


def first(fields, number, default=None):
    return next((value for field, value in fields if field == number), default)


def comparable(field, value):
    if field in MAPS and isinstance(value, bytes):
        return tuple(sorted(fields_of(value), key=repr))
    return value


def normalised(proto):
    """{what: value} with ids as positions."""
    module = fields_of(proto)
    computations = [fields_of(value) for field, value in module if field == MODULE_COMPUTATIONS]
    positions = {"computation": {}, "instruction": {}}
    for number, computation in enumerate(computations):
        positions["computation"][first(computation, COMPUTATION_ID, 0)] = number
        for field, value in computation:
            if field == COMPUTATION_INSTRUCTIONS:
                identity = first(fields_of(value), INSTRUCTION_ID, 0)
                positions["instruction"][identity] = len(positions["instruction"])
    result = {}
    for computation in computations:
        name = first(computation, COMPUTATION_NAME, b"").decode()
        for field, value in computation:
            if field == COMPUTATION_INSTRUCTIONS:
                fields = fields_of(value)
                key = f"{name}: %{first(fields, INSTRUCTION_NAME, b'').decode()}"
                for number, inner in fields:
                    if number in INSTRUCTION_IDS:
                        inner = tuple(positions[INSTRUCTION_IDS[number]][i] for i in ids_of(inner))
                    elif number == INSTRUCTION_ID:
                        inner = positions["instruction"][inner]
                    result.setdefault((key, number), []).append(comparable(number, inner))
            elif field == COMPUTATION_ROOT:
                result[(name, field)] = positions["instruction"][value]
            elif field != COMPUTATION_ID:
                result.setdefault((name, field), []).append(value)
    for field, value in module:
        if field == MODULE_ENTRY_ID:
            result[("module", field)] = positions["computation"][value]
        elif field not in (MODULE_COMPUTATIONS, MODULE_ID, MODULE_SCHEDULE):
            result.setdefault(("module", field), []).append(comparable(field, value))
    return result


def differences(original, printed):
    from jaxlib import _hlo

    # The original first: jaxlib fills elided constants from a counter that starts with the process.
    ours = [normalised(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()) for text in (original, printed)]
    keys = list(dict.fromkeys([*ours[0], *ours[1]]))
    return [(key, ours[0].get(key), ours[1].get(key)) for key in keys if ours[0].get(key) != ours[1].get(key)]


def compare(path, printer):
    run = subprocess.run([*shlex.split(printer), str(path)], capture_output=True, text=True)
    if run.returncode != 0:
        return f"hlorun cannot print it: {run.stderr.strip()}"
    found = differences(path.read_text(), run.stdout)
    if not found:
        return ""
    (where, field), theirs, ours = found[0]
    return f"{len(found)} differences; the first: {where}, field {field}: {str(theirs)[:200]} became {str(ours)[:200]}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument(
        "--printer",
        default=f"{root}/build/bin/hlo-opt --passes= --fill_elided",
        help="the command that prints a file's module as HLO text (%(default)s)",
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        message = compare(arguments.files[0], arguments.printer)
        print(f"{arguments.files[0]}: {message or 'equal'}")
        return 1 if message else 0
    # A process for each file, for the sake of jaxlib's counter.
    command = [sys.executable, __file__, "--one", "--printer", arguments.printer]
    failed = 0
    for path in arguments.files:
        run = subprocess.run([*command, str(path)], stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode not in (0, 1) or (run.returncode and "Traceback" in run.stderr):
            print(f"{path}: not compared: {run.stderr.strip().splitlines()[-1]}")
        failed += run.returncode != 0
    print(f"{len(arguments.files) - failed} of {len(arguments.files)} equal")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
