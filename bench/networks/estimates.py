"""Simulations, estimates, filters and small games, as programs of JAX are written. NETWORKS has them by name."""

import jax
import jax.numpy as jnp
from jax import lax, random

F32, S32 = jnp.float32, jnp.int32


def option_price(_, strikes):
    def step(carry, key):
        log_price, low = carry
        log_price = log_price + 0.0002 + 0.02 * random.normal(key, (20000,))
        return (log_price, jnp.minimum(low, log_price)), None

    (last, low), _ = lax.scan(step, (jnp.zeros(20000), jnp.zeros(20000)), random.split(random.PRNGKey(0), 50))
    payoff = jnp.maximum(jnp.exp(last)[:, None] - (1 + 0.1 * strikes), 0) * (low > -0.1)[:, None]
    return payoff.mean(0)


def hamiltonian(_, x, y):
    labels = (y > 0).astype(F32)

    def energy(w):
        logits = x @ w
        return jnp.sum(jnp.logaddexp(0.0, logits) - labels * logits) + 0.5 * jnp.sum(w * w)

    gradient = jax.grad(energy)

    def sample(carry, key):
        w, accepted = carry
        a, b = random.split(key)
        p = random.normal(a, w.shape)

        def leap(_, state):
            w, p = state
            p = p - 0.005 * gradient(w)
            w = w + 0.01 * p
            return w, p - 0.005 * gradient(w)

        nw, np_ = lax.fori_loop(0, 10, leap, (w, p))
        rise = energy(nw) + 0.5 * jnp.sum(np_ * np_) - energy(w) - 0.5 * jnp.sum(p * p)
        take = jnp.log(random.uniform(b)) < -rise
        return (jnp.where(take, nw, w), accepted + take), nw

    return lax.scan(sample, (jnp.zeros(x.shape[1]), 0), random.split(random.PRNGKey(2), 50))


def advantages(_, rewards, values, ends):
    alive = 1.0 - (ends > 1).astype(F32)

    def step(carry, at):
        later, advantage = carry
        reward, value, alive = at
        advantage = reward + 0.99 * later * alive - value + 0.95 * 0.99 * alive * advantage
        return (value, advantage), advantage

    zeros = jnp.zeros(rewards.shape[1])
    return lax.scan(step, (zeros, zeros), (rewards, values, alive), reverse=True)[1]


def cart_pole(weights, start):
    w1, w2 = weights(4, 32), weights(32, 2)

    def step(state, _):
        x, v, a, w = jnp.moveaxis(state, -1, 0)
        force = jnp.where(jnp.argmax(jnp.tanh(state @ w1) @ w2, -1) == 1, 10.0, -10.0)
        push = (force + 0.05 * w * w * jnp.sin(a)) / 1.1
        turn = (9.8 * jnp.sin(a) - jnp.cos(a) * push) / (0.5 * (4 / 3 - 0.1 * jnp.square(jnp.cos(a)) / 1.1))
        acceleration = push - 0.05 * turn * jnp.cos(a) / 1.1
        after = jnp.stack([x + 0.02 * v, v + 0.02 * acceleration, a + 0.02 * w, w + 0.02 * turn], -1)
        fell = (jnp.abs(after[:, 0]) > 2.4) | (jnp.abs(after[:, 2]) > 0.2)
        return jnp.where(fell[:, None], 0.01 * start, after), fell

    last, fell = lax.scan(step, 0.01 * start, None, length=100)
    return last, fell.sum(0)


def value_iteration(_, rewards, moves):
    chances = jax.nn.softmax(moves, -1)

    def change(state):
        values, _, trips = state
        new = jnp.max(rewards + 0.95 * jnp.einsum("sat,t->sa", chances, values), 1)
        return new, jnp.max(jnp.abs(new - values)), trips + 1

    return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 500), change, (jnp.zeros(rewards.shape[0]), jnp.float32(1), 0))


