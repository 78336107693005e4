"""Loops of science and statistics: stencils, particles, filters, optimisers and solvers, and layers that lie stacked in one array."""

import jax
import jax.numpy as jnp
from jax import lax
from layers import attend, heads_of

F32, S32 = jnp.float32, jnp.int32


def heat(_, u):
    """A plate whose edges meet."""
    def step(_, u):
        return u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)
    return lax.fori_loop(0, 100, step, u)


def waves(_, height, speed):
    """Still water around a pool."""
    def step(_, state):
        height, speed = state
        wide = jnp.pad(height, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        speed = speed + 0.1 * (around - 4 * height)
        return height + 0.1 * speed, speed
    return lax.fori_loop(0, 100, step, (height, speed))


def life(_, cells):
    def step(_, cells):
        around = sum(jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((around == 3) | ((around == 2) & (cells > 0))).astype(cells.dtype)
    return lax.fori_loop(0, 51, step, (cells > 0).astype(F32))


def lattice(_, flows):
    """A gas on a grid: flows in nine directions move on, then mix."""
    directions = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    shares = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4

    def step(_, flows):
        moved = jnp.stack([jnp.roll(flow, to, (0, 1)) for flow, to in zip(flows, directions)])
        mass = moved.sum(0)
        x, y = (sum(flow * to[axis] for flow, to in zip(moved, directions)) / mass for axis in (0, 1))
        rest = jnp.stack([share * mass * (1 + 3 * (to[0] * x + to[1] * y)) for share, to in zip(shares, directions)])
        return moved + 0.5 * (rest - moved)
    return lax.fori_loop(0, 20, step, jnp.abs(flows) + 1)


def particles(_, places, speeds, masses):
    def step(_, state):
        places, speeds = state
        apart = places[None] - places[:, None]
        pull = (apart * (jnp.abs(masses) * (jnp.square(apart).sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)
        speeds = speeds + 0.001 * pull
        return places + 0.001 * speeds, speeds
    return lax.fori_loop(0, 10, step, (places, speeds))


def logistic_regression(_, x, y):
    def step(_, weights):
        return weights - 0.1 * x.T @ (jax.nn.sigmoid(x @ weights) - (y > 0)) / x.shape[0]
    return lax.fori_loop(0, 50, step, jnp.zeros(x.shape[1]))


def conjugate_gradients(_, a, b):
    matrix = a @ a.T / a.shape[0] + jnp.eye(a.shape[0])

    def step(_, state):
        x, rest, direction, square = state
        image = matrix @ direction
        length = square / (direction @ image)
        rest = rest - length * image
        return x + length * direction, rest, rest + rest @ rest / square * direction, rest @ rest
    return lax.fori_loop(0, 20, step, (jnp.zeros_like(b), b, b, b @ b))[0]


def neural_ode(weights, x):
    """Runge and Kutta's steps through a small network, whose weights each step reads four times."""
    wide, narrow = weights(64, 128), weights(128, 64)

    def slope(x):
        return jnp.tanh(x @ wide) @ narrow

    def step(_, x):
        a = slope(x)
        b = slope(x + 0.05 * a)
        c = slope(x + 0.05 * b)
        return x + 0.1 / 6 * (a + 2 * b + 2 * c + slope(x + 0.1 * c))
    return lax.fori_loop(0, 20, step, x)


def kalman(weights, seen):
    motion, view = jnp.eye(4) + 0.1 * weights(4, 4), weights(2, 4)

    def step(state, seen):
        x, spread = state
        x, spread = motion @ x, motion @ spread @ motion.T + 0.01 * jnp.eye(4)
        noise = view @ spread @ view.T + 0.1 * jnp.eye(2)
        inverse = jnp.array([[1, -1], [-1, 1]]) * noise[::-1, ::-1] / (noise[0, 0] * noise[1, 1] - noise[0, 1] * noise[1, 0])
        gain = spread @ view.T @ inverse
        x = x + gain @ (seen - view @ x)
        return (x, spread - gain @ view @ spread), x
    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)[1]


def hidden_markov(weights, seen):
    moves, shows = jax.nn.log_softmax(weights(64, 64)), jax.nn.log_softmax(weights(64, 10))

    def step(belief, symbol):
        return jax.nn.logsumexp(belief[:, None] + moves, 0) + shows[:, symbol], None
    return lax.scan(step, jnp.zeros(64), seen)[0]


def page_rank(_, links):
    source = (links[0] * 1103 + jnp.arange(links.shape[1]) * 7) % 5000
    target = (links[1] * 907 + jnp.arange(links.shape[1]) * 13) % 5000
    degree = jnp.maximum(jax.ops.segment_sum(jnp.ones(source.shape), source, 5000), 1)

    def step(_, rank):
        return 0.15 / 5000 + 0.85 * jax.ops.segment_sum((rank / degree)[source], target, 5000)
    return lax.fori_loop(0, 20, step, jnp.full(5000, 1 / 5000))


def complex_products(_, a, b):
    z = lax.complex(a, b)
    y = z @ z.T.conj()
    return y.real, y.imag, jnp.abs(jnp.exp(z * 0.1j))


def prices(_, seed):
    """Of an option, by chance."""
    steps = jax.random.normal(jax.random.key(seed[0]), (256, 4096))
    paths = jnp.exp(jnp.cumsum(0.01 * steps + 0.0001, 0))
    return jnp.maximum(paths.mean(0) * 100 - 100, 0).mean()


def stacked_layers(weights, x):
    """A transformer whose layers a loop takes from one array each."""
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def layer(x, arrays):
        q, k, v, o, wide, narrow = arrays
        y = norm(x)
        x = x + attend(*(heads_of(y @ w, 4) for w in (q, k, v))).reshape(x.shape) @ o
        return x + jax.nn.gelu(norm(x) @ wide) @ narrow, None
    square = [weights(4, 256, 256, scale=1 / 16) for _ in range(4)]
    return lax.scan(layer, x, (*square, weights(4, 256, 1024, scale=1 / 16), weights(4, 1024, 256, scale=1 / 32)))[0]


def edit_distance(_, a, b):
    """Rows of the table of distances between two texts; what is inserted runs along a row."""
    places = jnp.arange(b.size + 1)

    def row(state, symbol):
        number, before = state
        changed = jnp.minimum(before[:-1] + (symbol != b), before[1:] + 1)
        return (number + 1, lax.cummin(jnp.concatenate([number[None] + 1, changed]) - places) + places), None
    return lax.scan(row, (jnp.int32(0), places), a)[0][1]


def mandelbrot(_, x):
    c = lax.complex(x * 0.5 - 0.5, jnp.roll(x, 7) * 0.5)

    def step(_, state):
        z, steps = state
        z = z * z + c
        stays = z.real ** 2 + z.imag ** 2 < 4
        return jnp.where(stays, z, 2.0), steps + stays
    return lax.fori_loop(0, 40, step, (jnp.zeros_like(c), jnp.zeros(x.shape, S32)))[1]


def lorenz(_, x):
    """Many weathers, by Runge and Kutta's method."""
    def change(x):
        return jnp.stack([10 * (x[:, 1] - x[:, 0]), x[:, 0] * (28 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8 / 3 * x[:, 2]], 1)

    def step(_, x):
        first = change(x)
        second = change(x + 0.0005 * first)
        third = change(x + 0.0005 * second)
        return x + 0.001 / 6 * (first + 2 * second + 2 * third + change(x + 0.001 * third))
    return lax.fori_loop(0, 200, step, x)


def bilateral(_, x):
    """A mean of neighbours that are alike."""
    around = jnp.pad(x, 2)
    total = weights = 0.0
    for i in range(5):
        for j in range(5):
            y = around[i:i + x.shape[0], j:j + x.shape[1]]
            weight = jnp.exp(-((i - 2) ** 2 + (j - 2) ** 2) / 4 - 2 * (y - x) ** 2)
            total, weights = total + weight * y, weights + weight
    return total / weights


def fields(_, x):
    """Electric and magnetic ones, on grids half a step apart."""
    def step(_, state):
        e, h, g = state
        h = h.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
        g = g.at[:-1].add(0.5 * (e[1:] - e[:-1]))
        return e.at[1:-1, 1:-1].add(0.5 * (g[1:-1, 1:-1] - g[:-2, 1:-1] - h[1:-1, 1:-1] + h[1:-1, :-2])), h, g
    return lax.fori_loop(0, 50, step, tuple(x))


def adam(_, arrays):
    x, gradient, mean, square = arrays
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * jnp.abs(square) + 0.001 * gradient ** 2
    scale = jnp.minimum(1, 1 / jnp.linalg.norm(gradient))
    return x - 0.001 * scale * mean / (jnp.sqrt(square) + 1e-8), mean, square


def rows_of_gradients(weights, rows, gradients):
    """Adagrad of an embedding table."""
    table, sums = weights(50000, 64), jnp.abs(weights(50000))
    rows = (rows * 4999 + 3 * jnp.arange(rows.size)) % 50000
    sums = sums.at[rows].add((gradients ** 2).mean(1))
    return table.at[rows].add(-0.1 * gradients * lax.rsqrt(sums[rows] + 1e-6)[:, None]), sums


def long_spectrum(_, x):
    return jnp.abs(jnp.fft.fft(x)) / x.size ** 0.5


def covariance(_, points):
    centred = points - points.mean(0)
    return centred.T @ centred / (len(points) - 1)


def redundancy(_, points):
    """What features of a batch have in common (VICReg)."""
    shared = covariance(_, points)
    return jnp.where(jnp.eye(len(shared), dtype=bool), 0, jnp.square(shared)).sum() / len(shared)


def style(_, features):
    """Products of channels with each other, of each image."""
    flat = features.reshape(features.shape[0], -1, features.shape[-1])
    return jnp.einsum("bpi,bpj->bij", flat, flat) / flat.shape[1]


def orthogonalised(_, gradient):
    """Five steps of Newton and Schulz, as in Muon."""
    x = gradient / jnp.linalg.norm(gradient)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x


def gaussian_kernel(_, points):
    lengths = jnp.square(points).sum(-1)
    return jnp.exp(-0.01 * (lengths[:, None] + lengths - 2 * points @ points.T))


GRID = ((512, 512), F32)
NETWORKS = {
    "heat": (heat, GRID),
    "waves": (waves, GRID, GRID),
    "life": (life, GRID),
    "lattice": (lattice, ((9, 128, 128), F32)),
    "particles": (particles, ((1024, 3), F32), ((1024, 3), F32), ((1024,), F32)),
    "logistic_regression": (logistic_regression, ((8192, 64), F32), ((8192,), F32)),
    "conjugate_gradients": (conjugate_gradients, GRID, ((512,), F32)),
    "neural_ode": (neural_ode, ((512, 64), F32)),
    "kalman": (kalman, ((1000, 2), F32)),
    "hidden_markov": (hidden_markov, ((1000,), S32)),
    "page_rank": (page_rank, ((2, 50000), S32)),
    "complex_products": (complex_products, ((256, 256), F32), ((256, 256), F32)),
    "prices": (prices, ((1,), S32)),
    "stacked_layers": (stacked_layers, ((2, 128, 256), F32)),
    "edit_distance": (edit_distance, ((256,), S32), ((256,), S32)),
    "mandelbrot": (mandelbrot, GRID),
    "lorenz": (lorenz, ((4096, 3), F32)),
    "bilateral": (bilateral, GRID),
    "fields": (fields, ((3, 200, 200), F32)),
    "adam": (adam, ((4, 1 << 20), F32)),
    "rows_of_gradients": (rows_of_gradients, ((4096,), S32), ((4096, 64), F32)),
    "long_spectrum": (long_spectrum, ((1 << 18,), F32)),
    "covariance": (covariance, ((4096, 512), F32)),
    "redundancy": (redundancy, ((2048, 512), F32)),
    "style": (style, ((8, 56, 56, 128), F32)),
    "orthogonalised": (orthogonalised, ((512, 1024), F32)),
    "gaussian_kernel": (gaussian_kernel, ((2048, 64), F32)),
}
