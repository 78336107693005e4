#!/usr/bin/env python3
"""Programs of whole arrays, annotated for eight devices, as JAX exports them.

    python3 scripts/make_sharded_modules.py FOLDER [--only=REGEX] [--list]

Data-parallel training, FSDP, tensor and sequence parallelism, experts, pipelines, halo convolutions and single ops, by
NamedSharding, with_sharding_constraint and shard_map. For each: FOLDER/NAME/module.hlo (JAX's own text of the lowered
program, no further flags), inputs/N.npy and expected/N.npy, whole arrays. The expected ones are what JAX computed on eight
host-platform devices; those of the programs marked NUMPY, which XLA:CPU cannot compile, come from NumPy.

    hlorun --devices=8 --inputs=FOLDER/NAME/inputs --expect=FOLDER/NAME/expected FOLDER/NAME/module.hlo
    python3 scripts/check_collectives.py FOLDER
"""

import argparse
import os
import re
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax  # noqa: E402  after the flags that it reads
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from export_jax import write_folder  # noqa: E402  found through the path above

PROGRAMS = []  # (name, function, in_shardings, arguments, out_shardings or None, numpy function or None)


def mesh_of(**axes):
    return Mesh(np.array(jax.devices("cpu")[:8]).reshape(tuple(axes.values())), tuple(axes))


X8, D4M2, D2M4, D2M2S2 = mesh_of(x=8), mesh_of(data=4, model=2), mesh_of(data=2, model=4), mesh_of(data=2, model=2, seq=2)


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def pin(x, mesh, *spec):
    return lax.with_sharding_constraint(x, on(mesh, *spec))


def normal(*shape, scale=1.0, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed + sum(shape)).standard_normal(shape) * scale).astype(dtype)


def whole(bound, *shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).integers(0, bound, shape).astype(np.int32)


def add(name, function, in_shardings, *arguments, out=None, by_numpy=None):
    PROGRAMS.append((name, function, in_shardings, arguments, out, by_numpy))


# --- training with the batch cut ---

def mlp_params(widths, dtype=np.float32):
    return [{"w": normal(a, b, scale=a ** -0.5, dtype=dtype), "b": normal(b, scale=0.1, dtype=dtype)} for a, b in zip(widths, widths[1:])]


def mlp(params, x, activation=jnp.tanh):
    for layer in params[:-1]:
        x = activation(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def squared(params, x, y, activation=jnp.tanh):
    return jnp.mean((mlp(params, x, activation) - y) ** 2)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def sgd(loss, rate=0.1):
    def step(params, *batch):
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: (p - rate * g).astype(p.dtype), params, gradients), value
    return step


def adam(loss, rate=1e-2):
    def step(state, *batch):
        params, first, second, t = state
        gradients = jax.grad(loss)(params, *batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
        t = t + 1
        update = lambda p, m, v: p - rate * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.99 ** t)) + 1e-3)
        return jax.tree.map(update, params, first, second), first, second, t
    return step


