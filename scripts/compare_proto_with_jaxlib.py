#!/usr/bin/env python3
"""Compares hlorun's binary protos with jaxlib's, for every .hlo file below a folder.

    python3 scripts/compare_proto_with_jaxlib.py FOLDER [--hlo_opt=build/bin/hlo-opt]

For each module, through `hlo-opt --passes=`:
  read     jaxlib's proto of the text, read by hlorun, prints as jaxlib's text of it, read by hlorun;
  same     jaxlib's proto, read and written by hlorun, holds what jaxlib's own holds, field by field (decoded by protoc;
           the order of instructions aside, which the ids give);
  accept   jaxlib takes that proto and prints the same text as from its own;
  fixed    written again, it has the same bytes.
"read" fails where a module has async-start over a wrapped computation: jaxlib's text renames those computations.
Prints a line for each failure; exit code 1 if there were any.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MESSAGE = "hlorun.hlo.proto.HloModuleProto"


def hlo_opt(binary, source, target, *flags):
    run = subprocess.run([binary, "--passes=", "--fill_elided", *flags, "-o", target, source], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "hlo-opt failed")


def parse_decoded(lines):
    """protoc's text as nested lists of (name, line or list)."""
    node = []
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith(" {"):
            node.append((line[:-2], parse_decoded(lines)))
        elif line:
            node.append((line.split(":")[0], line))
    return node


def identity(node):
    return next((int(value.split(":")[1]) for name, value in node if name == "id" and isinstance(value, str)), 0)


def in_order_of_ids(node):
    for repeated in ("computations", "instructions"):
        ordered = iter(sorted((value for name, value in node if name == repeated), key=identity))
        node = [(name, next(ordered)) if name == repeated else (name, value) for name, value in node]
    return [(name, in_order_of_ids(value) if isinstance(value, list) else value) for name, value in node]


def decode(proto):
    """What a proto holds, less the module's id (jaxlib counts them) and devices (which text has and jaxlib drops)."""
    text = subprocess.run(["protoc", f"-I{ROOT}", f"--decode={MESSAGE}", "hlo/proto/hlo.proto"], cwd=ROOT, check=True,
                          stdin=open(proto, "rb"), capture_output=True, text=True).stdout
    module = in_order_of_ids(parse_decoded(iter(text.splitlines())))
    return [field for field in module if field[0] not in ("device_assignment", "id")]


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def printed(proto):
    from jaxlib import _hlo

    return _hlo.HloModule.from_serialized_hlo_module_proto(read(proto, "rb")).to_string()


def lines_in_order_of_names(text):
    """jaxlib prints an unscheduled computation in an order of its own; the header line has what protos lack."""
    return sorted(text.splitlines()[1:])


def compare(path, binary, folder):
    from jaxlib import _hlo

    theirs, ours, again = (os.path.join(folder, name) for name in ("theirs.pb", "ours.pb", "again.pb"))
    text, normal = os.path.join(folder, "ours.hlo"), os.path.join(folder, "normal.hlo")
    module = _hlo.hlo_module_from_text(read(path))
    with open(theirs, "wb") as file:
        file.write(module.as_serialized_hlo_module_proto())
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    printed_by_jaxlib = os.path.join(folder, "jaxlib.hlo")
    with open(printed_by_jaxlib, "w") as file:
        file.write(module.to_string(options))
    hlo_opt(binary, theirs, text)
    hlo_opt(binary, printed_by_jaxlib, normal)
    hlo_opt(binary, theirs, ours, "--emit-proto")
    hlo_opt(binary, ours, again, "--emit-proto")
    checks = {"read": lines_in_order_of_names(read(text)) == lines_in_order_of_names(read(normal)), "same": decode(ours) == decode(theirs),
              "accept": printed(ours) == printed(theirs), "fixed": read(ours, "rb") == read(again, "rb")}
    return [name for name, passed in checks.items() if not passed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--hlo_opt", default=os.path.join(ROOT, "build/bin/hlo-opt"))
    flags = parser.parse_args()
    modules = sorted(glob.glob(os.path.join(flags.folder, "**/*.hlo"), recursive=True))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in modules:
            try:
                failures = compare(path, flags.hlo_opt, folder)
            except Exception as error:  # jaxlib's own errors have no common type
                failures = [str(error).splitlines()[0]]
            if failures:
                failed += 1
                print(f"{path}: {', '.join(failures)}")
    print(f"{len(modules) - failed} of {len(modules)} modules agree")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
