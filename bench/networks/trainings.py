"""Training steps and programs that are no networks: `NETWORKS` as in images.py."""

import jax
import jax.numpy as jnp
from jax import lax
from layers import Weights, batch_norm, causal, convolution, dense, encoder_layer, layer_norm

F32, S32 = jnp.float32, jnp.int32


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def adam_step(loss_of):
    """One step of Adam from zero moments on all weights: (loss, new weights)."""
    def network(weights, *inputs):
        if weights.next is None:
            return loss_of(weights, *inputs)
        loss, slopes = jax.value_and_grad(lambda arrays: loss_of(Weights().replay(arrays), *inputs))(weights.arrays)
        first, second = [0.1 * g for g in slopes], [0.001 * g * g for g in slopes]
        return loss, [w - 1e-3 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-4) for w, m, v in zip(weights.arrays, first, second)]
    return network


def gpt_loss(weights, words):
    table = weights(4096, 256, scale=0.5)
    x = table[words[:, :-1]] + weights(words.shape[1] - 1, 256, scale=0.1)
    for _ in range(3):
        x = encoder_layer(weights, x, 4, causal(words.shape[1] - 1))
    return cross_entropy(layer_norm(weights, x) @ table.T * 0.1, words[:, 1:])


def resnet_loss(weights, images, labels):
    x = convolution(weights, images, 32)
    for features in (32, 64, 128):
        for i in range(2):
            stride = 2 if i == 0 and features > 32 else 1
            y = jax.nn.relu(batch_norm(weights, convolution(weights, x, features, 3, stride)))
            y = batch_norm(weights, convolution(weights, y, features))
            x = jax.nn.relu(y + (x if x.shape == y.shape else convolution(weights, x, features, 1, stride)))
    return cross_entropy(dense(weights, x.mean((1, 2)), 10), labels)


def stem_loss(weights, images, labels):
    x = jax.nn.relu(batch_norm(weights, convolution(weights, images, 64, 7, 2)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return cross_entropy(dense(weights, x.mean((1, 2)), 10), labels)


def mlp_loss(weights, x, labels):
    for features in (512, 512, 256):
        x = jax.nn.relu(dense(weights, x, features))
    return cross_entropy(dense(weights, x, 10), labels)


def autoencoder_loss(weights, images):
    x = images
    for features in (32, 64, 128):
        x = jax.nn.gelu(convolution(weights, x, features, 4, 2))
    mean, spread = jnp.split(dense(weights, x.reshape(x.shape[0], -1), 128), 2, -1)
    x = dense(weights, mean + jnp.exp(spread * 0.1), 8 * 8 * 128).reshape(-1, 8, 8, 128)
    for features in (64, 32, 3):
        x = lax.conv_transpose(jax.nn.gelu(x), weights(4, 4, x.shape[-1], features, scale=0.05), (2, 2), "SAME")
    return jnp.square(x - images).mean() + 1e-3 * (jnp.square(mean) + jnp.exp(spread) - spread).mean()


def recommender(weights, numbers, ids):
    tables = weights(26, 10000, 64, scale=0.1)
    rows = jax.vmap(lambda table, column: table[column], (0, 1), 1)(tables, ids)
    bottom = jax.nn.relu(dense(weights, jax.nn.relu(dense(weights, numbers, 256)), 64))
    rows = jnp.concatenate([bottom[:, None], rows], 1)
    products = jnp.einsum("bif,bjf->bij", rows, rows)
    low, high = jnp.tril_indices(27, -1)
    x = jnp.concatenate([bottom, products[:, low, high]], -1)
    return jax.nn.sigmoid(dense(weights, jax.nn.relu(dense(weights, jax.nn.relu(dense(weights, x, 512)), 256)), 1))


def message_passing(weights, nodes, edges):
    for _ in range(3):
        messages = jax.nn.relu(dense(weights, jnp.concatenate([nodes[edges[0]], nodes[edges[1]]], -1), 64))
        nodes = nodes + dense(weights, jax.ops.segment_sum(messages, edges[1], nodes.shape[0]), 64)
    return nodes


def nearest(_, points, queries):
    distances = jnp.square(points).sum(-1) - 2 * queries @ points.T
    return lax.top_k(-distances, 10)


def k_means(_, points, centers):
    def step(_, centers):
        nearest = jnp.argmin(jnp.square(centers).sum(-1) - 2 * points @ centers.T, -1)
        sums = jax.ops.segment_sum(points, nearest, centers.shape[0])
        return sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(points.shape[0]), nearest, centers.shape[0]), 1)[:, None]
    return lax.fori_loop(0, 10, step, centers)


def scans(_, x):
    return jnp.cumsum(x, -1), jnp.cumprod(1 + 1e-3 * x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 1)


def sorts(_, x, keys):
    order = jnp.argsort(keys, axis=-1)
    return jnp.take_along_axis(x, order, -1), jnp.sort(x, 0), jnp.median(x, -1), jnp.quantile(x, 0.9, axis=-1)


def counts(_, values, x):
    return jnp.bincount(values, length=1024), jnp.searchsorted(jnp.sort(x), x), jnp.histogram(x, 64)[0]


def spectra(_, x, kernel):
    """A convolution of long rows by their spectra."""
    size = 2 * x.shape[-1]
    return jnp.fft.irfft(jnp.fft.rfft(x, size) * jnp.fft.rfft(kernel, size), size)[..., :x.shape[-1]]


def spectrogram(_, x):
    """Windows of 512 samples, every 128, of one second and a half of sound."""
    frames = x[jnp.arange(184)[:, None] * 128 + jnp.arange(512)] * jnp.hanning(512).astype(x.dtype)
    return jnp.log1p(jnp.abs(jnp.fft.rfft(frames)))


def filtered_image(_, images, mask):
    return jnp.fft.ifft2(jnp.fft.fft2(images) * mask).real


NETWORKS = {
    "train_gpt": (adam_step(gpt_loss), ((4, 129), S32)),
    "train_stem": (adam_step(stem_loss), ((8, 224, 224, 3), F32), ((8,), S32)),
    "train_resnet": (adam_step(resnet_loss), ((16, 32, 32, 3), F32), ((16,), S32)),
    "train_mlp": (adam_step(mlp_loss), ((128, 784), F32), ((128,), S32)),
    "train_autoencoder": (adam_step(autoencoder_loss), ((8, 64, 64, 3), F32)),
    "recommender": (recommender, ((512, 13), F32), ((512, 26), S32)),
    "message_passing": (message_passing, ((2000, 64), F32), ((2, 16000), S32)),
    "nearest": (nearest, ((20000, 64), F32), ((256, 64), F32)),
    "k_means": (k_means, ((20000, 32), F32), ((64, 32), F32)),
    "scans": (scans, ((1024, 1024), F32)),
    "sorts": (sorts, ((512, 2048), F32), ((512, 2048), F32)),
    "counts": (counts, ((100000,), S32), ((100000,), F32)),
    "spectra": (spectra, ((16, 8192), F32), ((16, 8192), F32)),
    "spectrogram": (spectrogram, ((24000,), F32)),
    "filtered_image": (filtered_image, ((4, 256, 256), F32), ((256, 256), F32)),
}