def add_data_parallel():
    whole_, rows = on(X8), on(X8, "x")
    params, x, y = mlp_params([12, 24, 6]), normal(16, 12), normal(16, 6, seed=1)
    for activation in (jnp.tanh, jax.nn.relu, jax.nn.gelu, jax.nn.silu):
        add(f"dp_mlp_{activation.__name__}", sgd(lambda p, a, b, f=activation: squared(p, a, b, f)), (whole_, rows, rows), params, x, y)
    zeros = jax.tree.map(np.zeros_like, params)
    add("dp_adam", adam(squared), ((whole_, whole_, whole_, whole_), rows, rows), (params, zeros, zeros, np.float32(0)), x, y)
    add("dp_classifier", sgd(lambda p, a, l: cross_entropy(mlp(p, a), l)), (whole_, rows, rows), params, x, whole(6, 16))
    add("dp_sum_of_losses", lambda p, a, b: jax.grad(lambda q: jnp.sum((mlp(q, a) - b) ** 2))(p), (whole_, rows, rows), params, x, y)

    def accumulate(p, a, b):
        def one(total, batch):
            return jax.tree.map(jnp.add, total, jax.grad(squared)(p, *batch)), ()
        return lax.scan(one, jax.tree.map(jnp.zeros_like, p), (a, b))[0]
    add("dp_accumulated_gradients", accumulate, (whole_, on(X8, None, "x"), on(X8, None, "x")), params, normal(3, 16, 12), normal(3, 16, 6))

    def several(p, a, b):
        return lax.fori_loop(0, 4, lambda _, q: sgd(squared)(q, a, b)[0], p)
    add("dp_four_steps", several, (whole_, rows, rows), params, x, y)

    def dropout(p, key, a, b):
        keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.7, a.shape)
        return sgd(squared)(p, jnp.where(keep, a / 0.7, 0), b)
    add("dp_dropout", dropout, (whole_, whole_, rows, rows), params, np.array([1, 2], np.uint32), x, y)

    def batch_norm(p, a, b):
        def loss(q):
            h = a @ q[0]["w"]
            h = (h - h.mean(0)) * lax.rsqrt(h.var(0) + 1e-3) + q[0]["b"]
            return jnp.mean((jax.nn.relu(h) @ q[1]["w"] - b) ** 2)
        return jax.value_and_grad(loss)(p)
    add("dp_batch_norm", batch_norm, (whole_, rows, rows), params, x, y)

    def clipped(p, a, b):
        g = jax.grad(squared)(p, a, b)
        norm = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(g)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, 0.1 / norm), g)
    add("dp_clipped_gradients", clipped, (whole_, rows, rows), params, x, y)

    def cnn(p, images, labels):
        def loss(q):
            h = jax.nn.relu(lax.conv_general_dilated(images, q["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return cross_entropy(h.mean((1, 2)) @ q["w"], labels)
        return jax.value_and_grad(loss)(p)
    add("dp_cnn", cnn, (whole_, rows, rows), {"k": normal(3, 3, 3, 8, scale=0.3), "w": normal(8, 5)}, normal(16, 8, 8, 3), whole(5, 16))

    def explicit(p, a, b):
        def local(q, c, d):
            loss, g = jax.value_and_grad(squared)(q, c, d)
            return lax.pmean(loss, "x"), jax.tree.map(lambda leaf: lax.pmean(leaf, "x"), g)
        return jax.shard_map(local, mesh=X8, in_specs=(P(), P("x"), P("x")), out_specs=P(), check_vma=False)(p, a, b)
    add("dp_shard_map", explicit, (whole_, rows, rows), params, x, y)


# --- parameters cut, gathered where they are used ---

def add_fsdp():
    x, y = normal(16, 16), normal(16, 8, seed=1)
    params = mlp_params([16, 32, 8])
    rows, whole_ = on(X8, "x"), on(X8)
    add("fsdp_mlp", sgd(squared), (rows, rows, rows), params, x, y, out=(rows, whole_))
    columns = [{"w": on(X8, None, "x"), "b": rows} for _ in params]
    add("fsdp_columns", sgd(squared), (columns, rows, rows), params, x, y, out=(columns, whole_))
    zeros = jax.tree.map(np.zeros_like, params)
    add("fsdp_adam", adam(squared), ((rows, rows, rows, whole_), rows, rows), (params, zeros, zeros, np.float32(0)), x, y,
        out=(rows, rows, rows, whole_))
    optimizer = ((whole_, rows, rows, whole_), rows, rows)
    add("fsdp_cut_optimizer", adam(squared), optimizer, (params, zeros, zeros, np.float32(0)), x, y)
    both = [{"w": on(D4M2, "data", "model"), "b": on(D4M2, "model")} for _ in params]
    add("fsdp_and_tensor", sgd(squared), (both, on(D4M2, "data"), on(D4M2, "data")), params, x, y, out=(both, on(D4M2)))

    def stacked(ws, a):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), ()), a, ws)[0]
    add("fsdp_scan_over_layers", stacked, (on(X8, None, "x"), rows), normal(4, 16, 16, scale=0.25), x)
    add("fsdp_scan_gradient", lambda ws, a: jax.grad(lambda w: stacked(w, a).sum())(ws), (on(X8, None, "x"), rows),
        normal(4, 16, 16, scale=0.25), x, out=on(X8, None, "x"))
    add("fsdp_rematerialised", lambda ws, a: jax.grad(lambda w: lax.scan(jax.checkpoint(lambda h, v: (jnp.tanh(h @ v), ())), a, w)[0].sum())(ws),
        (on(X8, None, "x"), rows), normal(4, 16, 16, scale=0.25), x, out=on(X8, None, "x"))

    def explicit(w, a):
        def local(v, b):
            return b @ lax.all_gather(v, "x", tiled=True)
        return jax.shard_map(local, mesh=X8, in_specs=(P("x"), P("x")), out_specs=P("x"))(w, a)
    add("fsdp_shard_map_gradient", lambda w, a: jax.grad(lambda v: (explicit(v, a) ** 2).sum())(w), (rows, rows), normal(16, 8), x)