def q_learning(_, rewards):
    def step(carry, key):
        table, at = carry
        a, b, c = random.split(key, 3)
        greedy = jnp.argmax(table[at])
        action = jnp.where(random.uniform(a) < 0.1, random.randint(b, (), 0, 4), greedy)
        after = (at * 5 + action * 7 + random.randint(c, (), 0, 3)) % 100
        target = rewards[after] + 0.9 * table[after].max()
        return (table.at[at, action].add(0.1 * (target - table[at, action])), after), target

    return lax.scan(step, (jnp.zeros((100, 4)), 0), random.split(random.PRNGKey(3), 2000))


def interpolation(_, x, heights):
    return jnp.interp(x, jnp.linspace(-3, 3, heights.shape[0]), heights)


def percentiles(_, x):
    return jnp.percentile(x, jnp.array([5.0, 25, 50, 75, 95]), axis=0), jnp.median(x, axis=1)


def distinct(_, x):
    values, counts = jnp.unique((x + 37 * jnp.arange(x.shape[0])) % 60, size=64, return_counts=True, fill_value=-1)
    return values, counts, jnp.bincount(x, length=16)


def histogram_2d(_, x, y):
    return jnp.histogram2d(x, y, bins=32, range=((-3, 3), (-3, 3)))[0]


def convolve(_, x, taps):
    return jnp.convolve(x, taps, mode="same")


def rotated(_, image):
    n = image.shape[0]
    rows, columns = jnp.meshgrid(jnp.arange(n) - n / 2, jnp.arange(n) - n / 2, indexing="ij")
    at = [0.9 * rows - 0.43 * columns + n / 2, 0.43 * rows + 0.9 * columns + n / 2]
    return jax.scipy.ndimage.map_coordinates(image, at, order=1)


def resized(_, image):
    return jax.image.resize(image, (384, 384, 3), "bilinear"), jax.image.resize(image, (96, 96, 3), "cubic")


def morphology(_, image):
    grown = lax.reduce_window(image, -jnp.inf, lax.max, (5, 5), (1, 1), "SAME")
    shrunk = lax.reduce_window(image, jnp.inf, lax.min, (5, 5), (1, 1), "SAME")
    opened = lax.reduce_window(shrunk, -jnp.inf, lax.max, (5, 5), (1, 1), "SAME")
    return grown - shrunk, image - opened


def distances(_, image):
    start = jnp.where(image > 1.5, 0.0, 1e3)

    def down(before, row):
        row = jnp.minimum(row, before + 1)
        row = lax.associative_scan(jnp.minimum, row - jnp.arange(row.size)) + jnp.arange(row.size)
        return row, row

    forth = lax.scan(down, jnp.full(image.shape[1], 1e3), start)[1]
    return lax.scan(down, jnp.full(image.shape[1], 1e3), forth[:, ::-1], reverse=True)[1][:, ::-1]


def lines(_, image):
    edges = (jnp.abs(image) > 1).astype(F32)
    angles = jnp.linspace(0, jnp.pi, 90, endpoint=False)
    y, x = jnp.meshgrid(jnp.arange(64), jnp.arange(64), indexing="ij")
    cosines, sines = jnp.round(64 * jnp.cos(angles)).astype(S32), jnp.round(64 * jnp.sin(angles)).astype(S32)
    at = (x[..., None] * cosines + y[..., None] * sines + 91 * 64) // 64
    which = jnp.broadcast_to(jnp.arange(90), at.shape)
    return jnp.zeros((184, 90)).at[at, which].add(edges[..., None])


VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


def boltzmann(_, noise):
    directions = jnp.array(VELOCITIES, F32)
    shares = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]

    def step(_, f):
        density = f.sum(0)
        u = jnp.einsum("qd,qxy->dxy", directions, f) / density
        along = jnp.einsum("qd,dxy->qxy", directions, u)
        rest = density * shares * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u).sum(0))
        f = f + (rest - f) / 0.8
        return jnp.stack([jnp.roll(f[q], by, (0, 1)) for q, by in enumerate(VELOCITIES)])

    return lax.fori_loop(0, 20, step, shares * (1 + 0.01 * noise))


