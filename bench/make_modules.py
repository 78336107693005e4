#!/usr/bin/env python3
"""Writes bench/modules/*.hlo, the programs of bench/memory_bound.py, network_parts.py, bandwidth.py and launch.py, from JAX.

    python3 bench/make_modules.py [--to bench/modules]

Each program is a function and the shapes of its arguments; a name says what it does. Needs jax and jaxlib.
"""
import argparse
import os

import jax
import jax.numpy as jnp
from jax import lax

F32, BF16, S32 = jnp.float32, jnp.bfloat16, jnp.int32
SQUARE = ((4096, 4096), F32)


def depthwise(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1])


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale


def update_loop(x, rows):
    def step(i, carried):
        return lax.dynamic_update_slice(carried, lax.dynamic_slice(rows, (i, 0), (1, rows.shape[1])) * 2, (i * 4, 0))
    return lax.fori_loop(0, rows.shape[0], step, x)


def update_many(rows):
    """A state that the program makes itself, each row updated eight times."""
    def step(i, state):
        place = (i % rows.shape[0], 0)
        old, new = (lax.dynamic_slice(x, place, (1, rows.shape[1])) for x in (state, rows))
        return lax.dynamic_update_slice(state, old / 2 + new, place)
    return lax.fori_loop(0, 8 * rows.shape[0], step, jnp.zeros_like(rows))


def recurrence(decay, inward):
    """h[t] = decay[t] * h[t - 1] + inward[t], as state-space models have it."""
    return lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jax.nn.sigmoid(decay), inward), axis=1)[1]


def convolution(strides=(1, 1), groups=1, labels=("NHWC", "HWIO", "NHWC")):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, "SAME", feature_group_count=groups, dimension_numbers=labels)


def group_norm_silu(x, scale, shift):
    n, height, width, channels = x.shape
    y = x.reshape(n, height * width, 32, channels // 32)
    y = y - y.mean((1, 3), keepdims=True)
    y = y * lax.rsqrt(jnp.square(y).mean((1, 3), keepdims=True) + 1e-5)
    return jax.nn.silu(y.reshape(x.shape) * scale + shift)


def kept_attention(q, keys, values):
    scores = jnp.einsum("bhd,bkhd->bhk", q, keys) * 0.125
    return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores, -1), values)