# --- transformers ---

def attention(q, k, v, causal=True):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def rms_norm(x, gain):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def rotary(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * (10000.0 ** (-jnp.arange(half) / half))
    cos, sin = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def block_params(width, heads, hidden, dtype=np.float32):
    size = width // heads
    return {"q": normal(width, heads, size, scale=width ** -0.5, dtype=dtype), "k": normal(width, heads, size, scale=width ** -0.5, seed=1, dtype=dtype),
            "v": normal(width, heads, size, scale=width ** -0.5, seed=2, dtype=dtype), "o": normal(heads, size, width, scale=width ** -0.5, dtype=dtype),
            "up": normal(width, hidden, scale=width ** -0.5, dtype=dtype), "down": normal(hidden, width, scale=hidden ** -0.5, dtype=dtype),
            "g1": np.ones(width, dtype), "g2": np.ones(width, dtype)}


def block_shardings(mesh, axis):
    cut = {"q": (None, axis), "k": (None, axis), "v": (None, axis), "o": (axis,), "up": (None, axis), "down": (axis,), "g1": (), "g2": ()}
    return {name: on(mesh, *spec) for name, spec in cut.items()}


def block(p, x, rotate=False, causal=True):
    h = rms_norm(x, p["g1"])
    q, k, v = (jnp.einsum("bsw,whd->bshd", h, p[n]) for n in "qkv")
    if rotate:
        q, k = rotary(q), rotary(k)
    x = x + jnp.einsum("bshd,hdw->bsw", attention(q, k, v, causal), p["o"])
    return x + jax.nn.gelu(rms_norm(x, p["g2"]) @ p["up"]) @ p["down"]


def add_tensor_parallel():
    x, p = normal(4, 8, 16), block_params(16, 4, 32)
    add("tp_mlp", lambda a, u, d: jax.nn.gelu(a @ u) @ d, (on(X8), on(X8, None, "x"), on(X8, "x")), normal(4, 16), normal(16, 32), normal(32, 16))
    add("tp_mlp_gradient", lambda a, u, d: jax.grad(lambda v: (jax.nn.gelu(a @ v[0]) @ v[1]).sum())((u, d)),
        (on(X8), on(X8, None, "x"), on(X8, "x")), normal(4, 16), normal(16, 32, scale=0.2), normal(32, 16))
    add("tp_gated_mlp", lambda a, u, g, d: (jax.nn.silu(a @ g) * (a @ u)) @ d,
        (on(X8), on(X8, None, "x"), on(X8, None, "x"), on(X8, "x")), normal(4, 16), normal(16, 32), normal(16, 32, seed=3), normal(32, 16))
    heads = on(X8, None, None, "x")
    add("tp_attention", attention, (heads, heads, heads), normal(2, 6, 8, 4), normal(2, 6, 8, 4, seed=1), normal(2, 6, 8, 4, seed=2))
    add("tp_attention_gradient", lambda q, k, v: jax.grad(lambda t: (attention(*t) ** 2).sum())((q, k, v)), (heads, heads, heads),
        normal(2, 6, 8, 4), normal(2, 6, 8, 4, seed=1), normal(2, 6, 8, 4, seed=2))
    for mesh, label in ((D4M2, "d4m2"), (D2M4, "d2m4")):
        cut = block_shardings(mesh, "model")
        add(f"tp_block_{label}", block, (cut, on(mesh, "data")), p, x)
        add(f"tp_block_gradient_{label}", lambda q, a: jax.grad(lambda r: (block(r, a) ** 2).mean())(q), (cut, on(mesh, "data")), p, x, out=cut)
    add("tp_block_rotary", lambda q, a: block(q, a, rotate=True), (block_shardings(D2M4, "model"), on(D2M4, "data")), p, x)
    add("tp_block_bf16", block, (block_shardings(D2M4, "model"), on(D2M4, "data")), block_params(16, 4, 32, dtype=jnp.bfloat16),
        normal(4, 8, 16, dtype=jnp.bfloat16))
    add("tp_embedding", lambda t, i: t[i], (on(X8, "x"), on(X8)), normal(40, 6), whole(40, 4, 5))
    add("tp_embedding_gradient", lambda t, i: jax.grad(lambda u: (u[i] ** 2).sum())(t), (on(X8, "x"), on(X8)), normal(40, 6), whole(40, 4, 5))
    add("tp_vocabulary_loss", lambda h, w, l: cross_entropy(h @ w, l), (on(X8), on(X8, None, "x"), on(X8)), normal(12, 8), normal(8, 40), whole(40, 12))

    def grouped(q, k, v):
        return attention(q, jnp.repeat(k, 4, axis=2), jnp.repeat(v, 4, axis=2))
    add("tp_grouped_query", grouped, (on(D4M2, None, None, "model"),) * 3, normal(2, 6, 8, 4), normal(2, 6, 2, 4), normal(2, 6, 2, 4, seed=1))

    def decode(cache, q, k, position):
        cache = lax.dynamic_update_slice(cache, k, (0, position, 0, 0))
        mask = jnp.arange(cache.shape[1]) <= position
        scores = jnp.where(mask, jnp.einsum("bhd,bkhd->bhk", q, cache), -1e9)
        return cache, jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores), cache)
    add("tp_decode", decode, (heads, on(X8, None, "x"), heads, on(X8)), normal(2, 10, 8, 4), normal(2, 8, 4), normal(2, 1, 8, 4), np.int32(3))
    along = on(X8, None, "x")
    add("sp_decode", decode, (along, on(X8), on(X8), on(X8)), normal(2, 16, 4, 4), normal(2, 4, 4), normal(2, 1, 4, 4), np.int32(9))

    def explicit(a, u, d):
        return jax.shard_map(lambda b, v, e: lax.psum(jax.nn.relu(b @ v) @ e, "x"), mesh=X8,
                             in_specs=(P(), P(None, "x"), P("x")), out_specs=P())(a, u, d)
    add("tp_shard_map", explicit, (on(X8), on(X8, None, "x"), on(X8, "x")), normal(4, 16), normal(16, 32), normal(32, 16))

    def part_manual(a, u, d):  # the batch stays with the partitioner
        return jax.shard_map(lambda b, v, e: lax.psum(jax.nn.relu(b @ v) @ e, "model"), mesh=D4M2, axis_names={"model"},
                             in_specs=(P(), P(None, "model"), P("model")), out_specs=P())(a, u, d)
    add("tp_shard_map_of_one_axis", part_manual, (on(D4M2, "data"), on(D4M2, None, "model"), on(D4M2, "model")), normal(8, 16), normal(16, 32), normal(32, 16))