def maxwell(_, field):
    def step(carry, t):
        ez, hx, hy = carry
        hx = hx.at[:, :-1].add(-0.5 * (ez[:, 1:] - ez[:, :-1]))
        hy = hy.at[:-1, :].add(0.5 * (ez[1:, :] - ez[:-1, :]))
        ez = ez.at[1:, 1:].add(0.5 * (hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1]))
        ez = ez.at[64, 64].set(jnp.sin(0.1 * t))
        return (ez, hx, hy), ez[32, 32]

    return lax.scan(step, (field, jnp.zeros_like(field), jnp.zeros_like(field)), jnp.arange(100.0))


def graph_attention(weights, x, senders, receivers):
    n, number = x.shape[0], jnp.arange(senders.shape[0])
    senders, receivers = (senders + 211 * number) % n, (receivers + 97 * number) % n
    w, a, b = weights(32, 32), weights(32, 1), weights(32, 1)
    h = x @ w
    logits = jax.nn.leaky_relu((h @ a)[senders, 0] + (h @ b)[receivers, 0])
    top = jax.ops.segment_max(logits, receivers, n)
    e = jnp.exp(logits - top[receivers])
    e = e / jax.ops.segment_sum(e, receivers, n)[receivers]
    return jax.ops.segment_sum(h[senders] * e[:, None], receivers, n)


def linear_attention(_, q, k, v):
    def step(state, at):
        q, k, v = at
        state = 0.98 * state + k[:, :, None] * v[:, None, :]
        return state, jnp.einsum("hk,hkv->hv", q, state)

    return lax.scan(step, jnp.zeros((8, 32, 32)), (q, k, v))[1]


def four_bits(_, x, packed, scales):
    bits = packed.astype(jnp.uint8) * 17
    low, high = (bits & 15).astype(F32) - 8, (bits >> 4).astype(F32) - 8
    w = jnp.stack([low, high], 1).reshape(-1, low.shape[1]) * scales
    return x @ w


def jpeg(_, image):
    i = jnp.arange(8)
    basis = jnp.cos(jnp.pi * (2 * i[None] + 1) * i[:, None] / 16) * jnp.where(i == 0, jnp.sqrt(1 / 8), 0.5)[:, None]
    blocks = image.reshape(32, 8, 32, 8).transpose(0, 2, 1, 3)
    c = jnp.einsum("ui,abij,vj->abuv", basis, blocks * 100, basis)
    table = 10.0 + 4 * (i[:, None] + i)
    c = jnp.round(c / table) * table
    return jnp.einsum("ui,abuv,vj->abij", basis, c, basis).transpose(0, 2, 1, 3).reshape(256, 256)


