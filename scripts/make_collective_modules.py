#!/usr/bin/env python3
"""Programs with explicit collectives for eight devices, as XLA:CPU partitioned and optimised them.

    python3 scripts/make_collective_modules.py FOLDER [--only=REGEX]

For each program: FOLDER/NAME/module.hlo (num_partitions=8, fusions as XLA prints them), inputs/rank_R/N.npy and
expected/rank_R/N.npy, device R's own arrays. The expected ones are what JAX computed on eight host-platform devices;
those of the programs listed at the end, which XLA:CPU cannot compile, come from NumPy.

    hlorun --devices=8 --inputs=FOLDER/NAME/inputs --expect=FOLDER/NAME/expected FOLDER/NAME/module.hlo
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
from export_jax import save_arrays  # noqa: E402  found through the path above

MESHES = {"x8": ((8,), ("x",)), "x2y4": ((2, 4), ("x", "y")), "x4y2": ((4, 2), ("x", "y")),
          "x2y2z2": ((2, 2, 2), ("x", "y", "z"))}
PROGRAMS = []  # (name, mesh, function, in_specs, out_specs, arguments)


def mesh_of(name):
    shape, axes = MESHES[name]
    return Mesh(np.array(jax.devices("cpu")[:8]).reshape(shape), axes)


def data(*shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    dtype = jnp.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape)).astype(dtype) if dtype.kind == "c" else values.astype(dtype)


def add(name, mesh, function, in_specs, out_specs, *arguments):
    PROGRAMS.append((f"{name}_{mesh}", mesh, function, in_specs, out_specs, arguments))


def all_axes(mesh):
    return MESHES[mesh][1]


def add_reductions():
    for dtype in ("float32", "bfloat16", "float16", "int32", "uint32", "int8", "complex64"):
        add(f"psum_{dtype}", "x8", lambda x: lax.psum(x, "x"), P("x"), P(), data(16, 6, dtype=dtype))
    for mesh in ("x2y4", "x4y2", "x2y2z2"):
        axes = all_axes(mesh)
        for axis in dict.fromkeys((*axes, axes[:2], axes)):
            label = axis if isinstance(axis, str) else "".join(axis)
            add(f"psum_over_{label}", mesh, lambda x, a=axis: lax.psum(x, a), P(axes), P(axes), data(16, 5))
    for name, reduce in (("pmax", lax.pmax), ("pmin", lax.pmin), ("pmean", lax.pmean)):
        for dtype in ("float32", "int32") if name != "pmean" else ("float32", "bfloat16"):
            add(f"{name}_{dtype}", "x8", lambda x, r=reduce: r(x, "x"), P("x"), P(), data(8, 7, dtype=dtype))
        add(f"{name}_over_y", "x2y4", lambda x, r=reduce: r(x, "y"), P(("x", "y")), P(("x", "y")), data(8, 7))
    add("psum_tuple", "x8", lambda x, y, z: lax.psum((x, y, z), "x"), (P("x"), P("x"), P(None, "x")), P(),
        data(8, 4), data(16), data(3, 8, dtype="int32"))
    add("psum_scalar", "x8", lambda x: lax.psum(x.sum(), "x"), P("x"), P(), data(32))
    add("psum_large", "x8", lambda x: lax.psum(x, "x"), P("x"), P(), data(64, 2048))
    add("psum_of_bool_count", "x8", lambda x: lax.psum((x > 0).astype(jnp.int32), "x"), P("x"), P(), data(8, 9))
    add("two_psums", "x2y4", lambda x: lax.psum(jnp.exp(lax.psum(x, "y") * 0.1), "x"), P("x", "y"), P(None, None),
        data(4, 16))


def add_gathers_and_scatters():
    for dtype in ("float32", "bfloat16", "int32", "bool", "uint8"):
        add(f"all_gather_{dtype}", "x8", lambda x: lax.all_gather(x, "x"), P("x"), P(), data(8, 5, dtype=dtype))
    for axis in (0, 1, 2):
        add(f"all_gather_tiled_{axis}", "x8", lambda x, a=axis: lax.all_gather(x, "x", axis=a, tiled=True),
            P("x"), P(), data(8, 4, 3))
        add(f"all_gather_axis_{axis}", "x8", lambda x, a=axis: lax.all_gather(x, "x", axis=a), P("x"), P(), data(8, 4, 3))
    for mesh, axis in (("x2y4", "x"), ("x2y4", "y"), ("x4y2", "y"), ("x2y2z2", ("x", "z"))):
        add(f"all_gather_over_{''.join(axis)}", mesh, lambda x, a=axis: lax.all_gather(x, a, tiled=True),
            P(all_axes(mesh)), P(all_axes(mesh)), data(16, 3))
    for dtype in ("float32", "int32", "bfloat16"):
        add(f"psum_scatter_{dtype}", "x8", lambda x: lax.psum_scatter(x, "x", tiled=True), P(None, "x"), P("x"),
            data(16, 8, dtype=dtype))
    for axis in (0, 1):
        add(f"psum_scatter_dim_{axis}", "x8",
            lambda x, a=axis: lax.psum_scatter(x[0], "x", scatter_dimension=a, tiled=True), P("x"), P("x"), data(8, 8, 16))
    for mesh, axis in (("x2y4", "x"), ("x2y4", "y"), ("x4y2", "x"), ("x2y2z2", "y")):
        add(f"psum_scatter_over_{axis}", mesh, lambda x, a=axis: lax.psum_scatter(x, a, tiled=True),
            P(None, all_axes(mesh)), P(all_axes(mesh)), data(8, 16))


def add_exchanges():
    for split, concat in ((0, 0), (0, 1), (1, 0), (1, 1)):
        add(f"all_to_all_{split}{concat}", "x8",
            lambda x, s=split, c=concat: lax.all_to_all(x, "x", s, c, tiled=True), P(None, None, "x"), P(None, None, "x"),
            data(8, 16, 8))
    add("all_to_all_untiled", "x8", lambda x: lax.all_to_all(x, "x", 1, 1), P("x"), P("x"), data(8, 8, 3))
    for mesh, axis in (("x2y4", "y"), ("x4y2", "x"), ("x2y2z2", "z")):
        add(f"all_to_all_over_{axis}", mesh, lambda x, a=axis: lax.all_to_all(x, a, 1, 0, tiled=True),
            P(all_axes(mesh)), P(all_axes(mesh)), data(16, 8))
    add("all_to_all_int32", "x8", lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), P("x"), P("x"),
        data(64, 3, dtype="int32"))
    permutations = {"shift": [(i, (i + 1) % 8) for i in range(8)], "back": [(i, (i - 3) % 8) for i in range(8)],
                    "reverse": [(i, 7 - i) for i in range(8)], "partial": [(0, 5), (3, 1), (6, 6)],
                    "one": [(2, 7)], "pairs": [(i, i ^ 1) for i in range(8)], "identity": [(i, i) for i in range(8)]}
    for name, pairs in permutations.items():
        add(f"ppermute_{name}", "x8", lambda x, p=pairs: lax.ppermute(x, "x", p), P("x"), P("x"), data(16, 4))
    for dtype in ("bfloat16", "int32", "bool"):
        add(f"ppermute_{dtype}", "x8", lambda x: lax.ppermute(x, "x", permutations["shift"]), P("x"), P("x"),
            data(16, 4, dtype=dtype))
    for mesh, axis, size in (("x2y4", "y", 4), ("x2y4", "x", 2), ("x2y2z2", "y", 2)):
        add(f"ppermute_over_{axis}", mesh,
            lambda x, a=axis, n=size: lax.ppermute(x, a, [(i, (i + 1) % n) for i in range(n)]), P(all_axes(mesh)),
            P(all_axes(mesh)), data(16, 3))
    add("ppermute_two_arrays", "x8", lambda x, y: lax.ppermute((x, y), "x", permutations["back"]), (P("x"), P("x")),
        (P("x"), P("x")), data(16), data(8, 5, dtype="int32"))


def add_device_numbers():
    add("axis_index", "x8", lambda x: x + lax.axis_index("x"), P("x"), P("x"), data(16, dtype="int32"))
    for axis in ("x", "y", "z"):
        add(f"axis_index_{axis}", "x2y2z2", lambda x, a=axis: x * lax.axis_index(a).astype(jnp.float32),
            P(("x", "y", "z")), P(("x", "y", "z")), data(16))
    add("own_slice", "x8", lambda x: lax.dynamic_slice_in_dim(x, lax.axis_index("x") * 2, 2), P(), P("x"), data(16, 3))
    add("own_branch", "x8", lambda x: lax.switch(lax.axis_index("x") % 3, [jnp.sin, jnp.cos, jnp.abs], x), P("x"), P("x"),
        data(16))
    add("own_random", "x8", lambda k: jax.random.normal(jax.random.fold_in(jax.random.wrap_key_data(k), lax.axis_index("x")), (4,)),
        P(), P("x"), np.array([1, 2], np.uint32))
    add("scatter_from_first", "x8", lambda x: lax.psum(jnp.where(lax.axis_index("x") == 0, x, 0), "x"), P("x"), P(), data(8, 4))


def ring_matmul(x, w):
    def step(i, carry):
        total, block = carry
        part = lax.dynamic_slice_in_dim(x, ((lax.axis_index("x") - i) % 8) * block.shape[0], block.shape[0], axis=1)
        return total + part @ block, lax.ppermute(block, "x", [(j, (j + 1) % 8) for j in range(8)])

    return lax.fori_loop(0, 8, step, (jnp.zeros((x.shape[0], w.shape[1]), x.dtype), w))[0]


def ring_attention(q, k, v):
    def step(_, carry):
        k, v, top, norm, out = carry
        scores = q @ k.T
        new = jnp.maximum(top, scores.max(1, keepdims=True))
        weights, fade = jnp.exp(scores - new), jnp.exp(top - new)
        norm, out = norm * fade + weights.sum(1, keepdims=True), out * fade + weights @ v
        return *lax.ppermute((k, v), "x", [(j, (j + 1) % 8) for j in range(8)]), new, norm, out

    zero = jnp.zeros((q.shape[0], 1))
    _, _, _, norm, out = lax.fori_loop(0, 8, step, (k, v, zero - jnp.inf, zero, jnp.zeros_like(q)))
    return out / norm


def halo_convolution(x, kernel):
    left = lax.ppermute(x[-1:], "x", [(i, i + 1) for i in range(7)])
    right = lax.ppermute(x[:1], "x", [(i + 1, i) for i in range(7)])
    padded = jnp.concatenate([left, x, right])
    return kernel[0] * padded[:-2] + kernel[1] * padded[1:-1] + kernel[2] * padded[2:]


def heat_until_flat(x):
    def condition(state):
        return (lax.pmax(jnp.abs(state[0]).max(), "x") > 0.2) & (state[1] < 50)

    return lax.while_loop(condition, lambda s: (halo_convolution(s[0], jnp.array([0.25, 0.45, 0.25])), s[1] + 1), (x, 0))


def prefix_sum(x):
    total = x.cumsum()
    before = lax.all_gather(total[-1], "x")
    return total + jnp.where(jnp.arange(8) < lax.axis_index("x"), before, 0).sum()


def global_argmax(x):
    values = lax.all_gather(x.max(), "x")
    places = lax.all_gather(x.argmax() + lax.axis_index("x") * x.shape[0], "x")
    return places[values.argmax()], values.max()


def odd_even_sort(x):
    def exchange(x, pairs, low):
        other = lax.ppermute(x, "x", pairs)
        both = jnp.sort(jnp.concatenate([x, other]))
        half = jnp.where(low, both[:x.shape[0]], both[x.shape[0]:])
        return jnp.where(jnp.isin(lax.axis_index("x"), jnp.array([p[0] for p in pairs])), half, x)

    x, me = jnp.sort(x), lax.axis_index("x")
    even = [(i, i ^ 1) for i in range(8)]
    odd = [(i, ((i - 1) ^ 1) + 1) for i in range(1, 7)]
    for turn in range(8):
        x = exchange(x, odd if turn % 2 else even, (me % 2 == 1) if turn % 2 else (me % 2 == 0))
    return x


def experts(x, w):
    boxes = x.reshape(8, -1, x.shape[-1])
    there = lax.all_to_all(boxes, "x", 0, 0, tiled=True)
    done = jax.nn.relu(there @ w[0])
    return lax.all_to_all(done, "x", 0, 0, tiled=True).reshape(x.shape[0], -1)


def pipeline(x, w):
    me, batches = lax.axis_index("x"), x.shape[0]

    def tick(carry, t):
        state, out = carry
        state = jnp.where(me == 0, x[jnp.clip(t, 0, batches - 1)], state)
        state = jnp.tanh(state @ w[0])
        ready = (me == 7) & (t >= 7)
        out = out.at[jnp.clip(t - 7, 0, batches - 1)].set(jnp.where(ready, state, out[jnp.clip(t - 7, 0, batches - 1)]))
        return (lax.ppermute(state, "x", [(i, i + 1) for i in range(7)]), out), None

    start = (jnp.zeros(x.shape[1:]), jnp.zeros_like(x))
    (_, out), _ = lax.scan(tick, start, jnp.arange(batches + 7))
    return lax.psum(out, "x")


def sharded_softmax(x):
    top = lax.pmax(x.max(1, keepdims=True), "x")
    weights = jnp.exp(x - top)
    return weights / lax.psum(weights.sum(1, keepdims=True), "x")


def sharded_norm(x):
    mean = lax.pmean(x.mean(1, keepdims=True), "x")
    return (x - mean) * lax.rsqrt(lax.pmean(((x - mean) ** 2).mean(1, keepdims=True), "x") + 1e-5)


def data_parallel_step(w, x, y):
    loss, gradient = jax.value_and_grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
    return w - 0.1 * lax.pmean(gradient, "x"), lax.pmean(loss, "x")


def fsdp_step(w, x, y):
    def loss(w):
        return ((jnp.tanh(x @ lax.all_gather(w, "x", tiled=True)) - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient / 8, lax.pmean(value, "x")


def tensor_parallel_mlp(x, up, down):
    return lax.psum(jax.nn.gelu(x @ up) @ down, "x")


def matmul_2d(a, b):
    return lax.all_gather(a, "y", axis=1, tiled=True) @ lax.all_gather(b, "x", axis=0, tiled=True)


def tensor_and_data_parallel(x, up, down, y):
    def loss(weights):
        return ((lax.psum(jnp.tanh(x @ weights[0]) @ weights[1], "y") - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)((up, down))
    return jax.tree.map(lambda w, g: w - 0.05 * lax.pmean(g, "x"), (up, down), gradient), lax.pmean(value, "x")


def power_iteration(a, v):
    def step(v, _):
        v = lax.all_gather(a @ v, "x", tiled=True)
        return v / jnp.sqrt((v * v).sum()), None

    return lax.scan(step, v, None, length=10)[0]


def histogram(x):
    return lax.psum(jnp.zeros(10, jnp.int32).at[x % 10].add(1), "x")


def nearest_means(points, means):
    def step(means, _):
        nearest = ((points[:, None] - means) ** 2).sum(-1).argmin(1)
        chosen = jax.nn.one_hot(nearest, means.shape[0])
        return lax.psum(chosen.T @ points, "x") / jnp.maximum(lax.psum(chosen.sum(0), "x"), 1)[:, None], None

    return lax.scan(step, means, None, length=4)[0]


def agree_then_branch(x):
    return lax.cond(lax.psum(x.sum(), "x") > 0, lambda x: lax.psum(x, "x"), lambda x: lax.pmax(x, "x"), x)


def add_algorithms():
    add("ring_matmul", "x8", ring_matmul, (P(), P("x")), P(), data(6, 32), data(32, 5))
    add("ring_attention", "x8", ring_attention, (P("x"),) * 3, P("x"), data(32, 8), data(32, 8, seed=1), data(32, 8, seed=2))
    add("halo_convolution", "x8", halo_convolution, (P("x"), P()), P("x"), data(64), data(3))
    add("heat_until_flat", "x8", heat_until_flat, P("x"), (P("x"), P()), data(64))
    add("prefix_sum", "x8", prefix_sum, P("x"), P("x"), data(64))
    add("prefix_sum_int", "x8", prefix_sum, P("x"), P("x"), data(64, dtype="int32"))
    add("global_argmax", "x8", global_argmax, P("x"), (P(), P()), data(80))
    add("odd_even_sort", "x8", odd_even_sort, P("x"), P("x"), data(48))
    add("experts", "x8", experts, (P("x"), P("x")), P("x"), data(128, 4), data(8, 4, 6))
    add("pipeline", "x8", pipeline, (P(), P("x")), P(), data(3, 4, 5), data(8, 5, 5))
    add("sharded_softmax", "x8", sharded_softmax, P(None, "x"), P(None, "x"), data(4, 64))
    add("sharded_norm", "x8", sharded_norm, P(None, "x"), P(None, "x"), data(4, 64))
    add("data_parallel_step", "x8", data_parallel_step, (P(), P("x"), P("x")), (P(), P()), data(6, 4), data(32, 6), data(32, 4))
    add("fsdp_step", "x8", fsdp_step, (P("x"), P("x"), P("x")), (P("x"), P()), data(16, 4), data(32, 16), data(32, 4))
    add("tensor_parallel_mlp", "x8", tensor_parallel_mlp, (P(), P(None, "x"), P("x")), P(), data(4, 6), data(6, 32), data(32, 5))
    for mesh in ("x2y4", "x4y2"):
        add("matmul_2d", mesh, matmul_2d, (P("x", "y"), P("x", "y")), P("x", "y"), data(16, 16), data(16, 16, seed=1))
        add("tensor_and_data_parallel", mesh, tensor_and_data_parallel,
            (P("x"), P(None, "y"), P("y"), P("x")), ((P(None, "y"), P("y")), P()), data(16, 6), data(6, 8), data(8, 3),
            data(16, 3))
    add("power_iteration", "x8", power_iteration, (P("x"), P()), P(), data(16, 16), data(16))
    add("histogram", "x8", histogram, P("x"), P(), data(160, dtype="int32"))
    add("nearest_means", "x8", nearest_means, (P("x"), P()), P(), data(64, 3), data(5, 3))
    add("agree_then_branch", "x8", agree_then_branch, P("x"), P("x"), data(16))


def shards(array):
    """What each device holds, by the device's number."""
    return {shard.device.id: np.asarray(shard.data) for shard in array.addressable_shards}