def add_sequence_parallel():
    p, x = block_params(16, 4, 32), normal(2, 16, 16)

    def megatron(q, a):  # norms and residuals along the sequence, the rest along heads
        a = pin(a, D2M4, "data", "model")
        return pin(block(q, a), D2M4, "data", "model")
    add("sp_block", megatron, (block_shardings(D2M4, "model"), on(D2M4, "data", "model")), p, x)
    add("sp_block_gradient", lambda q, a: jax.grad(lambda r: (megatron(r, a) ** 2).mean())(q), (block_shardings(D2M4, "model"), on(D2M4, "data", "model")), p, x)
    add("sp_layer_norm", lambda a, g: rms_norm(a, g), (on(X8, None, "x"), on(X8)), x, normal(16))

    def ulysses(q, k, v):  # sequence to heads and back by all-to-all
        q, k, v = (pin(t, X8, None, None, "x") for t in (q, k, v))
        return pin(attention(q, k, v), X8, None, "x")
    s = on(X8, None, "x")
    add("sp_all_to_all", ulysses, (s, s, s), normal(2, 16, 8, 4), normal(2, 16, 8, 4, seed=1), normal(2, 16, 8, 4, seed=2))
    add("sp_attention_by_query", lambda q, k, v: attention(q, k, v), (s, on(X8), on(X8)), normal(2, 16, 2, 4), normal(2, 16, 2, 4, seed=1), normal(2, 16, 2, 4, seed=2))

    def ring(q, k, v):
        def local(a, b, c):
            def step(_, state):
                top, low, high, kk, vv = state
                scores = jnp.einsum("qd,kd->qk", a, kk)
                new = jnp.maximum(high, scores.max(-1))
                weight, scale = jnp.exp(scores - new[:, None]), jnp.exp(high - new)
                turn = [(i, (i + 1) % 8) for i in range(8)]
                return top * scale[:, None] + weight @ vv, low * scale + weight.sum(-1), new, lax.ppermute(kk, "x", turn), lax.ppermute(vv, "x", turn)
            start = (jnp.zeros_like(c[: a.shape[0]]), jnp.zeros(a.shape[0]), jnp.full(a.shape[0], -1e9), b, c)
            top, low = lax.fori_loop(0, 8, step, start)[:2]
            return top / low[:, None]
        return jax.shard_map(local, mesh=X8, in_specs=(P("x"),) * 3, out_specs=P("x"), check_vma=False)(q, k, v)
    rows = on(X8, "x")
    add("sp_ring_attention", ring, (rows, rows, rows), normal(16, 4), normal(16, 4, seed=1), normal(16, 4, seed=2))
    add("sp_running_sum", lambda a: jnp.cumsum(a, 1), (on(X8, None, "x"),), normal(3, 16))
    add("sp_scan", lambda a, w: lax.scan(lambda h, b: ((h := jnp.tanh(h @ w + b)), h), jnp.zeros((2, 6)), a)[1], (on(X8, "x"), on(X8)), normal(16, 2, 6), normal(6, 6))
    add("sp_associative_scan", lambda a: lax.associative_scan(jnp.multiply, a, axis=1), (on(X8, None, "x"),), 1 + 0.1 * normal(3, 16))
    mesh = D2M2S2
    add("three_axes_block", lambda q, a: pin(block(q, pin(a, mesh, "data", "seq")), mesh, "data", "seq"),
        (block_shardings(mesh, "model"), on(mesh, "data", "seq")), p, x)


