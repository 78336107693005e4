#!/usr/bin/env python3
"""Programs of JAX's own libraries, loops of many small operations: on hlorun and XLA:CPU in alternation.

    python3 bench/libraries.py [--hlorun build/bin/hlorun] [--rounds 2] [--iterations 20] [--keep FOLDER] [--json FILE] [NAME ...]

Rigid bodies, Markov chains, tree search, games, optimal transport, a hidden Markov model, a graph network (bench/library_programs.py).
They are other people's programs: a search for what hlorun does wrong or slowly. Each is exported once into --keep, in a process of its
own; hlorun's result is compared with XLA:CPU's in each round. Ratios are hlorun's time over XLA:CPU's; only those within one run count.
Needs jax==0.10.2 brax blackjax numpyro mctx jumanji pgx ott-jax distrax jraph.
"""
import os
import sys

from library_programs import PROGRAMS
from networks import compare, measure_exported
from runs import HERE

sys.path[:0] = [os.path.join(HERE, "..", "scripts")]


def export(name, folder):
    """FOLDER/module.hlo and FOLDER/inputs."""
    import jax  # pylint: disable=import-outside-toplevel
    from export_jax import hlo_text, write_program  # pylint: disable=import-outside-toplevel

    is_key = lambda leaf: jax.dtypes.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key)  # noqa: E731
    function, arguments = PROGRAMS[name]()
    arguments = jax.tree.map(lambda leaf: leaf if is_key(leaf) else jax.numpy.asarray(leaf), arguments)
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    arrays = [jax.random.key_data(leaf) if is_key(leaf) else leaf for leaf in jax.tree.leaves(arguments)]
    write_program(folder, hlo_text(lowered.compiler_ir("hlo")), arrays)


def row_of(name, _, flags, folder):
    return measure_exported(name, export, flags, folder)


if __name__ == "__main__":
    sys.exit(compare(__doc__, PROGRAMS, row_of, rounds=2, iterations=20))
