"""Networks for sound, video, points and rays: `NETWORKS` maps a name to (function of weights and inputs, shapes of the inputs)."""

import jax
import jax.numpy as jnp
from jax import lax
from layers import batch_norm, dense

F32, S32 = jnp.float32, jnp.int32
LABELS = {1: ("NWC", "WIO", "NWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def convolution(weights, x, features, window, stride=None, dilation=None, padding="SAME"):
    rank = len(window)
    kernel = weights(*window, x.shape[-1], features)
    return lax.conv_general_dilated(x, kernel, stride or (1,) * rank, padding, rhs_dilation=dilation, dimension_numbers=LABELS[rank])


def wavenet(weights, sound):
    """Causal convolutions, each twice as far apart as the one before, gated."""
    x, skipped = convolution(weights, sound, 64, (1,)), 0
    for i in range(20):
        far = 2 ** (i % 10)
        y = convolution(weights, x, 128, (2,), dilation=(far,), padding=[(far, 0)])
        y = jnp.tanh(y[..., :64]) * jax.nn.sigmoid(y[..., 64:])
        skipped = skipped + dense(weights, y, 128)
        x = x + dense(weights, y, 64)
    return dense(weights, jax.nn.relu(dense(weights, jax.nn.relu(skipped), 128)), 256)


def residual_video(weights, frames, convolve):
    x = jax.nn.relu(batch_norm(weights, convolution(weights, frames, 32, (3, 7, 7), (1, 2, 2))))
    for features, stride in ((32, 1), (64, 2), (128, 2)):
        y = jax.nn.relu(batch_norm(weights, convolve(weights, x, features, stride)))
        y = batch_norm(weights, convolve(weights, y, features, 1))
        kept = x if stride == 1 else convolution(weights, x, features, (1, 1, 1), (stride,) * 3)
        x = jax.nn.relu(y + kept)
    return dense(weights, x.mean((1, 2, 3)), 400)


def video(weights, frames):
    return residual_video(weights, frames, lambda weights, x, features, stride: convolution(weights, x, features, (3, 3, 3), (stride,) * 3))


def video_2_1(weights, frames):
    """Space, then time."""
    def convolve(weights, x, features, stride):
        y = jax.nn.relu(batch_norm(weights, convolution(weights, x, features, (1, 3, 3), (1, stride, stride))))
        return convolution(weights, y, features, (3, 1, 1), (stride, 1, 1))
    return residual_video(weights, frames, convolve)


def train_video(weights, frames):
    """The gradient of a sum of scores with respect to the frames and the weights of the first layers."""
    kernel, second = weights(3, 3, 3, 3, 32), weights(3, 3, 3, 32, 64)

    def loss(frames, kernel, second):
        x = frames
        for k, stride in ((kernel, 1), (second, 2)):
            x = jax.nn.relu(lax.conv_general_dilated(x, k, (stride,) * 3, "SAME", dimension_numbers=LABELS[3]))
        return jnp.square(x.mean((1, 2, 3))).sum()
    return jax.grad(loss, (0, 1, 2))(frames, kernel, second)


def gru(weights, sequence):
    features = sequence.shape[-1]
    into, back = weights(features, 3 * features), weights(features, 3 * features)

    def step(state, x):
        a, b = jnp.split(x @ into, 3, -1), jnp.split(state @ back, 3, -1)
        reset, update = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
        state = update * state + (1 - update) * jnp.tanh(a[2] + reset * b[2])
        return state, state
    return lax.scan(step, jnp.zeros(sequence.shape[1:], F32), sequence)[1]


def radiance_field(weights, origins, directions):
    """Colours along rays: waves of places, a network for each sample, and what the samples before let through."""
    depth = jnp.linspace(2.0, 6.0, 64)
    places = origins[:, None] + directions[:, None] * depth[:, None]
    waves = places[..., None, :] * 2.0 ** jnp.arange(6)[:, None]
    x = jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1).reshape(*places.shape[:-1], -1)
    for _ in range(4):
        x = jax.nn.relu(dense(weights, x, 128))
    density, colour = jax.nn.relu(dense(weights, x, 1)[..., 0]), jax.nn.sigmoid(dense(weights, x, 3))
    through = jnp.exp(-density * 0.0625)
    before = jnp.cumprod(jnp.concatenate([jnp.ones_like(through[:, :1]), through[:, :-1] + 1e-6], -1), -1)
    return ((before * (1 - through))[..., None] * colour).sum(1)


def coordinates(weights, places):
    """A network of places, given as sines and cosines of their coordinates side by side."""
    x = jnp.concatenate([wave(places * 2.0**i) for i in range(6) for wave in (jnp.sin, jnp.cos)], -1)
    for _ in range(2):
        x = jax.nn.relu(dense(weights, x, 128))
    return dense(weights, x, 4)


def point_cloud(weights, points):
    """Each point with its 16 nearest ones, twice; then the largest of each feature."""
    x = points
    for features in (64, 128):
        distance = jnp.square(points[:, :, None] - points[:, None]).sum(-1)
        near = lax.top_k(-distance, 16)[1]
        around = jax.vmap(lambda rows, places: rows[places])(x, near)
        edges = jnp.concatenate([around - x[:, :, None], jnp.broadcast_to(x[:, :, None], around.shape)], -1)
        x = jax.nn.relu(dense(weights, edges, features)).max(2)
    return dense(weights, x.max(1), 40)


NETWORKS = {
    "wavenet": (wavenet, ((1, 8000, 1), F32)),
    "video": (video, ((1, 8, 112, 112, 3), F32)),
    "video_2_1": (video_2_1, ((1, 8, 112, 112, 3), F32)),
    "train_video": (train_video, ((2, 8, 32, 32, 3), F32)),
    "gru": (gru, ((128, 16, 256), F32)),
    "radiance_field": (radiance_field, ((1024, 3), F32), ((1024, 3), F32)),
    "coordinates": (coordinates, ((65536, 3), F32)),
    "point_cloud": (point_cloud, ((2, 1024, 3), F32)),
}
