#!/usr/bin/env python3
"""examples/cnn_train: one training step of a small convolutional network with batch norm and momentum (JAX)."""

import jax
import jax.numpy as jnp
import numpy as np

import place

LAYOUT = ("NHWC", "HWIO", "NHWC")


def block(x, kernel, scale, shift, stride):
    x = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)
    mean = x.mean((0, 1, 2))
    x = (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-3)
    return jax.nn.relu(x * scale + shift)


def loss(weights, images, labels):
    x = images
    for i, layer in enumerate(weights["blocks"]):
        x = block(x, *layer, stride=1 + i % 2)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").mean((1, 2))
    scores = jax.nn.log_softmax(x @ weights["head"])
    return -(jax.nn.one_hot(labels, scores.shape[1]) * scores).sum(1).mean()


def step(weights, momentum, images, labels):
    value, gradient = jax.value_and_grad(loss)(weights, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda w, m: w - 0.05 * m, weights, momentum), momentum, value


def arguments():
    rng = np.random.default_rng(2)
    channels = [3, 16, 24]
    blocks = [((rng.standard_normal((3, 3, m, n)) * (2 / (9 * m)) ** 0.5).astype(np.float32), np.ones(n, np.float32),
               np.zeros(n, np.float32)) for m, n in zip(channels, channels[1:])]
    weights = {"blocks": blocks, "head": (rng.standard_normal((24, 10)) * 0.2).astype(np.float32)}
    momentum = jax.tree.map(lambda w: (rng.standard_normal(w.shape) * 0.01).astype(np.float32), weights)
    return weights, momentum, rng.standard_normal((4, 16, 16, 3), dtype=np.float32), rng.integers(0, 10, 4).astype(np.int32)


place.export(step, arguments(), "cnn_train")
