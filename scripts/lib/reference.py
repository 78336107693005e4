"""What a real module gives on XLA:CPU, and how far from it is near enough."""

import glob
import os
import subprocess
import sys


def reference(shared, module, folder, normal, integers):
    """Inputs and XLA:CPU's outputs in FOLDER, made unless they are there. Returns the trouble, or None."""
    if os.path.isdir(os.path.join(folder, "expected")):
        return None
    command = [sys.executable, os.path.join(shared, "xla_reference.py"), module, "--iterations", "0",
               "--save-inputs", os.path.join(folder, "inputs"), "--outputs", os.path.join(folder, "expected")]
    command += ["--normal", normal] if normal else []
    command += ["--integers", integers] if integers else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def error_bounds(module, expected):
    """hlorun's flags for comparing MODULE with the outputs stored in EXPECTED: none, but in a folder called training 1e-3 relative, or
    1e-2 of the largest magnitude, for XLA's own outputs move by 4e-3 of it when its inputs move by one ulp."""
    if os.path.basename(os.path.dirname(os.path.abspath(module))) != "training":
        return []
    import numpy as np  # pylint: disable=import-outside-toplevel
    values = [np.load(path) for path in glob.glob(os.path.join(expected, "*.npy"))]
    largest = max(float(np.abs(v).max()) for v in values if v.dtype.kind == "f" and v.size)
    return ["--rel_error_bound=1e-3", f"--abs_error_bound={1e-2 * largest}"]
