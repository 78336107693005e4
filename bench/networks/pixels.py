"""Pixels, boxes, points and other rows of a few elements, and what is done with them: `NETWORKS` as in images.py."""

import jax
import jax.numpy as jnp
from jax import lax

F32, S32, U8 = jnp.float32, jnp.int32, jnp.uint8


def columns(x):
    return [x[..., i] for i in range(x.shape[-1])]


def hue(_, x):
    x = jax.nn.sigmoid(x)
    r, g, b = columns(x)
    most, spread = x.max(-1), x.max(-1) - x.min(-1) + 1e-6
    h = jnp.where(most == r, ((g - b) / spread) % 6, jnp.where(most == g, (b - r) / spread + 2, (r - g) / spread + 4)) / 6
    return jnp.stack([h, spread / (most + 1e-6), most], -1)


def from_hue(_, x):
    h, s, v = columns(jax.nn.sigmoid(x))

    def channel(m):
        k = (m + h * 6) % 6
        return v - v * s * jnp.clip(jnp.minimum(k, 4 - k), 0, 1)
    return jnp.stack([channel(5.0), channel(3.0), channel(1.0)], -1)


def video_frame(_, x):
    """Y, U, V of a frame to R, G, B, in whole numbers."""
    y, u, v = (c.astype(S32) for c in columns(x))
    c, d, e = y - 16, u - 128, v - 128
    rgb = (298 * c + 409 * e, 298 * c - 100 * d - 208 * e, 298 * c + 516 * d)
    return jnp.stack([jnp.clip((channel + 128) >> 8, 0, 255) for channel in rgb], -1).astype(U8)


def mixed_colours(weights, x):
    return (x @ weights(3, 3) + weights(3)).clip(0, 1)


def grey(_, x):
    return (x.astype(F32) @ jnp.array([0.299, 0.587, 0.114])).astype(U8)


def prepared_images(_, x):
    x = (x.astype(F32) / 255 - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])
    return jax.image.resize(x, (8, 224, 224, 3), "bilinear").transpose(0, 3, 1, 2)


def haar(_, x):
    a, b, c, d = x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]
    return jnp.concatenate([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], -1) / 2


def signal_of_wavelets(_, mean, difference):
    return jnp.stack([mean + difference, mean - difference], -1).reshape(mean.shape[0], -1)[:, 1:-1]


def larger_picture(_, x):
    """Each pixel's 48 channels are four by four pixels of three colours."""
    batch, rows, columns, _ = x.shape
    return jax.nn.sigmoid(x).reshape(batch, rows, columns, 3, 4, 4).transpose(0, 1, 4, 2, 5, 3).reshape(batch, 4 * rows, 4 * columns, 3)


def shuffled_channels(_, x, mean, scale):
    left, right = jnp.split(x, 2, -1)
    both = jnp.concatenate([left, jax.nn.relu((right - mean) * scale)], -1)
    pairs = both.reshape(*x.shape[:-1], 2, -1).swapaxes(-1, -2).reshape(x.shape)
    left, right = jnp.split(pairs, 2, -1)
    return 2 * left, jax.nn.relu((right - mean) * scale)