def edges(_, image):
    p = jnp.pad(image, 1, mode="edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    size = jnp.hypot(gx, gy)
    strong, weak = size > 9, size > 6

    def grow(state):
        kept, _ = state
        near = lax.reduce_window(kept, False, lax.bitwise_or, (3, 3), (1, 1), "SAME")
        new = near & weak | kept
        return new, jnp.any(new != kept)

    return lax.while_loop(lambda s: s[1], grow, (strong, jnp.bool_(True)))[0]


def biquad(_, x, coefficients):
    b0, b1, b2, a1, a2 = 0.1 * coefficients

    def step(state, x):
        s1, s2 = state
        y = b0 * x + s1
        return (b1 * x - a1 * y + s2, b2 * x - a2 * y), y

    return lax.scan(step, (jnp.zeros(8), jnp.zeros(8)), x)[1]


def hashes(_, x):
    h = x.astype(jnp.uint32)
    for seed in (0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F):
        h = (h ^ (h >> 16)) * jnp.uint32(seed)
        h = (h << 13) | (h >> 19)
    return h, lax.population_count(h), lax.clz(h)


def checksum(_, data):
    n = jnp.arange(256, dtype=jnp.uint32)
    for _ in range(8):
        n = jnp.where(n & 1, jnp.uint32(0xEDB88320) ^ (n >> 1), n >> 1)

    def step(crc, byte):
        return n[(crc ^ byte) & 0xFF] ^ (crc >> 8), None

    return lax.scan(step, jnp.uint32(0xFFFFFFFF), (data * 29 % 256).astype(jnp.uint32))[0]


def lexicographic(_, a, b, c):
    order = jnp.lexsort((c, b, a))
    return order, a[order]


def spanning_tree(_, lengths):
    lengths = jnp.abs(lengths) + jnp.abs(lengths.T)
    n = lengths.shape[0]

    def step(carry, _):
        inside, near, total = carry
        at = jnp.argmin(jnp.where(inside, jnp.inf, near))
        total = total + near[at]
        return (inside.at[at].set(True), jnp.minimum(near, lengths[at]), total), at

    start = (jnp.zeros(n, bool).at[0].set(True), lengths[0], jnp.float32(0))
    return lax.scan(step, start, None, length=n - 1)


def inside_polygon(_, corners):
    y, x = jnp.meshgrid(jnp.linspace(-2, 2, 256), jnp.linspace(-2, 2, 256), indexing="ij")
    ahead = jnp.roll(corners, -1, 0)

    def crosses(a, b):
        above = (a[1] > y) != (b[1] > y)
        return above & (x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1] + 1e-9) + a[0])

    return jax.vmap(crosses)(corners, ahead).sum(0) % 2 == 1


def spheres(_, centers):
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, 128), jnp.linspace(-1, 1, 128), indexing="ij")
    ray = jnp.stack([x, y, jnp.ones_like(x)], -1)
    ray = ray / jnp.linalg.norm(ray, axis=-1, keepdims=True)

    def distance(p):
        return jnp.min(jnp.linalg.norm(p[..., None, :] - (centers + jnp.array([0, 0, 5.0])), axis=-1) - 0.5, -1)

    def march(_, t):
        return t + jnp.minimum(distance(ray * t[..., None]), 1.0)

    return lax.fori_loop(0, 32, march, jnp.zeros((128, 128)))


def noise(_, gradients):
    y, x = jnp.meshgrid(jnp.linspace(0, 15.9, 256), jnp.linspace(0, 15.9, 256), indexing="ij")
    yi, xi = y.astype(S32), x.astype(S32)
    fy, fx = y - yi, x - xi

    def corner(dy, dx):
        g = gradients[(yi + dy) % 16, (xi + dx) % 16]
        return g[..., 0] * (fx - dx) + g[..., 1] * (fy - dy)

    smooth = lambda t: t * t * t * (t * (t * 6 - 15) + 10)  # noqa: E731
    u, v = smooth(fx), smooth(fy)
    top = corner(0, 0) * (1 - u) + corner(0, 1) * u
    return top * (1 - v) + (corner(1, 0) * (1 - u) + corner(1, 1) * u) * v


def annealing(_, towns):
    n = towns.shape[0]

    def length(tour):
        at = towns[tour]
        return jnp.linalg.norm(at - jnp.roll(at, 1, 0), axis=1).sum()

    def step(carry, key):
        tour, cost = carry
        a, b, c = random.split(key, 3)
        i, j = jnp.sort(random.randint(a, (2,), 0, n))
        places = jnp.arange(n)
        new = tour[jnp.where((places >= i) & (places <= j), i + j - places, places)]
        price = length(new)
        take = (price < cost) | (random.uniform(b) < 0.01)
        return (jnp.where(take, new, tour), jnp.where(take, price, cost)), None

    return lax.scan(step, (jnp.arange(n), length(jnp.arange(n))), random.split(random.PRNGKey(4), 500))[0]