# --- experts ---

def add_experts():
    tokens, gate = normal(16, 8), normal(8, 8)
    up, down = normal(8, 8, 12, scale=0.4), normal(8, 12, 8, scale=0.4)
    e = on(X8, "x")

    def dense(x, g, u, d):
        weight = jax.nn.softmax(x @ g)
        return jnp.einsum("te,teh->th", weight, jnp.einsum("etf,efh->teh", jax.nn.relu(jnp.einsum("th,ehf->etf", x, u)), d))
    add("ep_all_experts", dense, (on(X8), on(X8), e, e), tokens, gate, up, down)

    def switch(x, g, u, d, capacity=4):
        probability = jax.nn.softmax(x @ g)
        expert = jnp.argmax(probability, -1)
        chosen = jax.nn.one_hot(expert, 8)
        place = (jnp.cumsum(chosen, 0) - 1) * chosen
        dispatch = chosen[..., None] * jax.nn.one_hot(place.sum(-1).astype(jnp.int32), capacity)[:, None]
        h = pin(jnp.einsum("tec,th->ech", dispatch, x), X8, "x")
        h = jnp.einsum("ecf,efh->ech", jax.nn.relu(jnp.einsum("ech,ehf->ecf", h, u)), d)
        return jnp.einsum("tec,ech->th", dispatch, h) * probability.max(-1, keepdims=True)
    add("ep_switch", switch, (on(X8, "x"), on(X8), e, e), tokens, gate, up, down)
    add("ep_switch_gradient", lambda x, g, u, d: jax.grad(lambda v: (switch(x, g, *v) ** 2).sum())((u, d)), (on(X8, "x"), on(X8), e, e), tokens, gate, up, down)

    def top_two(x, g, u, d):
        value, index = lax.top_k(x @ g, 2)
        weight = jnp.einsum("tk,tke->te", jax.nn.softmax(value), jax.nn.one_hot(index, 8))
        return jnp.einsum("te,teh->th", weight, jnp.einsum("etf,efh->teh", jax.nn.relu(jnp.einsum("th,ehf->etf", x, u)), d))
    add("ep_top_two", top_two, (on(X8, "x"), on(X8), e, e), tokens, gate, up, down)

    def exchanged(x, u, d):
        def local(a, v, w):  # a: this device's tokens, already in order of expert
            b = lax.all_to_all(a, "x", 0, 0, tiled=True)
            return lax.all_to_all(jax.nn.relu(b @ v[0]) @ w[0], "x", 0, 0, tiled=True)
        return jax.shard_map(local, mesh=X8, in_specs=(P("x"),) * 3, out_specs=P("x"))(x, u, d)
    add("ep_all_to_all", exchanged, (e, e, e), normal(64, 8), up, down)

    def sorted_dispatch(x, g):
        order = jnp.argsort(jnp.argmax(x @ g, -1))
        return jnp.zeros_like(x).at[order].set(x[order] * 2)
    add("ep_sorted", sorted_dispatch, (on(X8, "x"), on(X8)), tokens, gate)

    sizes = np.arange(8, dtype=np.int32)

    def ragged(x):
        def local(a):
            me = lax.axis_index("x")
            count = jnp.asarray(sizes)[(jnp.arange(8) + me) % 8] % 3 + 1  # what this device sends to each
            into = jnp.asarray(sizes)[(me + jnp.arange(8)) % 8] % 3 + 1   # what comes from each: the same table
            starts = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(count)[:-1]]).astype(jnp.int32)
            table = jnp.asarray(sizes)[(jnp.arange(8)[:, None] + jnp.arange(8)[None]) % 8] % 3 + 1
            offsets = jnp.cumsum(table, 0) - table  # where sender s's rows begin on receiver r
            return lax.ragged_all_to_all(a, jnp.zeros((24, 2), a.dtype), starts, count, offsets[me], into, axis_name="x")
        return jax.shard_map(local, mesh=X8, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)

    def ragged_numpy(x):
        table = sizes[(np.arange(8)[:, None] + np.arange(8)[None]) % 8] % 3 + 1
        result = np.zeros((8, 24, 2), np.float32)
        parts = x.reshape(8, 24, 2)
        for sender in range(8):
            starts = np.cumsum(table[sender]) - table[sender]
            for receiver in range(8):
                at = table[:sender, receiver].sum()
                n = table[sender, receiver]
                result[receiver, at:at + n] = parts[sender, starts[receiver]:starts[receiver] + n]
        return result.reshape(8 * 24, 2)
    add("ep_ragged_all_to_all", ragged, (e,), normal(8 * 24, 2), by_numpy=ragged_numpy)


