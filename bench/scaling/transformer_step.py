"""A training step of a small transformer, for scripts/export_jax.py: two layers of attention and MLP, softmax cross-entropy, SGD.

  python3 scripts/export_jax.py bench/scaling/transformer_step.py:step --arguments bench/scaling/transformer_step.py:example_arguments -o DIR
  mpirun -n 2 hlorun --inputs=DIR/inputs --expect=DIR/expected DIR/module.hlo
"""

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, HEADS, WIDTH, HIDDEN, WORDS, BATCH, LENGTH = 2, 4, 256, 1024, 1000, 16, 128


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attention(layer, x):
    b, s, d = x.shape
    q, k, v = (jnp.reshape(x @ layer[name], (b, s, HEADS, d // HEADS)) for name in ("q", "k", "v"))
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / np.sqrt(d // HEADS)
    scores = jnp.where(np.tril(np.ones((s, s), bool)), scores, -1e9)
    return jnp.reshape(jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores), v), (b, s, d)) @ layer["o"]


def loss(parameters, words):
    x = parameters["embedding"][words[:, :-1]]
    for layer in parameters["layers"]:
        x = x + attention(layer, norm(x))
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    logits = norm(x) @ parameters["embedding"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), words[:, 1:, None], -1).mean()


def step(parameters, words):
    value, gradients = jax.value_and_grad(loss)(parameters, words)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def example_arguments():
    random = np.random.default_rng(0)

    def weights(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    layers = [{**{name: weights(WIDTH, WIDTH) for name in "qkvo"}, "up": weights(WIDTH, HIDDEN), "down": weights(HIDDEN, WIDTH)}
              for _ in range(LAYERS)]
    return ({"embedding": weights(WORDS, WIDTH), "layers": layers},
            random.integers(0, WORDS, (BATCH, LENGTH + 1)).astype(np.int32))
