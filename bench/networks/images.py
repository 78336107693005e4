"""Networks for images: `NETWORKS` maps a name to (function of weights and inputs, shapes of the inputs)."""

import jax
import jax.numpy as jnp
from jax import lax
from layers import (attention, batch_norm, convolution, dense, depthwise, encoder_layer, group_norm, heads_of, layer_norm, mlp, patches)

F32 = jnp.float32
IMAGE = ((1, 224, 224, 3), F32)


def inverted_residual(weights, x, features, stride, expand, window=3, activation=jax.nn.relu6, squeeze=False):
    y = activation(batch_norm(weights, convolution(weights, x, x.shape[-1] * expand, 1))) if expand > 1 else x
    y = activation(batch_norm(weights, depthwise(weights, y, window, stride)))
    if squeeze:
        gate = jax.nn.silu(dense(weights, y.mean((1, 2)), max(1, x.shape[-1] // 4)))
        y = y * jax.nn.sigmoid(dense(weights, gate, y.shape[-1]))[:, None, None]
    y = batch_norm(weights, convolution(weights, y, features, 1))
    return x + y if y.shape == x.shape else y


def mobilenet_v2(weights, image):
    x = jax.nn.relu6(batch_norm(weights, convolution(weights, image, 32, 3, 2)))
    for expand, features, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                            (6, 320, 1, 1)):
        for i in range(count):
            x = inverted_residual(weights, x, features, stride if i == 0 else 1, expand)
    x = jax.nn.relu6(batch_norm(weights, convolution(weights, x, 1280, 1)))
    return jax.nn.softmax(dense(weights, x.mean((1, 2)), 1000))


def efficientnet(weights, image):
    x = jax.nn.silu(batch_norm(weights, convolution(weights, image, 32, 3, 2)))
    for expand, features, count, stride, window in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                                                    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(count):
            x = inverted_residual(weights, x, features, stride if i == 0 else 1, expand, window, jax.nn.silu, squeeze=True)
    x = jax.nn.silu(batch_norm(weights, convolution(weights, x, 1280, 1)))
    return dense(weights, x.mean((1, 2)), 1000)


def convnext(weights, image):
    x = layer_norm(weights, convolution(weights, image, 96, 4, 4))
    for features, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if features > 96:
            kernel = weights(2, 2, x.shape[-1], features)
            x = lax.conv_general_dilated(layer_norm(weights, x), kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        for _ in range(count):
            x = x + weights(features, scale=0.1) * mlp(weights, layer_norm(weights, depthwise(weights, x, 7)), 4 * features)
    return dense(weights, layer_norm(weights, x.mean((1, 2))), 1000)


def densenet_block(weights, x):
    for _ in range(6):
        y = convolution(weights, jax.nn.relu(batch_norm(weights, x)), 128, 1)
        x = jnp.concatenate([x, convolution(weights, jax.nn.relu(batch_norm(weights, y)), 32)], -1)
    return x


def googlenet(weights, image):
    """Branches of several windows beside each other, whose results are concatenated."""

    def layer(x, features, window=1, stride=1):
        return jax.nn.relu(batch_norm(weights, convolution(weights, x, features, window, stride)))

    def pool(x, stride):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, stride, stride, 1), "SAME")

    x = layer(layer(pool(layer(image, 64, 7, 2), 2), 64), 192, 3)
    for stage in (((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
                  ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                   (256, 160, 320, 32, 128, 128)), ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))):
        x = pool(x, 2)
        for one, few, three, fewer, five, pooled in stage:
            x = jnp.concatenate([layer(x, one), layer(layer(x, few), three, 3), layer(layer(x, fewer), five, 5), layer(pool(x, 1), pooled)], -1)
    return dense(weights, x.mean((1, 2)), 1000)


