#!/usr/bin/env python3
"""examples/mlp_grad: a three-layer perceptron's loss and the gradient of its weights (JAX)."""

import jax
import jax.numpy as jnp
import numpy as np

import place


def loss(weights, x, labels):
    for w, b in weights[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = weights[-1]
    scores = jax.nn.log_softmax(x @ w + b)
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def arguments():
    rng = np.random.default_rng(1)
    sizes = [64, 96, 48, 10]
    weights = [(rng.standard_normal((m, n), dtype=np.float32) / np.float32(m**0.5), np.zeros(n, np.float32))
               for m, n in zip(sizes, sizes[1:])]
    return weights, rng.standard_normal((32, 64), dtype=np.float32), rng.integers(0, 10, 32).astype(np.int32)


place.export(jax.value_and_grad(loss), arguments(), "mlp_grad")
