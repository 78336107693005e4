"""Where the examples go, and the exporter they share."""

import os
import re
import sys

import jax

EXAMPLES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(EXAMPLES), "scripts"))

# Source positions in the modules are relative to the repository.
jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(os.path.dirname(EXAMPLES) + os.sep))

import export_jax  # noqa: E402  found through the path above


def folder(name):
    return os.path.join(EXAMPLES, name)


def export(function, arguments, name):
    export_jax.export(function, arguments, folder(name))
