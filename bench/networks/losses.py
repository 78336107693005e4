"""Losses, flows, policies, samplers and special functions, as programs of JAX are written. NETWORKS has them by name."""

import jax
import jax.numpy as jnp
from jax import lax, random

F32, S32 = jnp.float32, jnp.int32


def special(_, x):
    a = jnp.abs(x) + 0.1
    return (jax.scipy.special.gammaln(a), jax.scipy.special.digamma(a), jax.scipy.special.erfinv(jnp.tanh(x)),
            jax.scipy.special.i0e(x), jax.scipy.special.i1e(x), jax.scipy.special.ndtri(jax.nn.sigmoid(x)))


def incomplete(_, x):
    a = jnp.abs(x) + 0.5
    return jax.scipy.special.gammainc(a, a + 0.3), jax.scipy.special.betainc(a, a + 1, jax.nn.sigmoid(x))


def samples(_, x):
    keys = random.split(random.PRNGKey(0), 5)
    return (random.permutation(keys[1], x), random.categorical(keys[2], x.reshape(100, 100)),
            random.truncated_normal(keys[3], -1, 1, (10000,)), random.gumbel(keys[4], (10000,)), random.laplace(keys[0], (10000,)))


def gammas(_, x):
    return random.gamma(random.PRNGKey(1), jnp.abs(x) + 0.5), random.poisson(random.PRNGKey(2), 3 * jnp.abs(x))


def cumulative(_, x):
    return jnp.cumprod(1 + 0.01 * x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1), jnp.diff(x, n=2, axis=0)


def blockwise_attention(_, q, k, v):
    ks, vs = k.reshape(16, 64, 64), v.reshape(16, 64, 64)

    def block(carry, kv):
        top, total, out = carry
        k, v = kv
        s = q @ k.T / 8
        new = jnp.maximum(top, s.max(1))
        p = jnp.exp(s - new[:, None])
        scale = jnp.exp(top - new)
        return (new, total * scale + p.sum(1), out * scale[:, None] + p @ v), None

    n = q.shape[0]
    (_, total, out), _ = lax.scan(block, (jnp.full(n, -jnp.inf), jnp.zeros(n), jnp.zeros_like(q)), (ks, vs))
    return out / total[:, None]


def capacity(weights, x):
    router, up, down = weights(64, 8), weights(8, 64, 128), weights(8, 128, 64)
    p = jax.nn.softmax(x @ router)
    expert = jnp.argmax(p, 1)
    hot = jax.nn.one_hot(expert, 8)
    place = (jnp.cumsum(hot, 0) * hot).sum(1).astype(S32) - 1
    kept = place < 80
    buffer = jnp.zeros((8, 80, 64)).at[expert, jnp.where(kept, place, 80)].add(x, mode="drop")
    y = jnp.einsum("ecd,edf->ecf", jax.nn.relu(jnp.einsum("ecd,edf->ecf", buffer, up)), down)
    return jnp.where(kept[:, None], y[expert, jnp.clip(place, 0, 79)], 0) * p.max(1)[:, None]


def contrast(weights, a, b):
    w = weights(256, 128)

    def loss(w):
        x, y = a @ w, b @ w
        x, y = x / jnp.linalg.norm(x, axis=1, keepdims=True), y / jnp.linalg.norm(y, axis=1, keepdims=True)
        logits = 10 * x @ y.T
        return -(jnp.diag(jax.nn.log_softmax(logits, 1)) + jnp.diag(jax.nn.log_softmax(logits, 0))).mean()

    return jax.value_and_grad(loss)(w)


def policy_step(weights, states, actions, old, advantages):
    w = [weights(32, 64), weights(64, 64), weights(64, 6), weights(64, 1)]

    def loss(w):
        h = jnp.tanh(jnp.tanh(states @ w[0]) @ w[1])
        logits, values = jax.nn.log_softmax(h @ w[2]), (h @ w[3])[:, 0]
        chosen = jnp.take_along_axis(logits, (actions % 6)[:, None], 1)[:, 0]
        ratio = jnp.exp(chosen - old * 0.1)
        policy = -jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages).mean()
        entropy = -(jnp.exp(logits) * logits).sum(1).mean()
        return policy + 0.5 * jnp.square(values - advantages).mean() - 0.01 * entropy

    grads = jax.grad(loss)(w)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads))
    return [p - 0.01 * g * jnp.minimum(1.0, 0.5 / norm) for p, g in zip(w, grads)]