# --- stages ---

def add_pipelines():
    ws, x = normal(8, 6, 6, scale=0.5), normal(12, 4, 6)
    stages = on(X8, "x")

    def pipeline(v, batches):
        def local(w, b):
            me = lax.axis_index("x")
            def step(i, state):
                held, done = state
                held = jnp.where(me == 0, b[jnp.minimum(i, 11)], held)
                held = jnp.tanh(held @ w[0])
                at = i - 7
                done = jnp.where((me == 7) & (at >= 0), lax.dynamic_update_slice(done, held[None], (jnp.maximum(at, 0), 0, 0)), done)
                return lax.ppermute(held, "x", [(j, (j + 1) % 8) for j in range(8)]), done
            done = lax.fori_loop(0, 19, step, (jnp.zeros_like(b[0]), jnp.zeros_like(b)))[1]
            return lax.psum(jnp.where(me == 7, done, 0), "x")
        return jax.shard_map(local, mesh=X8, in_specs=(P("x"), P()), out_specs=P(), check_vma=False)(v, batches)
    add("pp_microbatches", pipeline, (stages, on(X8)), ws, x)

    def by_roll(v, batches):  # stages as a cut dimension, moved by roll: the partitioner finds the permute
        def step(state, b):
            state = pin(jnp.roll(state, 1, 0).at[0].set(b), X8, "x")
            state = jnp.tanh(jnp.einsum("sbi,sij->sbj", state, v))
            return state, state[-1]
        return lax.scan(step, jnp.zeros((8, 4, 6)), batches)[1]
    add("pp_by_roll", by_roll, (stages, on(X8)), ws, x)
    add("pp_by_roll_gradient", lambda v, b: jax.grad(lambda w: (by_roll(w, b) ** 2).sum())(v), (stages, on(X8)), ws, x)
    add("pp_and_data", lambda v, b: jax.shard_map(
        lambda w, a: lax.ppermute(jnp.tanh(a @ w[0]), "data", [(i, (i + 1) % 4) for i in range(4)]), mesh=D4M2,
        in_specs=(P("data"), P("model")), out_specs=P("model"), check_vma=False)(v, b), (on(D4M2, "data"), on(D4M2, "model")), normal(4, 6, 6), normal(8, 6))


# --- images cut in space ---

