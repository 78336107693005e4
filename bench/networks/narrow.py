"""Networks in halves, and in bytes with factors: `NETWORKS` as in images.py."""

import images
import jax
import jax.numpy as jnp
import signals
import texts
from jax import lax
from layers import dense, layer_norm

F16, F32, S8, S32 = jnp.float16, jnp.float32, jnp.int8, jnp.int32


def to_bytes(x, factor=30.0):
    return jnp.clip(jnp.round(x * factor), -127, 127).astype(S8)


def bytes_of(weights, *shape):
    return weights(*shape, scale=40.0).astype(S8)


def convolved(weights, x, features, window=3, stride=1, groups=1):
    kernel = bytes_of(weights, window, window, x.shape[-1] // groups, features)
    y = lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                 feature_group_count=groups, preferred_element_type=S32)
    size = (window * window * x.shape[-1] // groups) ** -0.5 / 1600
    return (y + bytes_of(weights, features).astype(S32)).astype(F32) * (weights.near_one(features) * size)


def resnet_s8(weights, image):
    x = to_bytes(jax.nn.relu(convolved(weights, to_bytes(image), 64, 7, 2)))
    x = lax.reduce_window(x, jnp.array(-128, S8), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for features, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        y = convolved(weights, to_bytes(jax.nn.relu(convolved(weights, x, features, 3, stride))), features)
        x = to_bytes(jax.nn.relu(y + convolved(weights, x, features, 1, stride)))
    return dense(weights, x.astype(F32).mean((1, 2)), 1000)


def mobilenet_s8(weights, image):
    x = to_bytes(jax.nn.relu(convolved(weights, to_bytes(image), 32, 3, 2)))
    for features, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1)):
        x = to_bytes(jax.nn.relu(convolved(weights, x, x.shape[-1], 3, stride, x.shape[-1])))
        x = to_bytes(jax.nn.relu(convolved(weights, x, features, 1)))
    return dense(weights, x.astype(F32).mean((1, 2)), 1000)


def multiplied(weights, x, features):
    """Rows are made bytes by what is largest in them."""
    factor = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    sums = lax.dot_general(jnp.round(x / factor).astype(S8), bytes_of(weights, x.shape[-1], features),
                           (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=S32)
    return sums.astype(F32) * factor * (weights.near_one(features) / 40 / x.shape[-1] ** 0.5)


def transformer_s8(weights, x):
    for _ in range(4):
        h = layer_norm(weights, x)
        q, k, v = (multiplied(weights, h, 512).reshape(*x.shape[:-1], 8, 64) for _ in range(3))
        seen = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1)
        x = x + multiplied(weights, jnp.einsum("bhqk,bkhd->bqhd", seen, v).reshape(x.shape), 512)
        x = x + multiplied(weights, jax.nn.gelu(multiplied(weights, layer_norm(weights, x), 2048)), 512)
    return x


def aware_of_bytes(weights, x):
    """Training for bytes: rounded to them, and multiplied as floats."""
    for _ in range(4):
        factor = jnp.max(jnp.abs(x)) / 127
        w = weights(x.shape[-1], 512)
        of_w = jnp.max(jnp.abs(w), 0, keepdims=True) / 127
        x = jax.nn.relu((jnp.clip(jnp.round(x / factor), -127, 127) * factor) @ (jnp.clip(jnp.round(w / of_w), -127, 127) * of_w))
    return x


def scaled_step(weights, x, labels):
    """A training step whose products are of halves, its loss scaled so that gradients stay numbers."""
    parameters = [weights(784, 512), weights(512, 512), weights(512, 10)]

    def loss(parameters):
        h = x.astype(F16)
        for w in parameters[:-1]:
            h = jax.nn.relu(h @ w.astype(F16))
        logits = (h @ parameters[-1].astype(F16)).astype(F32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1).mean() * 128
    value, gradients = jax.value_and_grad(loss)(parameters)
    is_finite = jnp.all(jnp.array([jnp.isfinite(g).all() for g in gradients]))
    return value, [jnp.where(is_finite, w - 1e-3 * g / 128, w) for w, g in zip(parameters, gradients)]


def in_halves(networks, names):
    return {f"{name}_f16": (networks[name][0], *[(shape, F16 if kind == F32 else kind) for shape, kind in networks[name][1:]], F16)
            for name in names.split()}


NETWORKS = {
    **in_halves(images.NETWORKS, "mobilenet_v2 efficientnet convnext densenet_block mixer vit_small swin_blocks unet dit resnet"),
    **in_halves(texts.NETWORKS, "minilm gpt_prefill llama_prefill"),
    **in_halves(signals.NETWORKS, "wavenet video gru"),
    "resnet_s8": (resnet_s8, images.IMAGE),
    "mobilenet_s8": (mobilenet_s8, images.IMAGE),
    "transformer_s8": (transformer_s8, ((4, 128, 512), F32)),
    "aware_of_bytes": (aware_of_bytes, ((256, 512), F32)),
    "scaled_step": (scaled_step, ((128, 784), F32), ((128,), S32)),
}