def sand_pile(_, heights):
    def topple(state):
        h, _ = state
        over = h >= 4
        give = over.astype(S32)
        padded = jnp.pad(give, 1)
        h = h - 4 * give + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return h, jnp.any(h >= 4)

    return lax.while_loop(lambda s: s[1], topple, (heights, jnp.bool_(True)))[0]


def predator(_, start):
    def step(state, _):
        def slope(s):
            a, b = s
            return jnp.stack([1.1 * a - 0.4 * a * b, 0.1 * a * b - 0.4 * b])

        k1 = slope(state)
        k2 = slope(state + 0.005 * k1)
        k3 = slope(state + 0.005 * k2)
        k4 = slope(state + 0.01 * k3)
        state = state + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state

    return lax.scan(step, 1 + 0.1 * jnp.abs(start), None, length=1000)[1]


def scan_of_blocks(weights, x):
    layers = [jnp.stack([weights(*s) for _ in range(8)]) for s in ((64, 192), (64, 64), (64, 256), (256, 64))]

    def block(x, layer):
        qkv, out, up, down = layer
        h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        q, k, v = (t.reshape(64, 4, 16) for t in jnp.split(h @ qkv, 3, -1))
        s = jnp.einsum("qhd,khd->hqk", q, k) / 4
        s = jnp.where(jnp.tril(jnp.ones((64, 64), bool)), s, -1e9)
        x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(s), v).reshape(64, 64) @ out
        h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(h @ up) @ down, None

    return lax.scan(block, x, tuple(layers))[0]


NETWORKS = {
    "option_price": (option_price, ((16,), F32)),
    "hamiltonian": (hamiltonian, ((200, 20), F32), ((200,), F32)),
    "advantages": (advantages, *[((1000, 64), F32)] * 3),
    "cart_pole": (cart_pole, ((256, 4), F32)),
    "value_iteration": (value_iteration, ((200, 8), F32), ((200, 8, 200), F32)),
    "q_learning": (q_learning, ((100,), F32)),
    "interpolation": (interpolation, ((100000,), F32), ((1000,), F32)),
    "percentiles": (percentiles, ((1000, 200), F32)),
    "distinct": (distinct, ((10000,), S32)),
    "histogram_2d": (histogram_2d, ((20000,), F32), ((20000,), F32)),
    "convolve": (convolve, ((4096,), F32), ((129,), F32)),
    "rotated": (rotated, ((256, 256), F32)),
    "resized": (resized, ((224, 224, 3), F32)),
    "morphology": (morphology, ((512, 512), F32)),
    "distances": (distances, ((128, 128), F32)),
    "lines": (lines, ((64, 64), F32)),
    "boltzmann": (boltzmann, ((9, 128, 128), F32)),
    "maxwell": (maxwell, ((128, 128), F32)),
    "graph_attention": (graph_attention, ((2000, 32), F32), ((10000,), S32), ((10000,), S32)),
    "linear_attention": (linear_attention, *[((256, 8, 32), F32)] * 3),
    "four_bits": (four_bits, ((32, 1024), F32), ((512, 1024), S32), ((1024,), F32)),
    "jpeg": (jpeg, ((256, 256), F32)),
    "edges": (edges, ((256, 256), F32)),
    "biquad": (biquad, ((10000, 8), F32), ((5, 8), F32)),
    "hashes": (hashes, ((1000000,), S32)),
    "checksum": (checksum, ((4096,), S32)),
    "lexicographic": (lexicographic, *[((10000,), S32)] * 3),
    "spanning_tree": (spanning_tree, ((256, 256), F32)),
    "inside_polygon": (inside_polygon, ((50, 2), F32)),
    "spheres": (spheres, ((8, 3), F32)),
    "noise": (noise, ((16, 16, 2), F32)),
    "annealing": (annealing, ((100, 2), F32)),
    "sand_pile": (sand_pile, ((64, 64), S32)),
    "predator": (predator, ((2, 100), F32)),
    "scan_of_blocks": (scan_of_blocks, ((64, 64), F32)),
}
