#!/usr/bin/env python3
"""Time at 1/8 of the bound against time at the bound, for programs over arrays of varying size (aim: <= 0.17).

    python3 bench/dynamic_sizes.py [--hlorun build/bin/hlorun] [--iterations 5] [--rounds 3] [NAME ...]

Each program is exported from JAX with a symbolic size and its bound, compiled once, and run at both sizes in alternation.
"""
import os
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from runs import HERE, arguments, report

sys.path[:0] = [os.path.join(HERE, "../scripts"), os.path.join(HERE, "../scripts/lib")]
import bounded  # noqa: E402  found through the path above
from export_jax import hlo_text  # noqa: E402


def transformer_block(x, qkv, out, up, down):
    """Pre-norm attention and MLP over x: f32[length, 512], 8 heads, no mask."""
    def norm(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    length = x.shape[0]
    q, k, v = ((norm(x) @ qkv[i]).reshape(length, 8, 64) for i in range(3))
    scores = jnp.einsum("qhd,khd->hqk", q, k) / 8
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    x = x + jnp.einsum("hqk,khd->qhd", weights, v).reshape(length, 512) @ out
    return x + jax.nn.gelu(norm(x) @ up) @ down


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def convolve(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def chain(x):
    return jnp.tanh(jnp.exp(jnp.sin(x)) * jnp.cos(x))


# name: (function, shapes, bound of n, parameters with the size as PARAM:DIM). Bounds at which they take 20 ms or more.
PROGRAMS = {
    "elementwise": (chain, ["n,1024"], 16384, ["0:0"]),
    "elementwise_inner": (chain, ["2048,n"], 16384, ["0:1"]),
    "reduction": (lambda x: jnp.exp(x).sum(), ["n,2048"], 131072, ["0:0"]),
    "reduction_of_rows": (lambda x: jnp.exp(x).sum(-1), ["16384,n"], 16384, ["0:1"]),
    "softmax": (softmax, ["n,1024"], 131072, ["0:0"]),
    "softmax_inner": (softmax, ["4096,n"], 16384, ["0:1"]),
    "cumsum": (lambda x: jnp.cumsum(x, axis=0), ["n,1024"], 131072, ["0:0"]),
    "cumsum_rows": (lambda x: jnp.cumsum(x, axis=1), ["4096,n"], 16384, ["0:1"]),
    "cumsum_reverse": (lambda x: jax.lax.cumsum(x, axis=0, reverse=True), ["n,1024"], 65536, ["0:0"]),
    "cumlogsumexp": (lambda x: jax.lax.cumlogsumexp(x, axis=0), ["n,1024"], 16384, ["0:0"]),
    "cumlogsumexp_rows_reverse": (lambda x: jax.lax.cumlogsumexp(x, axis=1, reverse=True), ["1024,n"], 4096, ["0:1"]),
    "matrix_product": (lambda x, w: x @ w, ["n,1024", (1024, 1024)], 8192, ["0:0"]),
    "matrix_product_contracting": (lambda x, w: x @ w, ["1024,n", "n,1024"], 8192, ["0:1", "1:0"]),
    "convolution": (convolve, ["n,56,56,64", (3, 3, 64, 64)], 64, ["0:0"]),
    "transformer_block": (transformer_block, ["n,512", (3, 512, 512), (512, 512), (512, 2048), (2048, 512)], 2048, ["0:0"]),
}


def best_ms(hlorun, path, sizes, iterations):
    command = [hlorun, path, "--json", f"--iterations={iterations}", "--warmup=1", f"--size={','.join(sizes)}"]
    return report(command)["best_ms"]


def main():
    parser = arguments(__doc__, rounds=2)
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    print(f"{'program':<28} {'at the bound':>12} {'at 1/8':>10} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (function, shapes, bound, places) in PROGRAMS.items():
            if flags.names and name not in flags.names:
                continue
            path = os.path.join(folder, f"{name}.hlo")
            with open(path, "w") as file:
                file.write(bounded.export_text(function, shapes, [np.float32] * len(shapes), {"n": bound}, hlo_text))
            whole, eighth = ([], [])
            for _ in range(flags.rounds):
                whole.append(best_ms(flags.hlorun, path, [f"{p}={bound}" for p in places], flags.iterations))
                eighth.append(best_ms(flags.hlorun, path, [f"{p}={bound // 8}" for p in places], flags.iterations))
            print(f"{name:<28} {min(whole):>9.2f} ms {min(eighth):>7.2f} ms {min(eighth) / min(whole):>7.3f}", flush=True)


if __name__ == "__main__":
    main()