def coupling_flow(weights, x):
    total = jnp.zeros(x.shape[0])
    for i in range(6):
        a, b = (x[:, :8], x[:, 8:]) if i % 2 else (x[:, 8:], x[:, :8])
        h = jax.nn.relu(a @ weights(8, 64)) @ weights(64, 16)
        s, t = jnp.tanh(h[:, :8]), h[:, 8:]
        b = b * jnp.exp(s) + t
        total = total + s.sum(1)
        x = jnp.concatenate([a, b], 1) if i % 2 else jnp.concatenate([b, a], 1)
    return x, total - 0.5 * (x * x).sum(1)


def laplacian(weights, x):
    w1, w2, w3 = weights(2, 64), weights(64, 64), weights(64, 1)

    def u(p):
        return (jnp.tanh(jnp.tanh(p @ w1) @ w2) @ w3)[0]

    def residual(p):
        return jnp.trace(jax.hessian(u)(p)) + jnp.sin(p[0]) * u(p)

    return jax.vmap(residual)(x)


def evolution(weights, x, y):
    w = weights(16, 1)[:, 0]

    def generation(w, key):
        noise = random.normal(key, (128, 16))
        fit = -jnp.square(jnp.tanh((w + 0.1 * noise) @ x.T) - y).mean(1)
        rank = jnp.argsort(jnp.argsort(fit)) / 127 - 0.5
        return w + 0.05 * rank @ noise, fit.max()

    return lax.scan(generation, w, random.split(random.PRNGKey(5), 50))


def mixture(_, x):
    def step(state, _):
        means, scales, shares = state
        logp = jnp.log(shares) - jnp.log(scales).sum(1) - 0.5 * jnp.square((x[:, None] - means) / scales).sum(2)
        r = jax.nn.softmax(logp, 1)
        n = r.sum(0)
        means = r.T @ x / n[:, None]
        spread = jnp.einsum("nk,nkd->kd", r, jnp.square(x[:, None] - means)) / n[:, None]
        return (means, jnp.sqrt(spread + 1e-3), n / x.shape[0]), None

    start = (x[:8], jnp.ones((8, 4)), jnp.full(8, 1 / 8))
    return lax.scan(step, start, None, length=20)[0]


