"""The OpenCL platforms of a machine, each as the environment that leads a program to it."""

import glob
import os


def intel_environment(prefix, folder):
    """What OCL_ICD_VENDORS and LD_LIBRARY_PATH must be for Intel's CPU runtime (intel-opencl-rt) of the Python environment
    `prefix`, or None where it is not installed. FOLDER/vendors is made for the loader."""
    found = sorted(glob.glob(os.path.join(prefix, "lib", "**", "libintelocl.so"), recursive=True))
    if not found:
        return None
    vendors = os.path.join(folder, "vendors")
    os.makedirs(vendors, exist_ok=True)
    with open(os.path.join(vendors, "intel.icd"), "w", encoding="utf-8") as file:
        file.write(found[0] + "\n")
    return {"OCL_ICD_VENDORS": vendors, "LD_LIBRARY_PATH": os.path.dirname(found[0])}


def platforms(intel, folder):
    """(name, environment) of what the loader finds by itself, and of the runtime in the Python environment `intel`, if one is
    named."""
    yield "default", dict(os.environ)
    if intel:
        environment = intel_environment(intel, folder)
        if environment is None:
            raise SystemExit(f"{intel} holds no libintelocl.so: pip install intel-opencl-rt there")
        yield "intel", {**os.environ, **environment}