def add_halos():
    image, kernel = normal(2, 16, 16, 3), normal(3, 3, 3, 4, scale=0.3)
    rows, tiles = on(X8, None, "x"), on(D4M2, None, "data", "model")
    dims = ("NHWC", "HWIO", "NHWC")

    def conv(x, k, stride=1, padding="SAME", **more):
        return lax.conv_general_dilated(x, k, (stride, stride), padding, dimension_numbers=dims, **more)
    add("halo_rows", conv, (rows, on(X8)), image, kernel)
    add("halo_tiles", conv, (tiles, on(D4M2)), image, kernel)
    add("halo_strided", lambda x, k: conv(x, k, 2), (rows, on(X8)), image, kernel)
    add("halo_valid", lambda x, k: conv(x, k, 1, "VALID"), (rows, on(X8)), image, kernel)
    add("halo_dilated", lambda x, k: conv(x, k, rhs_dilation=(2, 2)), (tiles, on(D4M2)), image, kernel)
    add("halo_transposed", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=dims), (rows, on(X8)), image, kernel)
    add("halo_depthwise", lambda x, k: conv(x, k, feature_group_count=3), (tiles, on(D4M2)), image, normal(3, 3, 1, 6))
    add("halo_max_pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), (rows,), image)
    add("halo_mean_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4, (tiles,), image)
    add("halo_kernel_gradient", lambda x, k: jax.grad(lambda v: (conv(x, v) ** 2).sum())(k), (rows, on(X8)), image, kernel)
    add("halo_image_gradient", lambda x, k: jax.grad(lambda v: (conv(v, k) ** 2).sum())(x), (tiles, on(D4M2)), image, kernel)
    add("halo_pool_gradient", lambda x: jax.grad(lambda v: (lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum())(x), (rows,), image)
    add("halo_two_layers", lambda x, k, l: conv(jax.nn.relu(conv(x, k)), l), (tiles, on(D4M2), on(D4M2)), image, kernel, normal(3, 3, 4, 2))
    add("halo_channels", conv, (on(X8, None, None, None, None), on(X8, None, None, None, "x")), image, normal(3, 3, 3, 16))
    add("halo_input_channels", conv, (on(X8, None, None, None, "x"), on(X8, None, None, "x")), normal(2, 6, 6, 8), normal(3, 3, 8, 4))
    add("halo_line", lambda x, k: lax.conv_general_dilated(x, k, (1,), [(4, 0)], dimension_numbers=("NWC", "WIO", "NWC")), (on(X8, None, "x"), on(X8)), normal(2, 32, 4), normal(5, 4, 4))

    def explicit(x, k):
        def local(a, b):
            above = lax.ppermute(a[:, -1:], "x", [(i, i + 1) for i in range(7)])
            below = lax.ppermute(a[:, :1], "x", [(i + 1, i) for i in range(7)])
            return conv(jnp.concatenate([above, a, below], 1), b, padding=((0, 0), (1, 1)))
        return jax.shard_map(local, mesh=X8, in_specs=(P(None, "x"), P()), out_specs=P(None, "x"))(x, k)
    add("halo_shard_map", explicit, (rows, on(X8)), image, kernel)

    def waves(u):
        def step(_, v):
            return pin(v + 0.1 * (jnp.roll(v, 1, 0) + jnp.roll(v, -1, 0) + jnp.roll(v, 1, 1) + jnp.roll(v, -1, 1) - 4 * v), D4M2, "data", "model")
        return lax.fori_loop(0, 5, step, u)
    add("halo_stencil", waves, (on(D4M2, "data", "model"),), normal(16, 8))


# --- ops one by one, and control flow ---

def add_ops():
    rows = on(X8, "x")
    x = normal(16, 6)
    tiles = on(D4M2, "data", "model")
    add("op_sort", lambda a: (jnp.sort(a, 0), jnp.argsort(a, 1)), (rows,), x)
    add("op_top_k", lambda a: lax.top_k(a, 5), (on(X8, None, "x"),), normal(4, 24))
    add("op_argmax", lambda a: (jnp.argmax(a, 0), jnp.argmin(a), a.max(), a.prod(1)), (rows,), x)
    add("op_statistics", lambda a: (a.mean(), a.std(0), jnp.median(a, 0), jnp.linalg.norm(a)), (rows,), x)
    add("op_gather_scatter", lambda a, i: (a[i], a.at[i].add(1.0), a.at[i].max(0.5)), (rows, on(X8)), x, whole(16, 9))
    add("op_segment_sum", lambda a, i: jax.ops.segment_sum(a, i, 5), (rows, rows), x, whole(5, 16))
    add("op_slices", lambda a: (a[3:11], a[::2], a[5], a[::-1], jnp.pad(a, ((1, 2), (0, 1)))), (rows,), x)
    add("op_joins", lambda a, b: (jnp.concatenate([a, b]), jnp.stack([a, b]), jnp.concatenate([a, b], 1)), (rows, rows), x, normal(16, 6, seed=2))
    add("op_reshapes", lambda a: (a.reshape(4, 4, 6), a.reshape(-1), a.reshape(8, 12), a.T, a.reshape(2, 8, 2, 3).transpose(2, 1, 0, 3)), (rows,), x)
    add("op_dynamic", lambda a, i: (lax.dynamic_slice(a, (i, 0), (3, 6)), lax.dynamic_update_slice(a, jnp.ones((3, 2)), (i, i))), (rows, on(X8)), x, np.int32(7))
    add("op_einsums", lambda a, b: (jnp.einsum("ij,kj->ik", a, b), jnp.einsum("ij,ij->", a, b), jnp.einsum("ij,kl->ijkl", a[:2], b[:2]), jnp.einsum("ij,ij->j", a, b)),
        (tiles, tiles), x, normal(16, 6, seed=2))
    add("op_iota_and_random", lambda k: (pin(jnp.arange(16.0) * 2, X8, "x"), pin(jax.random.normal(jax.random.wrap_key_data(k), (16, 4)), X8, "x")), (on(X8),), np.array([3, 4], np.uint32))
    add("op_fft", lambda a: jnp.abs(jnp.fft.rfft(a)), (rows,), normal(8, 16))
    add("op_fft_of_cut", lambda a: jnp.abs(jnp.fft.fft(a)), (on(X8, None, "x"),), normal(4, 16))
    spd = normal(8, 4, 4)
    spd = spd @ spd.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
    add("op_cholesky", lambda a: lax.linalg.cholesky(a), (rows,), spd)
    add("op_triangular_solve", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), (on(X8), on(X8, None, "x")), np.tril(spd[0]), normal(4, 16))
    add("op_while", lambda a: lax.while_loop(lambda s: jnp.abs(s).max() > 1, lambda s: pin(s * 0.5, X8, "x"), a), (rows,), 10 * x)
    add("op_cond", lambda a, p: lax.cond(p > 2, lambda b: jnp.flip(b, 0), lambda b: b * 2, a), (rows, on(X8)), x, np.int32(3))
    add("op_cond_on_data", lambda a: lax.cond(a.sum() > 0, lambda b: b - b.mean(0), lambda b: jnp.sort(b, 0), a), (rows,), x)
    add("op_switch", lambda a, i: lax.switch(i, [jnp.sin, jnp.cos, lambda b: jnp.roll(b, 3, 0)], a), (rows, on(X8)), x, np.int32(2))
    add("op_constraints", lambda a: pin(pin(pin(a, D4M2, "data"), D4M2, None, "model"), D4M2, "model", None), (tiles,), x)
    add("op_device_order", lambda a: a * 2 + pin(a, D2M4, "model"), (on(D2M4, ("model", "data")),), x)
    add("op_reduce_precision", lambda a: (a.astype(jnp.bfloat16).sum(0), (a > 0).any(0), (a > 0).all(), a.astype(jnp.int8).max(1)), (tiles,), x)
    add("op_newton", lambda a: lax.fori_loop(0, 6, lambda _, r: r - (r * r - a) / (2 * r), jnp.ones_like(a)), (rows,), np.abs(x) + 1)
    add("op_vmap_of_loop", lambda a: jax.vmap(lambda v: lax.while_loop(lambda s: s[0] < v[0], lambda s: (s[0] + 1, s[1] * 0.5), (0.0, v))[1])(a), (rows,), np.abs(x) * 3)
    add("op_triangle", lambda a: (jnp.tril(a), jnp.diag(a[:6]), jnp.outer(a[:, 0], a[:, 1])), (rows,), x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    for family in (add_data_parallel, add_fsdp, add_tensor_parallel, add_sequence_parallel, add_experts, add_pipelines, add_halos, add_ops):
        family()
    failed = 0
    for name, function, in_shardings, values, out, by_numpy in PROGRAMS:
        if not re.search(arguments.only, name):
            continue
        if arguments.list:
            print(name, "NUMPY" if by_numpy else "")
            continue
        try:
            options = {"out_shardings": out} if out is not None else {}
            jitted = jax.jit(function, in_shardings=in_shardings, keep_unused=True, **options)
            text = jitted.lower(*values).as_text("hlo")
            expected = by_numpy(*values) if by_numpy else jitted(*values)
        except Exception as error:  # the exporter's table of programs must say which one JAX refuses
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            failed += 1
            continue
        write_folder(os.path.join(arguments.folder, name), text, jax.tree.leaves(values), jax.tree.leaves(expected))
    print(f"{len(PROGRAMS) - failed} of {len(PROGRAMS)} programs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
