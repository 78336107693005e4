"""Filters of images and signals, of few channels, and transforms of odd lengths: `NETWORKS` as in images.py."""

import jax
import jax.numpy as jnp
from jax import lax

F32 = jnp.float32


def filtered(x, w, strides=1, groups=1, padding="SAME"):
    """Channels first, of any spatial rank."""
    return lax.conv_general_dilated(x, w, (strides,) * (x.ndim - 2), padding, feature_group_count=groups)


def bell(width, deviation):
    x = jnp.exp(-0.5 * ((jnp.arange(width) - width // 2) / deviation) ** 2)
    return x / x.sum()


def gradients_of_image(_, x):
    """Sobel's two filters, and how steep it is."""
    rise = jnp.array([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    across, along = jnp.moveaxis(filtered(x[:, None], jnp.stack([rise, rise.T])[:, None]), 1, 0)
    return jnp.hypot(across, along)


def sharpened(_, x):
    """What a blur of 11 by 11 takes away, twice."""
    blur = jnp.tile(jnp.outer(bell(11, 1.5), bell(11, 1.5)), (3, 1, 1, 1))
    return 2 * x - filtered(x, blur, groups=3)


def structural_similarity(_, x, y):
    window = jnp.tile(jnp.outer(bell(11, 1.5), bell(11, 1.5)), (3, 1, 1, 1))

    def mean(z):
        return filtered(z, window, groups=3, padding="VALID")
    a, b = mean(x), mean(y)
    same = (2 * a * b + 0.01) / (a * a + b * b + 0.01)
    return (same * (2 * (mean(x * y) - a * b) + 0.03) / (mean(x * x) - a * a + mean(y * y) - b * b + 0.03)).mean()


def similarity_gradient(_, x, y):
    return jax.grad(lambda x: structural_similarity(_, x, y))(x)


def pyramid(_, x):
    """An image at four sizes, and what each loses."""
    blur = jnp.tile(jnp.outer(bell(5, 1.0), bell(5, 1.0)), (3, 1, 1, 1))
    levels = []
    for _ in range(3):
        small = filtered(x, blur, strides=2, groups=3)
        again = lax.conv_general_dilated(small, 4 * blur, (1, 1), [(2, 3), (2, 3)], lhs_dilation=(2, 2), feature_group_count=3)
        levels.append(x - again[:, :, :x.shape[2], :x.shape[3]])
        x = small
    return (*levels, x)


def matched(weights, x):
    return jnp.correlate(x, weights(501), "valid")


def filter_bank(weights, x):
    return jnp.square(filtered(x[:, None], weights(8, 1, 63), strides=2))


def volume(weights, x):
    return filtered(jax.nn.relu(filtered(x[:, None], weights(8, 1, 3, 3, 3))), weights(1, 8, 3, 3, 3))


def depth_head(weights, x):
    return jax.nn.sigmoid(filtered(jax.nn.relu(filtered(x, weights(16, 32, 3, 3))), weights(1, 16, 3, 3)))


def odd_spectra(_, x):
    return jnp.abs(jnp.fft.rfft(x[:, :509])), jnp.abs(jnp.fft.fft(x[:, :997])), jnp.abs(jnp.fft.fft(x))


def resampled(_, x):
    """From 1,009 points to 1,511 by its spectrum."""
    spectrum = jnp.fft.rfft(x)
    return jnp.fft.irfft(jnp.pad(spectrum, ((0, 0), (0, 1511 // 2 + 1 - spectrum.shape[1]))), 1511) * (1511 / 1009)


def windows(x, size, axis):
    """Of [batch, rows, columns, channels]: a window's pixels, side by side along `axis`."""
    edge = size // 2
    padded = jnp.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    return jnp.stack([padded[:, i:i + x.shape[1], j:j + x.shape[2]] for i in range(size) for j in range(size)], axis)


def local_means(_, x):
    return windows(x, 5, -1).mean(-1)


def involution(weights, x):
    """Windows of weights that each pixel makes, one for 16 channels."""
    groups = x.shape[-1] // 16
    inner = jax.nn.relu(x @ weights(x.shape[-1], x.shape[-1] // 4))
    by_pixel = (inner @ weights(x.shape[-1] // 4, 9 * groups)).reshape(*x.shape[:3], 9, groups, 1)
    return (by_pixel * windows(x, 3, 3).reshape(*x.shape[:3], 9, groups, 16)).sum(3).reshape(x.shape)


PICTURES = ((4, 3, 256, 256), F32)
NETWORKS = {
    "gradients_of_image": (gradients_of_image, ((1, 1080, 1920), F32)),
    "sharpened": (sharpened, PICTURES),
    "structural_similarity": (structural_similarity, PICTURES, PICTURES),
    "similarity_gradient": (similarity_gradient, PICTURES, PICTURES),
    "pyramid": (pyramid, PICTURES),
    "matched": (matched, ((100000,), F32)),
    "filter_bank": (filter_bank, ((16, 16000), F32)),
    "volume": (volume, ((1, 64, 64, 64), F32)),
    "depth_head": (depth_head, ((2, 32, 128, 128), F32)),
    "odd_spectra": (odd_spectra, ((64, 2003), F32)),
    "resampled": (resampled, ((100, 1009), F32)),
    "local_means": (local_means, ((2, 56, 56, 32), F32)),
    "involution": (involution, ((2, 28, 28, 128), F32)),
}