def shuffled_channels(x):
    n, height, width, channels = x.shape
    return x.reshape(n, height, width, 2, channels // 2).transpose(0, 1, 2, 4, 3).reshape(x.shape)


def distances(x, y):
    return (x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * x @ y.T


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def sliding(reducer, start, *window):
    return lambda x: lax.reduce_window(x, start, reducer, window, (1,) * len(window), "SAME")


PROGRAMS = {
    "sort_flat_bf16": (lambda x: jnp.sort(x.reshape(-1)), ((1024, 4096), BF16)),
    "sort_rows_f32": (lambda x: jnp.sort(x, axis=-1), ((1024, 4096), F32)),
    "sort_columns_f32": (lambda x: jnp.sort(x, axis=0), ((1024, 1024), F32)),
    "sort_long_f32": (jnp.sort, ((1 << 20,), F32)),
    "argsort": (lambda x: jnp.argsort(x, axis=-1), ((1024, 512), F32)),
    "top_k_8": (lambda x: lax.top_k(x, 8), SQUARE),
    "top_k_64": (lambda x: lax.top_k(x, 64), SQUARE),
    "sort_by_two_keys": (lambda x, y: lax.sort((x, y, lax.iota(S32, 1 << 20)), num_keys=2), ((1 << 20,), S32), ((1 << 20,), F32)),
    "sort_rows_by_two_keys": (lambda x, y: lax.sort((x, y), num_keys=2), ((1024, 512), S32), ((1024, 512), F32)),
    "cumsum_rows": (lambda x: jnp.cumsum(x, axis=1), SQUARE),
    "cumsum_columns": (lambda x: jnp.cumsum(x, axis=0), SQUARE),
    "cumsum_window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 4096), (1, 1), ((0, 0), (4095, 0))), ((1024, 4096), F32)),
    "slice_scan_long": (lambda x: lax.associative_scan(jnp.add, x), ((1 << 20,), F32)),
    "slice_scan_rows": (lambda x: lax.associative_scan(jnp.add, x, axis=1), ((1024, 4096), F32)),
    "slice_scan_columns": (lambda x: lax.associative_scan(jnp.add, x, axis=0), ((1024, 4096), F32)),
    "slice_scan_recurrence": (recurrence, ((8, 2048, 512), F32), ((8, 2048, 512), F32)),
    "moving_maximum": (sliding(lax.max, -jnp.inf, 1, 101), ((64, 100000), F32)),
    "box_filter": (sliding(lax.add, 0.0, 1, 15, 15, 1), ((4, 256, 256, 16), F32)),
    "cross_entropy_gradient": (jax.value_and_grad(cross_entropy), ((2048, 8192), F32), ((2048,), S32)),
    "nearest": (lambda x, y: jnp.argmin(distances(x, y), 1), ((4096, 64), F32), ((4096, 64), F32)),
    "density": (lambda x, y: jnp.exp(-distances(x, y)).sum(1), ((4096, 16), F32), ((4096, 16), F32)),
    "concatenated_products": (lambda x, v, y, w: jnp.concatenate([jax.nn.relu(x @ v), y @ w], 1), ((65536, 32), F32), ((32, 64), F32),
                              ((65536, 32), F32), ((32, 64), F32)),
    "concatenated_statistics": (lambda x: jnp.concatenate([x.mean(-1, keepdims=True), x.max(-1, keepdims=True)], -1), ((16, 112, 112, 16), F32)),
    "softmax": (lambda x: jax.nn.softmax(x, axis=-1), SQUARE),
    "layer_norm": (layer_norm, SQUARE, ((4096,), F32), ((4096,), F32)),
    "rms_norm": (rms_norm, SQUARE, ((4096,), F32)),
    "transpose": (jnp.transpose, SQUARE),
    "nhwc_to_nchw": (lambda x: jnp.transpose(x, (0, 3, 1, 2)), ((8, 56, 56, 256), F32)),
    "nchw_to_nhwc": (lambda x: jnp.transpose(x, (0, 2, 3, 1)), ((8, 256, 56, 56), F32)),
    "depthwise_bf16": (depthwise, ((1, 256, 56, 56), BF16), ((256, 1, 3, 3), BF16)),
    "embedding_gather": (lambda table, ids: table[ids], ((32000, 2304), F32), ((1024,), S32)),
    "embedding_scatter_add": (lambda table, ids, rows: table.at[ids].add(rows), ((32000, 2304), F32), ((1024,), S32),
                              ((1024, 2304), F32)),
    "update_loop": (update_loop, ((4096, 1024), F32), ((1000, 1024), F32)),
    "update_many": (update_many, ((1024, 1024), F32)),
    "gelu_erfc": (lambda x: jax.nn.gelu(x, approximate=False), ((1024, 4096), F32)),
    "gelu_tanh": (jax.nn.gelu, ((1024, 4096), F32)),
    "transposed_convolution": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), ((2, 32, 32, 256), F32),
                               ((4, 4, 256, 128), F32)),
    "convolution_1d": (convolution((1,), labels=("NWC", "WIO", "NWC")), ((2, 1500, 384), F32), ((3, 384, 384), F32)),
    "grouped_convolution": (convolution(groups=32), ((4, 28, 28, 256), F32), ((3, 3, 8, 256), F32)),
    "depthwise_nhwc": (convolution(groups=144), ((8, 56, 56, 144), F32), ((3, 3, 1, 144), F32)),
    "group_norm_silu": (group_norm_silu, ((2, 64, 64, 320), F32), ((320,), F32), ((320,), F32)),
    "kept_attention": (kept_attention, ((1, 16, 64), F32), ((1, 1024, 16, 64), F32), ((1, 1024, 16, 64), F32)),
    "channel_shuffle": (shuffled_channels, ((8, 28, 28, 116), F32)),
    "sum_columns": (lambda x: x.sum(0), SQUARE),
    "sum_rows": (lambda x: x.sum(1), SQUARE),
    "sum_all": (jnp.sum, SQUARE),
    "scale": (lambda x: x * 0.5 + 1, SQUARE),
    "add": (jnp.add, SQUARE, SQUARE),
    "tiny_add": (lambda x: x + 1, ((16,), F32)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules"))
    flags = parser.parse_args()
    os.makedirs(flags.to, exist_ok=True)
    for name, (function, *arguments) in PROGRAMS.items():
        shapes = [jax.ShapeDtypeStruct(dimensions, kind) for dimensions, kind in arguments]
        text = jax.jit(function).lower(*shapes).compiler_ir("hlo").as_hlo_text()
        with open(os.path.join(flags.to, name + ".hlo"), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
