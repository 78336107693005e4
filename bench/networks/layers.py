"""Layers that bench/networks is made of: plain functions of JAX. `Weights` makes their parameters, in the order in which a network asks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Weights:
    """Makes seeded parameters the first time a network runs, and hands them out again in the same order afterwards."""

    def __init__(self, dtype=jnp.float32):
        self.dtype, self.arrays, self.next, self.random = dtype, [], None, np.random.default_rng(0)

    def replay(self, arrays):
        self.arrays, self.next = arrays, 0
        return self

    def __call__(self, *shape, scale=None):
        """Normal values over the square root of all but the last dimension, or of `scale`'s size."""
        if self.next is None:
            spread = scale if scale is not None else np.prod(shape[:-1]) ** -0.5
            self.arrays.append(jnp.asarray(self.random.standard_normal(shape, dtype=np.float32) * spread, self.dtype))
            return self.arrays[-1]
        self.next += 1
        return self.arrays[self.next - 1]

    def near_one(self, size):
        return 1 + self(size, scale=0.1)


def dense(weights, x, features):
    return x @ weights(x.shape[-1], features) + weights(features, scale=0.1)


def layer_norm(weights, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * weights.near_one(x.shape[-1]) + weights(x.shape[-1], scale=0.1)


def rms_norm(weights, x):
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * weights.near_one(x.shape[-1])


def group_norm(weights, x, groups=32):
    y = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    y = y - y.mean((1, 3), keepdims=True)
    y = y * lax.rsqrt(jnp.square(y).mean((1, 3), keepdims=True) + 1e-5)
    return y.reshape(x.shape) * weights.near_one(x.shape[-1]) + weights(x.shape[-1], scale=0.1)


def batch_norm(weights, x):
    """As inference has it: running mean and variance are parameters."""
    scale = weights.near_one(x.shape[-1]) * lax.rsqrt(jnp.abs(weights.near_one(x.shape[-1])) + 1e-3)
    return (x - weights(x.shape[-1], scale=0.1)) * scale + weights(x.shape[-1], scale=0.1)


def convolution(weights, x, features, window=3, stride=1, groups=1):
    kernel = weights(window, window, x.shape[-1] // groups, features)
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", feature_group_count=groups,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def depthwise(weights, x, window=3, stride=1):
    return convolution(weights, x, x.shape[-1], window, stride, groups=x.shape[-1])


def heads_of(x, heads):
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def attend(q, k, v, mask=None):
    """q: [batch, m, heads, features]; k, v: [batch, n, heads, features]."""
    scores = jnp.einsum("bmhd,bnhd->bhmn", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("bhmn,bnhd->bmhd", jax.nn.softmax(scores, -1), v)


def attention(weights, x, heads, context=None, mask=None):
    context = x if context is None else context
    q, k, v = (heads_of(dense(weights, y, x.shape[-1]), heads) for y in (x, context, context))
    return dense(weights, attend(q, k, v, mask).reshape(x.shape), x.shape[-1])


def mlp(weights, x, between, activation=jax.nn.gelu):
    return dense(weights, activation(dense(weights, x, between)), x.shape[-1])


def encoder_layer(weights, x, heads, mask=None):
    x = x + attention(weights, layer_norm(weights, x), heads, mask=mask)
    return x + mlp(weights, layer_norm(weights, x), 4 * x.shape[-1])


def causal(length):
    return jnp.tril(jnp.ones((length, length), bool))


def patches(weights, image, size, features):
    x = convolution(weights, image, features, size, size)
    return x.reshape(x.shape[0], -1, features)
