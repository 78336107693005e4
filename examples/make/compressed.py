#!/usr/bin/env python3
"""examples/compressed: two layers whose weights are kept in 8 bits, with a factor for each column and for each row (JAX)."""

import jax
import jax.numpy as jnp
import numpy as np

import place


def layers(x, up, columns, down, rows):
    hidden = jax.nn.gelu(x @ (up.astype(jnp.float32) * columns))
    return hidden @ (down.astype(jnp.float32) * rows[:, None]).T


def arguments():
    rng = np.random.default_rng(1)
    weights = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((30, 75), (20, 75))]
    factors = [rng.uniform(0.001, 0.003, n).astype(np.float32) for n in (75, 20)]
    return rng.standard_normal((9, 30), dtype=np.float32), weights[0], factors[0], weights[1], factors[1]


place.export(layers, arguments(), "compressed")