def word_vectors(weights, centers, contexts, others):
    a, b = weights(1000, 64), weights(1000, 64)
    number = jnp.arange(512)
    centers, contexts = (centers + 97 * number) % 1000, (contexts + 89 * number) % 1000
    others = (others + 83 * number[:, None] + 7 * jnp.arange(5)) % 1000

    def loss(ab):
        c, o, n = ab[0][centers], ab[1][contexts], ab[1][others]
        return -(jax.nn.log_sigmoid((c * o).sum(1)) + jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", c, n)).sum(1)).mean()

    g = jax.grad(loss)((a, b))
    return a - 0.1 * g[0], b - 0.1 * g[1]


def soft_dtw(_, a, b):
    d = jnp.square(a[:, None] - b[None])
    n = a.shape[0]
    skewed = jnp.stack([jnp.pad(d[:, k], (k, n - 1 - k)) for k in range(n)], 1)

    def diagonal(carry, row):
        before, last = carry
        up = jnp.concatenate([jnp.full(1, 1e6), last[:-1]])
        both = jnp.concatenate([jnp.full(1, 1e6), before[:-1]])
        new = row - jax.scipy.special.logsumexp(-jnp.stack([up, last, both]), 0)
        return (last, new), new[-1]

    start = jnp.full(n, 1e6)
    return lax.scan(diagonal, (start.at[0].set(0), start.at[0].set(d[0, 0])), skewed[1:])[1]


def capsules(weights, x):
    u = jnp.einsum("bid,ijdk->bijk", x, weights(64, 10, 8, 16))

    def route(_, b):
        c = jax.nn.softmax(b, 2)
        s = jnp.einsum("bij,bijk->bjk", c, u)
        n = jnp.sum(s * s, -1, keepdims=True)
        v = s * n / (1 + n) / jnp.sqrt(n + 1e-6)
        return b + jnp.einsum("bijk,bjk->bij", u, v)

    return lax.fori_loop(0, 3, route, jnp.zeros(u.shape[:3]))


def automaton(weights, state):
    w1, w2 = weights(48, 64), 0.1 * weights(64, 16)
    sobel = jnp.array([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    filters = jnp.stack([jnp.zeros((3, 3)).at[1, 1].set(1), sobel, sobel.T])[:, None]

    def step(_, s):
        seen = lax.conv_general_dilated(s, jnp.tile(filters, (16, 1, 1, 1)), (1, 1), "SAME", feature_group_count=16)
        h = jax.nn.relu(jnp.einsum("nchw,cd->ndhw", seen, w1))
        return s + jnp.einsum("ndhw,dc->nchw", h, w2)

    return lax.fori_loop(0, 8, step, state)


def denoising(weights, x):
    w = [weights(3, 3, 8, 32), weights(3, 3, 32, 32), weights(3, 3, 32, 8)]

    def net(x, t):
        h = x
        for i, k in enumerate(w):
            h = lax.conv_general_dilated(h, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = jax.nn.silu(h + jnp.sin(t * (i + 1))) if i < 2 else h
        return h

    def step(x, t):
        e = net(x, t)
        x0 = (x - jnp.sqrt(t) * e) / jnp.sqrt(1 - t + 1e-3)
        return jnp.sqrt(1 - t + 0.05) * jnp.tanh(x0) + jnp.sqrt(jnp.maximum(t - 0.05, 0)) * e, None

    return lax.scan(step, x, jnp.linspace(0.95, 0.05, 10))[0]


def relative_shift(weights, x):
    wq, wk, wr = weights(64, 64), weights(64, 64), weights(256, 64)
    q, k = x @ wq, x @ wk
    r = q @ wr.T
    n = x.shape[0]
    r = jnp.pad(r, ((0, 0), (1, 0))).reshape(n + 1, n)[1:]
    s = jnp.where(jnp.tril(jnp.ones((n, n), bool)), (q @ k.T + r) / 8, -1e9)
    return jax.nn.softmax(s) @ x


def meta_learning(weights, x, y):
    w = (weights(8, 32), weights(32, 1))

    def loss(w, x, y):
        return jnp.square(jnp.tanh(x @ w[0]) @ w[1] - y).mean()

    def inner(w, x, y):
        for _ in range(3):
            w = jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w, x, y))
        return w

    def outer(w):
        return jax.vmap(lambda x, y: loss(inner(w, x[:16], y[:16]), x[16:], y[16:]))(x, y).mean()

    return jax.grad(outer)(w)


def neighbours_embedded(_, x, y):
    p = jax.nn.softmax(-jnp.square(x[:, None] - x[None]).sum(2) - 1e6 * jnp.eye(x.shape[0]))
    p = (p + p.T) / (2 * x.shape[0])

    def step(carry, _):
        y, v = carry
        apart = y[:, None] - y[None]
        q = 1 / (1 + (apart * apart).sum(2)) * (1 - jnp.eye(y.shape[0]))
        g = 4 * ((p - q / q.sum())[..., None] * q[..., None] * apart).sum(1)
        v = 0.8 * v - 10 * g
        return (y + v, v), None

    return lax.scan(step, (0.01 * y, jnp.zeros_like(y)), None, length=20)[0][0]


def grid_sampled(_, image, grid):
    h, w = image.shape[1:]
    x, y = (jnp.tanh(grid[..., 0]) + 1) * (w - 1) / 2, (jnp.tanh(grid[..., 1]) + 1) * (h - 1) / 2
    x0, y0 = jnp.floor(x).astype(S32), jnp.floor(y).astype(S32)
    out = 0.0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (1 - jnp.abs(x - (x0 + dx))) * (1 - jnp.abs(y - (y0 + dy)))
            out = out + weight * image[:, jnp.clip(y0 + dy, 0, h - 1), jnp.clip(x0 + dx, 0, w - 1)]
    return out


def factorization(weights, fields):
    table, bias = weights(2000, 16), weights(2000, 1)
    at = (fields * 97 + jnp.arange(20) * 100) % 2000
    e = table[at]
    pairs = 0.5 * (jnp.square(e.sum(1)) - jnp.square(e).sum(1)).sum(1)
    deep = jax.nn.relu(jax.nn.relu(e.reshape(-1, 320) @ weights(320, 128)) @ weights(128, 64)) @ weights(64, 1)
    return jax.nn.sigmoid(bias[at][..., 0].sum(1) + pairs + deep[:, 0])


def gaussian_splats(_, centers, colors):
    y, x = jnp.meshgrid(jnp.linspace(-2, 2, 96), jnp.linspace(-2, 2, 96), indexing="ij")

    def splat(carry, at):
        image, seen = carry
        c, color = at
        a = 0.8 * jnp.exp(-4 * ((x - c[0]) ** 2 + (y - c[1]) ** 2))
        return (image + (seen * a)[..., None] * jax.nn.sigmoid(color), seen * (1 - a)), None

    return lax.scan(splat, (jnp.zeros((96, 96, 3)), jnp.ones((96, 96))), (centers, colors))[0]


def polynomial(_, x):
    coefficients = jnp.linspace(1, -1, 12)
    v = jnp.vander(jnp.tanh(x[:512]), 6)
    return jnp.polyval(coefficients, jnp.tanh(x)), v.T @ v, jnp.trapezoid(x.reshape(100, 100)), jnp.kron(x[:32].reshape(4, 8), x[:16].reshape(4, 4))


def discrete_cosine(_, x):
    n = x.shape[1]
    v = jnp.concatenate([x[:, ::2], x[:, 1::2][:, ::-1]], 1)
    k = jnp.exp(-1j * jnp.pi * jnp.arange(n) / (2 * n))
    return (jnp.fft.fft(v) * k).real


def pooled(_, x):
    a = lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")
    n = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")
    up = jnp.repeat(jnp.repeat(a / n, 2, 2), 2, 3)
    return up, jnp.pad(x, ((0, 0), (0, 0), (3, 3), (3, 3)), mode="reflect"), lax.top_k(x.reshape(64, -1), 5)


def game_of_cards(_, x):
    """Hands of five of shuffled decks, valued."""
    keys = random.split(random.PRNGKey(6), 512)
    decks = jax.vmap(lambda k: random.permutation(k, 52))(keys)[:, :5]
    ranks, suits = decks // 4, decks % 4
    counts = jax.nn.one_hot(ranks, 13).sum(1)
    flush = (suits == suits[:, :1]).all(1)
    ordered = jnp.sort(ranks, 1)
    straight = (ordered[:, 4] - ordered[:, 0] == 4) & (counts.max(1) == 1)
    return counts.max(1) + 4.0 * flush + 3.0 * straight + 0 * x[0], jnp.sort(counts, 1)[:, -2]


NETWORKS = {
    "special": (special, ((20000,), F32)),
    "incomplete": (incomplete, ((5000,), F32)),
    "samples": (samples, ((10000,), F32)),
    "gammas": (gammas, ((5000,), F32)),
    "cumulative": (cumulative, ((512, 512), F32)),
    "blockwise_attention": (blockwise_attention, ((512, 64), F32), ((1024, 64), F32), ((1024, 64), F32)),
    "capacity": (capacity, ((512, 64), F32)),
    "contrast": (contrast, ((256, 256), F32), ((256, 256), F32)),
    "policy_step": (policy_step, ((512, 32), F32), ((512,), S32), ((512,), F32), ((512,), F32)),
    "coupling_flow": (coupling_flow, ((2000, 16), F32)),
    "laplacian": (laplacian, ((500, 2), F32)),
    "evolution": (evolution, ((64, 16), F32), ((64,), F32)),
    "mixture": (mixture, ((2000, 4), F32)),
    "word_vectors": (word_vectors, ((512,), S32), ((512,), S32), ((512, 5), S32)),
    "soft_dtw": (soft_dtw, ((128,), F32), ((128,), F32)),
    "capsules": (capsules, ((16, 64, 8), F32)),
    "automaton": (automaton, ((1, 16, 64, 64), F32)),
    "denoising": (denoising, ((2, 32, 32, 8), F32)),
    "relative_shift": (relative_shift, ((256, 64), F32)),
    "meta_learning": (meta_learning, ((8, 32, 8), F32), ((8, 32, 1), F32)),
    "neighbours_embedded": (neighbours_embedded, ((256, 16), F32), ((256, 2), F32)),
    "grid_sampled": (grid_sampled, ((16, 64, 64), F32), ((96, 96, 2), F32)),
    "factorization": (factorization, ((512, 20), S32)),
    "gaussian_splats": (gaussian_splats, ((64, 2), F32), ((64, 3), F32)),
    "polynomial": (polynomial, ((10000,), F32)),
    "discrete_cosine": (discrete_cosine, ((256, 512), F32)),
    "pooled": (pooled, ((4, 16, 64, 64), F32)),
    "game_of_cards": (game_of_cards, ((4,), F32)),
}