def mixer(weights, image):
    x = patches(weights, image, 16, 512)
    for _ in range(8):
        x = x + jnp.swapaxes(mlp(weights, jnp.swapaxes(layer_norm(weights, x), 1, 2), 256), 1, 2)
        x = x + mlp(weights, layer_norm(weights, x), 2048)
    return dense(weights, layer_norm(weights, x).mean(1), 1000)


def vit_small(weights, image):
    x = patches(weights, image, 16, 384)
    x = jnp.concatenate([jnp.broadcast_to(weights(1, 1, 384), (x.shape[0], 1, 384)), x], 1)
    x = x + weights(1, x.shape[1], 384, scale=0.02)
    for _ in range(6):
        x = encoder_layer(weights, x, 6)
    return dense(weights, layer_norm(weights, x[:, 0]), 1000)


def swin_blocks(weights, x):
    """Attention in windows of 7 x 7, shifted every other time."""
    n, height, width, features = x.shape
    for shift in (0, 3):
        y = jnp.roll(layer_norm(weights, x), (-shift, -shift), (1, 2))
        y = y.reshape(n, height // 7, 7, width // 7, 7, features).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 49, features)
        y = attention(weights, y, features // 32).reshape(n, height // 7, width // 7, 7, 7, features)
        x = x + jnp.roll(y.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape), (shift, shift), (1, 2))
        x = x + mlp(weights, layer_norm(weights, x), 4 * features)
    return x


def windows_of_segments(weights, x, side=14):
    """Attention in windows, biased by relative positions in height and in width, as in the encoder of Segment Anything."""
    n, height, width, features = x.shape
    heads, pixels = features // 64, side * side
    y = x.reshape(n, height // side, side, width // side, side, features).transpose(0, 1, 3, 2, 4, 5).reshape(-1, pixels, features)
    q, k, v = (heads_of(dense(weights, y, features), heads).transpose(0, 2, 1, 3) for _ in range(3))
    apart = jnp.arange(side)[:, None] - jnp.arange(side) + side - 1
    by_height, by_width = (weights(2 * side - 1, 64, scale=0.02)[apart] for _ in range(2))
    pixel_q = q.reshape(-1, heads, side, side, 64)
    scores = (q @ k.swapaxes(-1, -2) / 8).reshape(-1, heads, side, side, side, side)
    scores = scores + jnp.einsum("nhijd,ikd->nhijk", pixel_q, by_height)[..., None] + jnp.einsum("nhijd,jkd->nhijk", pixel_q, by_width)[..., None, :]
    y = (jax.nn.softmax(scores.reshape(-1, heads, pixels, pixels), -1) @ v).transpose(0, 2, 1, 3)
    y = y.reshape(n, height // side, width // side, side, side, features).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
    return dense(weights, y, features)


def time_features(step, size):
    angles = step[:, None] * jnp.exp(-jnp.log(10000.0) * jnp.arange(size // 2) / (size // 2))
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)


def unet(weights, image, step, text):
    """A small denoiser: residual blocks with the time added, attention to itself and to a text in the middle."""
    time = jax.nn.silu(dense(weights, time_features(step, 128), 256))

    def block(x, features):
        y = convolution(weights, jax.nn.silu(group_norm(weights, x)), features) + dense(weights, time, features)[:, None, None]
        y = convolution(weights, jax.nn.silu(group_norm(weights, y)), features)
        return y + (x if x.shape == y.shape else convolution(weights, x, features, 1))

    def across(x):
        rows = group_norm(weights, x).reshape(x.shape[0], -1, x.shape[-1])
        rows = rows + attention(weights, layer_norm(weights, rows), 8)
        rows = rows + attention(weights, layer_norm(weights, rows), 8, dense(weights, text, x.shape[-1]))
        return x + (rows + mlp(weights, layer_norm(weights, rows), 4 * x.shape[-1])).reshape(x.shape)

    first = convolution(weights, image, 64)
    second = convolution(weights, block(first, 64), 128, 3, 2)
    third = convolution(weights, across(block(second, 128)), 256, 3, 2)
    x = block(across(block(third, 256)), 256)
    for features, kept in ((128, second), (64, first)):
        n, height, width, channels = x.shape
        x = jax.image.resize(x, (n, 2 * height, 2 * width, channels), "nearest")
        x = block(jnp.concatenate([convolution(weights, x, features), kept], -1), features)
    return convolution(weights, jax.nn.silu(group_norm(weights, x)), 4)


def dit(weights, latent, step, label):
    x = patches(weights, latent, 2, 384)
    x = x + weights(1, x.shape[1], 384, scale=0.02)
    condition = mlp(weights, time_features(step, 384), 384, jax.nn.silu) + weights(1000, 384, scale=0.02)[label]
    for _ in range(6):
        shift, scale, gate, shift_2, scale_2, gate_2 = jnp.split(dense(weights, jax.nn.silu(condition), 6 * 384)[:, None], 6, -1)
        x = x + gate * attention(weights, layer_norm(weights, x) * (1 + scale) + shift, 6)
        x = x + gate_2 * mlp(weights, layer_norm(weights, x) * (1 + scale_2) + shift_2, 1536)
    return dense(weights, layer_norm(weights, x), 16)


def kept_boxes(boxes, scores, count=100):
    """Greedy suppression of overlapping boxes: the indices of those that stay, -1 behind them."""
    order = jnp.argsort(-scores)
    boxes = boxes[order]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    def step(i, alive):
        low = jnp.maximum(boxes[i, :2], boxes[:, :2])
        high = jnp.minimum(boxes[i, 2:], boxes[:, 2:])
        common = jnp.prod(jnp.maximum(high - low, 0), -1)
        overlap = common / (area[i] + area - common + 1e-9)
        return alive & ~(alive[i] & (overlap > 0.5) & (jnp.arange(alive.shape[0]) > i))

    alive = lax.fori_loop(0, boxes.shape[0], step, jnp.ones(boxes.shape[0], bool))
    place = jnp.where(alive, jnp.cumsum(alive) - 1, count)
    return jnp.full(count, -1).at[place].set(order, mode="drop")


def detector(weights, image):
    """A pyramid of features, heads on each level, the best 1,000 anchors, suppression."""
    x = jax.nn.relu(batch_norm(weights, convolution(weights, image, 32, 3, 2)))
    levels = []
    for features in (64, 128, 256):
        x = jax.nn.relu(batch_norm(weights, convolution(weights, x, features, 3, 2)))
        x = x + jax.nn.relu(batch_norm(weights, convolution(weights, x, features)))
        levels.append(convolution(weights, x, 128, 1))
    for i in (1, 0):
        levels[i] = levels[i] + jax.image.resize(levels[i + 1], levels[i].shape, "nearest")
    rows = []
    for level in levels:
        x = jax.nn.relu(convolution(weights, level, 128))
        x = convolution(weights, x, 6 * 24)
        rows.append(x.reshape(-1, 24))
    rows = jnp.concatenate(rows)
    scores, best = lax.top_k(jax.nn.sigmoid(rows[:, 4:].max(-1)), 1000)
    corner, size = rows[best, :2] * 50, jnp.exp(jnp.clip(rows[best, 2:4], -2, 2)) * 20
    boxes = jnp.concatenate([corner - size / 2, corner + size / 2], -1)
    # Scores that are equal but for rounding change places: what is compared does not depend on their order.
    return jnp.sort(boxes, 0), scores, (kept_boxes(boxes, scores) >= 0).mean()


def generator(weights, noise):
    """Transposed convolutions from a vector to an image."""
    x = jax.nn.relu(batch_norm(weights, dense(weights, noise, 4 * 4 * 256).reshape(-1, 4, 4, 256)))
    for features in (128, 64, 32, 3):
        x = lax.conv_transpose(x, weights(4, 4, x.shape[-1], features), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(batch_norm(weights, x)) if features > 3 else jnp.tanh(x)
    return x


def segmentation(weights, image):
    """Windows of several distances side by side, as large as the image in the end."""
    x = jax.nn.relu(batch_norm(weights, convolution(weights, image, 64, 3, 2)))
    for features in (64, 128):
        x = jax.nn.relu(batch_norm(weights, convolution(weights, x, features, 3, 2)))
    views = [convolution(weights, x, 64, 1)]
    for far in (2, 4, 8):
        views.append(lax.conv_general_dilated(x, weights(3, 3, x.shape[-1], 64), (1, 1), "SAME", rhs_dilation=(far, far),
                                              dimension_numbers=("NHWC", "HWIO", "NHWC")))
    views.append(jnp.broadcast_to(dense(weights, x.mean((1, 2), keepdims=True), 64), views[0].shape))
    x = jax.nn.relu(batch_norm(weights, jnp.concatenate(views, -1)))
    x = convolution(weights, x, 21, 1)
    return jax.nn.log_softmax(jax.image.resize(x, (x.shape[0], *image.shape[1:3], 21), "bilinear"))


def resnet(weights, image):
    x = jax.nn.relu(batch_norm(weights, convolution(weights, image, 64, 7, 2)))
    x = lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for features, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = jax.nn.relu(batch_norm(weights, convolution(weights, x, features, 3, stride)))
        y = batch_norm(weights, convolution(weights, y, features))
        kept = x if x.shape == y.shape else batch_norm(weights, convolution(weights, x, features, 1, stride))
        x = jax.nn.relu(y + kept)
    return dense(weights, x.mean((1, 2)), 1000)


def grouped_bottleneck(weights, x, inner, features, stride, groups, squeeze):
    y = jax.nn.relu(batch_norm(weights, convolution(weights, x, inner, 1)))
    y = jax.nn.relu(batch_norm(weights, convolution(weights, y, inner, 3, stride, groups)))
    if squeeze:
        gate = jax.nn.relu(dense(weights, y.mean((1, 2)), x.shape[-1] // 4))
        y = y * jax.nn.sigmoid(dense(weights, gate, inner))[:, None, None]
    y = batch_norm(weights, convolution(weights, y, features, 1))
    kept = x if x.shape == y.shape else batch_norm(weights, convolution(weights, x, features, 1, stride))
    return jax.nn.relu(y + kept)


def regnet(width, stages, squeeze):
    """Groups of `width` features in each window's convolution."""
    def network(weights, image):
        x = jax.nn.relu(batch_norm(weights, convolution(weights, image, 32, 3, 2)))
        for features, count in stages:
            for i in range(count):
                x = grouped_bottleneck(weights, x, features, features, 1 if i else 2, features // width, squeeze)
        return dense(weights, x.mean((1, 2)), 1000)
    return network


def resnext(weights, image):
    x = jax.nn.relu(batch_norm(weights, convolution(weights, image, 64, 7, 2)))
    x = lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for features, count, stride in ((256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2)):
        for i in range(count):
            x = grouped_bottleneck(weights, x, features // 2, features, 1 if i else stride, 32, False)
    return dense(weights, x.mean((1, 2)), 1000)


def normal_relu(weights, x):
    return jax.nn.relu(batch_norm(weights, x))


def shuffle_unit(weights, x, features, stride):
    half = features // 2
    left, right = (x, x) if stride > 1 else jnp.split(x, 2, -1)
    if stride > 1:
        left = normal_relu(weights, convolution(weights, batch_norm(weights, depthwise(weights, left, 3, stride)), half, 1))
    right = normal_relu(weights, convolution(weights, right, half, 1))
    right = normal_relu(weights, convolution(weights, batch_norm(weights, depthwise(weights, right, 3, stride)), half, 1))
    return jnp.stack([left, right], -1).reshape(*left.shape[:-1], features)


def shufflenet(weights, image):
    x = normal_relu(weights, convolution(weights, image, 24, 3, 2))
    x = lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for features, count in ((116, 4), (232, 8), (464, 4)):
        for i in range(count):
            x = shuffle_unit(weights, x, features, 1 if i else 2)
    return dense(weights, normal_relu(weights, convolution(weights, x, 1024, 1)).mean((1, 2)), 1000)


def separable(weights, image):
    """Depthwise windows of two features a channel."""
    x = normal_relu(weights, convolution(weights, image, 32, 3, 2))
    for features, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)):
        x = batch_norm(weights, convolution(weights, x, 2 * x.shape[-1], 3, stride, groups=x.shape[-1]))
        x = normal_relu(weights, convolution(weights, x, features, 1))
    return dense(weights, x.mean((1, 2)), 1000)


def eegnet(weights, signals):
    """[trials, electrodes, samples, 1]: a filter in time, weights of the electrodes for each of its features, a filter in time again."""
    def filtered(x, window, features, groups=1):
        kernel = weights(*window, x.shape[-1] // groups, features)
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME" if window[0] == 1 else "VALID", feature_group_count=groups,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    x = batch_norm(weights, filtered(signals, (1, 64), 8))
    x = jax.nn.elu(batch_norm(weights, filtered(x, (signals.shape[1], 1), 16, 8)))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 1, 4, 1), (1, 1, 4, 1), "VALID") / 4
    x = jax.nn.elu(batch_norm(weights, filtered(filtered(x, (1, 16), 16, 16), (1, 1), 16)))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 1, 8, 1), (1, 1, 8, 1), "VALID") / 8
    return jax.nn.softmax(dense(weights, x.reshape(x.shape[0], -1), 4))


REGNET_Y_400M = regnet(8, ((48, 1), (104, 3), (208, 6), (440, 6)), True)
REGNET_X_1600M = regnet(24, ((72, 2), (168, 4), (408, 10), (912, 2)), False)

NETWORKS = {
    "mobilenet_v2": (mobilenet_v2, IMAGE),
    "efficientnet": (efficientnet, IMAGE),
    "convnext": (convnext, IMAGE),
    "densenet_block": (densenet_block, ((4, 56, 56, 64), F32)),
    "googlenet": (googlenet, IMAGE),
    "mixer": (mixer, IMAGE),
    "vit_small": (vit_small, IMAGE),
    "swin_blocks": (swin_blocks, ((1, 56, 56, 96), F32)),
    "windows_of_segments": (windows_of_segments, ((1, 56, 56, 384), F32)),
    "windows_of_segments_bf16": (windows_of_segments, ((1, 56, 56, 384), jnp.bfloat16), jnp.bfloat16),
    "unet": (unet, ((2, 64, 64, 4), F32), ((2,), F32), ((2, 77, 256), F32)),
    "dit": (dit, ((2, 32, 32, 4), F32), ((2,), F32), ((2,), jnp.int32)),
    "generator": (generator, ((4, 128), F32)),
    "segmentation": (segmentation, ((1, 256, 256, 3), F32)),
    "resnet": (resnet, IMAGE),
    "resnet_bf16": (resnet, (IMAGE[0], jnp.bfloat16), jnp.bfloat16),
    "vit_small_bf16": (vit_small, (IMAGE[0], jnp.bfloat16), jnp.bfloat16),
    "regnet_y": (REGNET_Y_400M, IMAGE),
    "regnet_y_bf16": (REGNET_Y_400M, (IMAGE[0], jnp.bfloat16), jnp.bfloat16),
    "regnet_x": (REGNET_X_1600M, IMAGE),
    "resnext": (resnext, IMAGE),
    "shufflenet": (shufflenet, IMAGE),
    "separable": (separable, IMAGE),
    "eegnet": (eegnet, ((16, 22, 256, 1), F32)),
    "detector": (detector, ((1, 256, 256, 3), F32)),
}
