#!/usr/bin/env python3
"""examples/data_parallel: a training step on two devices, each with half of the batch, as XLA partitioned it (JAX).

The weights are on both devices, the batch is cut, and the gradients meet in an all-reduce; run it with
mpirun -n 2 hlorun, or in one process with hlorun --devices=2.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax  # noqa: E402  after the flags that it reads
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import place  # noqa: E402
from export_jax import write_folder  # noqa: E402

mesh = Mesh(np.array(jax.devices("cpu")[:2]), ("batch",))


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["hidden"] + w["bias"]) @ w["out"] - y) ** 2)


def local_step(w, x, y):
    value, gradient = jax.value_and_grad(loss)(w, x, y)
    gradient = jax.tree.map(lambda g: jax.lax.pmean(g, "batch"), gradient)
    return jax.tree.map(lambda p, g: p - 0.1 * g, w, gradient), jax.lax.pmean(value, "batch")


def main():
    rng = np.random.default_rng(4)
    weights = {"hidden": rng.standard_normal((24, 32), dtype=np.float32) * np.float32(0.2),
               "bias": np.zeros(32, np.float32), "out": rng.standard_normal((32, 8), dtype=np.float32) * np.float32(0.2)}
    batch = (rng.standard_normal((64, 24), dtype=np.float32), rng.standard_normal((64, 8), dtype=np.float32))
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=(P(), P()),
                         check_vma=False)
    placed = (jax.device_put(weights, NamedSharding(mesh, P())), *(jax.device_put(b, NamedSharding(mesh, P("batch"))) for b in batch))
    compiled = jax.jit(step, keep_unused=True).lower(*placed).compile()
    write_folder(place.folder("data_parallel"), compiled.as_text(), jax.tree.leaves((weights, *batch)),
                 jax.tree.leaves(compiled(*placed)))


main()