def save_ranks(folder, arrays):
    for rank in range(8):
        save_arrays(os.path.join(folder, f"rank_{rank}"), [shards(array)[rank] for array in arrays])


def write(folder, mesh_name, function, in_specs, out_specs, arguments):
    mesh = mesh_of(mesh_name)
    specs = in_specs if isinstance(in_specs, tuple) and not isinstance(in_specs, P) else (in_specs,)
    placed = [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip(arguments, specs)]
    mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out_specs, check_vma=False)
    compiled = jax.jit(mapped, keep_unused=True).lower(*placed).compile()
    text = compiled.as_text()
    if "num_partitions=8" not in text.splitlines()[0]:
        raise SystemExit(f"{folder}: XLA did not partition it for 8 devices")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "module.hlo"), "w") as file:
        file.write(text)
    save_ranks(os.path.join(folder, "inputs"), placed)
    save_ranks(os.path.join(folder, "expected"), jax.tree.leaves(compiled(*placed)))


# --- what XLA:CPU cannot compile: text by hand, expected outputs by NumPy ---

BROADCAST = """HloModule collective_broadcast, num_partitions=8

ENTRY %main (x: f32[4,3]) -> f32[4,3] {
  %x = f32[4,3]{1,0} parameter(0)
  ROOT %y = f32[4,3]{1,0} collective-broadcast(%x), channel_id=1, replica_groups={{2,0,1,3},{5,4,6,7}}
}
"""

