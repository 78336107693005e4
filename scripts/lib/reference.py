"""What a real module gives on XLA:CPU."""

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
