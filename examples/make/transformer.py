#!/usr/bin/env python3
"""examples/transformer: a decoder block with causal attention and rotary positions (JAX)."""

import jax
import jax.numpy as jnp
import numpy as np

import place

HEADS, WIDTH, LENGTH = 4, 64, 48


def normalise(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def rotate(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(LENGTH)[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def attention(x, w):
    q, k, v = (t.reshape(*x.shape[:2], HEADS, -1) for t in jnp.split(x @ w["qkv"], 3, -1))
    scores = jnp.einsum("blhd,bmhd->bhlm", rotate(q), rotate(k)) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e30)
    mixed = jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(scores), v)
    return mixed.reshape(x.shape) @ w["out"]


def block(w, tokens):
    x = w["embedding"][tokens]
    x = x + attention(normalise(x, w["norm_attention"]), w)
    y = normalise(x, w["norm_mlp"])
    x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
    return x @ w["embedding"].T


def arguments():
    rng = np.random.default_rng(3)
    shapes = {"embedding": (50, WIDTH), "qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "gate": (WIDTH, 2 * WIDTH),
              "up": (WIDTH, 2 * WIDTH), "down": (2 * WIDTH, WIDTH)}
    weights = {name: (rng.standard_normal(s) / s[0] ** 0.5).astype(np.float32) for name, s in shapes.items()}
    weights |= {"norm_attention": np.ones(WIDTH, np.float32), "norm_mlp": np.ones(WIDTH, np.float32)}
    return weights, rng.integers(0, 50, (2, LENGTH)).astype(np.int32)


place.export(block, arguments(), "transformer")