RAGGED = """HloModule ragged_all_to_all, num_partitions=8

ENTRY %main (x: f32[36,2], y: f32[36,2], offsets: s32[8], sizes: s32[8], places: s32[8], received: s32[8]) -> f32[36,2] {
  %x = f32[36,2]{1,0} parameter(0)
  %y = f32[36,2]{1,0} parameter(1)
  %offsets = s32[8]{0} parameter(2)
  %sizes = s32[8]{0} parameter(3)
  %places = s32[8]{0} parameter(4)
  %received = s32[8]{0} parameter(5)
  ROOT %z = f32[36,2]{1,0} ragged-all-to-all(%x, %y, %offsets, %sizes, %places, %received), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}
}
"""


def collective_broadcast():
    x = data(8, 4, 3)
    root = [2, 2, 2, 2, 5, 5, 5, 5]  # the first of each group
    return BROADCAST, [[x[rank]] for rank in range(8)], [[x[root[rank]]] for rank in range(8)]


def ragged_all_to_all():
    sizes = np.random.default_rng(0).integers(0, 5, (8, 8)).astype(np.int32)  # sizes[sender, receiver]
    x, y = data(8, 36, 2), data(8, 36, 2, seed=1)
    offsets = (np.cumsum(sizes, 1) - sizes).astype(np.int32)
    places = (np.cumsum(sizes, 0) - sizes).astype(np.int32)  # where the sender's rows lie at the receiver
    expected = y.copy()
    for sender in range(8):
        for receiver in range(8):
            n = sizes[sender, receiver]
            rows = x[sender, offsets[sender, receiver]:offsets[sender, receiver] + n]
            expected[receiver, places[sender, receiver]:places[sender, receiver] + n] = rows
    inputs = [[x[r], y[r], offsets[r], sizes[r], places[r], np.ascontiguousarray(sizes[:, r])] for r in range(8)]
    return RAGGED, inputs, [[expected[r]] for r in range(8)]


BY_NUMPY = {"collective_broadcast": collective_broadcast, "ragged_all_to_all": ragged_all_to_all}


def write_by_numpy(folder, make):
    text, inputs, expected = make()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "module.hlo"), "w") as file:
        file.write(text)
    for rank in range(8):
        save_arrays(os.path.join(folder, "inputs", f"rank_{rank}"), inputs[rank])
        save_arrays(os.path.join(folder, "expected", f"rank_{rank}"), expected[rank])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="a regular expression that names must match")
    flags = parser.parse_args()
    add_reductions()
    add_gathers_and_scatters()
    add_exchanges()
    add_device_numbers()
    add_algorithms()
    written = []
    for name, *program in PROGRAMS:
        if re.search(flags.only, name):
            write(os.path.join(flags.folder, name), *program)
            written.append(name)
    for name, make in BY_NUMPY.items():
        if re.search(flags.only, name):
            write_by_numpy(os.path.join(flags.folder, name), make)
            written.append(name)
    if len(set(written)) != len(written):
        raise SystemExit("two programs have the same name")
    print(f"{len(written)} programs in {flags.folder}; by NumPy: {', '.join(n for n in BY_NUMPY if n in written)}")


if __name__ == "__main__":
    main()