def rotated_pairs(_, q, k):
    """Scores of rows whose neighbouring elements are turned by an angle that grows with their place."""
    angles = jnp.arange(q.shape[1])[:, None] * jnp.exp(-jnp.arange(q.shape[-1] // 2) * 0.1)

    def turned(x):
        a, b, cos, sin = x[..., ::2], x[..., 1::2], jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    return jnp.einsum("bthd,bshd->bhts", turned(q), turned(k))


def repeated_channels(_, x, mean, scale):
    return jnp.repeat((x - mean) * scale, 2, -1)


def bayer(_, x):
    return jnp.stack([x[::2, ::2], (x[::2, 1::2] + x[1::2, ::2]) / 2, x[1::2, 1::2]], -1)


def quaternions(_, a, b):
    (w1, x1, y1, z1), (w2, x2, y2, z2) = columns(a), columns(b)
    return jnp.stack([w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                      w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2], -1)


def rotated_points(_, q, p):
    u, w = q[..., 1:], q[..., :1]
    t = 2 * jnp.cross(u, p)
    return p + w * t + jnp.cross(u, t)


def moved_points(weights, p):
    return p @ weights(3, 3).T + weights(3)


def poses(_, rotations, points):
    return jnp.einsum("bij,bj->bi", rotations, points), jnp.einsum("bij,bkj->bik", rotations, rotations)


def spherical(_, p):
    r = jnp.linalg.norm(p, axis=-1)
    return jnp.stack([r, jnp.arccos(p[..., 2] / r), jnp.arctan2(p[..., 1], p[..., 0])], -1)


def corners(_, x):
    cx, cy, w, h = columns(x)
    return jnp.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)


def classes_of_pixels(_, x):
    return x.argmax(-1).astype(U8), x.max(-1)


def next_words(_, x):
    return x.argmax(-1), jnp.take_along_axis(jax.nn.log_softmax(x), x.argmax(-1)[:, None], -1)


def nearest_codes(weights, x):
    codes = weights(512, 64)
    return (jnp.square(codes).sum(-1) - 2 * x @ codes.T).argmin(-1)


def ten_classes(_, x, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], -1).mean(), (x.argmax(-1) == labels).mean()


def gates(weights, x):
    chances = jax.nn.softmax(x @ weights(64, 12))
    best, which = lax.top_k(chances, 2)
    return best / best.sum(-1, keepdims=True), which


def narrow_norms(_, x):
    return jax.nn.standardize(x), x / jnp.linalg.norm(x, axis=-1, keepdims=True)


PICTURES, BYTES, POINTS = ((8, 256, 256, 3), F32), ((8, 256, 256, 3), U8), ((100000, 3), F32)
NETWORKS = {
    "hue": (hue, PICTURES),
    "from_hue": (from_hue, PICTURES),
    "video_frame": (video_frame, ((1080, 1920, 3), U8)),
    "mixed_colours": (mixed_colours, PICTURES),
    "grey": (grey, BYTES),
    "prepared_images": (prepared_images, ((8, 320, 320, 3), U8)),
    "haar": (haar, PICTURES),
    "signal_of_wavelets": (signal_of_wavelets, ((64, 4096), F32), ((64, 4096), F32)),
    "larger_picture": (larger_picture, ((1, 64, 64, 48), F32)),
    "shuffled_channels": (shuffled_channels, ((1, 28, 28, 116), F32), ((58,), F32), ((58,), F32)),
    "rotated_pairs": (rotated_pairs, ((2, 256, 8, 64), F32), ((2, 256, 8, 64), F32)),
    "repeated_channels": (repeated_channels, ((16, 22, 256, 8), F32), ((8,), F32), ((8,), F32)),
    "bayer": (bayer, ((2048, 2048), F32)),
    "quaternions": (quaternions, ((100000, 4), F32), ((100000, 4), F32)),
    "rotated_points": (rotated_points, ((100000, 4), F32), POINTS),
    "moved_points": (moved_points, POINTS),
    "poses": (poses, ((50000, 3, 3), F32), ((50000, 3), F32)),
    "spherical": (spherical, POINTS),
    "corners": (corners, ((8, 4096, 4), F32)),
    "classes_of_pixels": (classes_of_pixels, ((4, 128, 128, 21), F32)),
    "next_words": (next_words, ((8, 50257), F32)),
    "nearest_codes": (nearest_codes, ((4096, 64), F32)),
    "ten_classes": (ten_classes, ((100000, 10), F32), ((100000,), S32)),
    "gates": (gates, ((16384, 64), F32)),
    "narrow_norms": (narrow_norms, ((100000, 12), F32)),
}
