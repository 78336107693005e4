"""Products whose weights are kept as something else than what is multiplied: few bits with factors, one array for all
layers, a mask, a correction. Decoding, mostly, where weights are all there is to read. NETWORKS has them by name."""

import jax
import jax.numpy as jnp
from jax import lax

F32, BF16, S8 = jnp.float32, jnp.bfloat16, jnp.int8


def scaled(q, factors):
    return q.astype(factors.dtype) * factors


def decode_s8(weights, x, up, down):
    """Two layers of one token, a factor for each column."""
    h = jax.nn.gelu(x @ scaled(up, weights(up.shape[1], scale=0.05)))
    return x + h @ scaled(down, weights(down.shape[1], scale=0.05))


def decode_s8_after(weights, x, up, down):
    """The same with factors behind the products."""
    h = jax.nn.gelu((x @ up.astype(F32)) * weights(up.shape[1], scale=0.05))
    return x + (h @ down.astype(F32)) * weights(down.shape[1], scale=0.05)


def decode_rows(weights, x, up, down):
    """Weights as PyTorch keeps them: a row for each feature, and a factor for each row."""
    h = jax.nn.silu(x @ scaled(up, weights(up.shape[0], 1, scale=0.05)).T)
    return x + h @ scaled(down, weights(down.shape[0], 1, scale=0.05)).T


def decode_grouped(weights, x, q):
    """A factor for 64 rows of each column."""
    k, n = q.shape
    factors = weights(k // 64, 1, n, scale=0.05)
    return x @ (q.reshape(k // 64, 64, n).astype(F32) * factors).reshape(k, n)


def decode_half(_, x, up, down):
    """f32 times bf16."""
    return x + jax.nn.gelu(x @ up.astype(F32) / 32) @ down.astype(F32) / 64


def decode_layers(weights, x):
    """Layers in a scan, whose weights are one array for all."""

    def layer(x, w):
        up, down = w
        return x + jax.nn.gelu(x @ up) @ down, None

    return lax.scan(layer, x, (weights(6, 512, 2048, scale=0.03), weights(6, 2048, 512, scale=0.02)))[0]


def decode_layers_s8(weights, x, ups, downs):
    def layer(x, w):
        up, down, first, second = w
        return x + jax.nn.gelu(x @ scaled(up, first)) @ scaled(down, second), None

    return lax.scan(layer, x, (ups, downs, weights(6, 2048, scale=0.03), weights(6, 512, scale=0.02)))[0]


def generate(weights, x):
    """Sixteen tokens, one after another, through layers in a scan."""
    ups, downs, out = weights(4, 256, 1024, scale=0.06), weights(4, 1024, 256, scale=0.03), weights(256, 256)

    def layer(x, w):
        return x + jnp.tanh(x @ w[0]) @ w[1], None

    def token(_, x):
        return jnp.tanh(lax.scan(layer, x, (ups, downs))[0] @ out)

    return lax.fori_loop(0, 16, token, x)


def adapted(weights, x):
    """A matrix with a correction of rank 8 (LoRA), both joined."""
    w, a, b = weights(1024, 1024), weights(1024, 8), weights(8, 1024)
    return x @ (w + 0.5 * (a @ b))


def pruned(weights, x, mask):
    return x @ (weights(1024, 2048) * (mask > 0))


def normed_columns(weights, x):
    """Weight normalisation."""
    v, g = weights(1024, 1024), weights.near_one(1024)
    return x @ (v * (g * lax.rsqrt(jnp.square(v).sum(0))))


NETWORKS = {
    "decode_s8": (decode_s8, ((1, 1024), F32), ((1024, 4096), S8), ((4096, 1024), S8)),
    "decode_s8_bf16": (decode_s8, ((1, 1024), BF16), ((1024, 4096), S8), ((4096, 1024), S8), BF16),
    "decode_s8_of_8": (decode_s8, ((8, 1024), F32), ((1024, 4096), S8), ((4096, 1024), S8)),
    "prefill_s8": (decode_s8, ((128, 1024), F32), ((1024, 4096), S8), ((4096, 1024), S8)),
    "decode_s8_after": (decode_s8_after, ((1, 1024), F32), ((1024, 4096), S8), ((4096, 1024), S8)),
    "decode_rows": (decode_rows, ((1, 1024), F32), ((4096, 1024), S8), ((1024, 4096), S8)),
    "prefill_rows": (decode_rows, ((64, 1024), F32), ((4096, 1024), S8), ((1024, 4096), S8)),
    "decode_grouped": (decode_grouped, ((1, 2048), F32), ((2048, 2048), S8)),
    "decode_half": (decode_half, ((1, 1024), F32), ((1024, 4096), BF16), ((4096, 1024), BF16)),
    "decode_half_of_4": (decode_half, ((4, 1024), F32), ((1024, 4096), BF16), ((4096, 1024), BF16)),
    "decode_layers": (decode_layers, ((1, 512), F32)),
    "decode_layers_bf16": (decode_layers, ((1, 512), BF16), BF16),
    "decode_layers_of_16": (decode_layers, ((16, 512), F32)),
    "decode_layers_s8": (decode_layers_s8, ((1, 512), F32), ((6, 512, 2048), S8), ((6, 2048, 512), S8)),
    "generate": (generate, ((1, 256), F32)),
    "adapted": (adapted, ((4, 1024), F32)),
    "pruned": (pruned, ((2, 1024), F32), ((1024, 2048), S8)),
    "normed_columns": (normed_columns, ((3, 1024), F32)),
}
