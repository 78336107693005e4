"""Textbook algorithms as JAX's users write them: tables and states that loops change place by place, searches, decompositions, simulations."""

import jax
import jax.numpy as jnp
from jax import lax

F32, S32 = jnp.float32, jnp.int32


def common_subsequence(_, a, b):
    n = a.size

    def cell(k, table):
        i, j = k // n + 1, k % n + 1
        longer = jnp.maximum(table[i - 1, j], table[i, j - 1])
        return table.at[i, j].set(jnp.where(a[i - 1] == b[j - 1], table[i - 1, j - 1] + 1, longer))
    return lax.fori_loop(0, n * n, cell, jnp.zeros((n + 1, n + 1), S32))


def knapsack(_, weights, values):
    capacity = 1000

    def item(i, best):
        def room(k, best):
            left = capacity - k
            with_it = best[left - weights[i] - 1] + jnp.abs(values[i])
            return best.at[left].set(jnp.where(left > weights[i], jnp.maximum(best[left], with_it), best[left]))
        return lax.fori_loop(0, capacity, room, best)
    return lax.fori_loop(0, weights.size, item, jnp.zeros(capacity + 1))


def histogram(_, x):
    return lax.fori_loop(0, x.size, lambda i, counts: counts.at[x[i]].add(1), jnp.zeros(16, S32))


def primes(_, x):
    def strike(i, is_prime):
        multiples = (jnp.arange(is_prime.size) % i == 0) & (jnp.arange(is_prime.size) > i)
        return jnp.where(is_prime[i], is_prime & ~multiples, is_prime)
    return lax.fori_loop(2, 64, strike, jnp.arange(4096) >= 2 + 0 * x[0])


def shortest_paths(_, lengths):
    return lax.fori_loop(0, lengths.shape[0], lambda k, d: jnp.minimum(d, d[:, k, None] + d[None, k, :]), jnp.abs(lengths))


def nearest_first(_, lengths):
    """Dijkstra's."""
    n = lengths.shape[0]

    def visit(_, state):
        distance, done = state
        node = jnp.argmin(jnp.where(done, jnp.inf, distance))
        return jnp.minimum(distance, distance[node] + jnp.abs(lengths[node])), done.at[node].set(True)
    return lax.fori_loop(0, n, visit, (jnp.full(n, 1e9).at[0].set(0), jnp.zeros(n, bool)))[0]


def labels_of_components(_, image):
    """Of bright places: the least number spreads until nothing changes."""
    bright = image > -0.3
    n = image.shape[0]

    def spread(state):
        labels, _ = state
        wide = jnp.pad(labels, 1, constant_values=n * n)
        least = jnp.minimum(jnp.minimum(wide[:-2, 1:-1], wide[2:, 1:-1]), jnp.minimum(wide[1:-1, :-2], wide[1:-1, 2:]))
        new = jnp.where(bright, jnp.minimum(labels, least), n * n)
        return new, jnp.any(new != labels)
    return lax.while_loop(lambda s: s[1], spread, (jnp.where(bright, jnp.arange(n * n).reshape(n, n), n * n), True))[0]


def lower_upper(_, a):
    n = a.shape[0]
    a = a + 20 * jnp.eye(n)

    def step(k, a):
        rows = jnp.arange(n)
        factors = jnp.where(rows > k, a[:, k] / a[k, k], 0)
        a = a - factors[:, None] * jnp.where(rows >= k, a[k], 0)
        return a.at[:, k].set(jnp.where(rows > k, factors, a[:, k]))
    return lax.fori_loop(0, n, step, a)


def gram_schmidt(_, a):
    def column(j, q):
        v = q[:, j]
        earlier = jnp.where(jnp.arange(q.shape[1]) < j, q.T @ v, 0)
        v = v - q @ earlier
        return q.at[:, j].set(v / jnp.linalg.norm(v))
    return lax.fori_loop(0, a.shape[1], column, a)


def forward_substitution(_, matrix, b):
    n = b.size
    return lax.fori_loop(0, n, lambda i, x: x.at[i].set((b[i] - matrix[i] @ x) / (matrix[i, i] + 4 * n)), jnp.zeros(n))


def gauss_seidel(_, matrix, b):
    n = b.size
    matrix = matrix / n + 2 * jnp.eye(n)

    def sweep(_, x):
        return lax.fori_loop(0, n, lambda i, x: x.at[i].add((b[i] - matrix[i] @ x) / matrix[i, i]), x)
    return lax.fori_loop(0, 10, sweep, jnp.zeros(n))


def three_diagonals(_, lower, upper, b):
    """Thomas's, of many systems at once."""
    lower, upper = jnp.tanh(lower), jnp.tanh(upper)

    def down(carry, x):
        c, d = carry
        low, up, right = x
        scale = 1 / (4 - low * c)
        return (up * scale, (right - low * d) * scale), (up * scale, (right - low * d) * scale)

    def back(x, row):
        x = row[1] - row[0] * x
        return x, x
    start = (jnp.zeros_like(b[0]),) * 2
    return lax.scan(back, jnp.zeros_like(b[0]), lax.scan(down, start, (lower, upper, b))[1], reverse=True)[1]


def jacobi_rotations(_, a):
    n = a.shape[0]
    a = (a + a.T) / 2

    def rotate(k, a):
        p, q = k % n, (k + 1 + k // n) % n
        angle = 0.5 * jnp.arctan2(2 * a[p, q], a[q, q] - a[p, p])
        c, s = jnp.cos(angle), jnp.sin(angle)
        a = a.at[p].set(c * a[p] - s * a[q]).at[q].set(s * a[p] + c * a[q])
        return a.at[:, p].set(c * a[:, p] - s * a[:, q]).at[:, q].set(s * a[:, p] + c * a[:, q])
    return lax.fori_loop(0, n * 3, rotate, a)


def power_iteration(_, a):
    a = a @ a.T / a.shape[0]

    def step(_, x):
        y = a @ x
        return y / jnp.linalg.norm(y)
    return lax.fori_loop(0, 200, step, jnp.ones(a.shape[0]))


def viterbi(_, scores, moves):
    def forward(best, row):
        all_ways = best[:, None] + moves
        return all_ways.max(0) + row, all_ways.argmax(0)
    best, back = lax.scan(forward, scores[0], scores[1:])

    def trace(state, row):
        return row[state], state
    return best, lax.scan(trace, jnp.argmax(best), back, reverse=True)[1]


def connectionist_loss(_, logits, labels):
    """CTC's forward pass, in logarithms."""
    scores = jax.nn.log_softmax(logits)
    wide = jnp.zeros(2 * labels.size + 1, S32).at[1::2].set(labels + 1)
    skips = jnp.concatenate([jnp.zeros(2, bool), (wide[2:] != wide[:-2]) & (wide[2:] != 0)])
    never = -1e9

    def step(alpha, row):
        one, two = (jnp.concatenate([jnp.full(k, never), alpha[:-k]]) for k in (1, 2))
        return jnp.logaddexp(jnp.logaddexp(alpha, one), jnp.where(skips, two, never)) + row[wide], None
    start = jnp.full(wide.size, never).at[0].set(scores[0, 0]).at[1].set(scores[0, wide[1]])
    alpha = lax.scan(step, start, scores[1:])[0]
    return -jnp.logaddexp(alpha[-1], alpha[-2])


def ising(_, spins):
    """A checkerboard of spins, half after half."""
    n = spins.shape[0]
    board = (jnp.arange(n)[:, None] + jnp.arange(n)) % 2

    def sweep(k, state):
        spins, noise = state
        around = sum(jnp.roll(spins, by, axis) for by in (-1, 1) for axis in (0, 1))
        noise = (noise * 1664525 + 1013904223) & 0x7fffffff
        chance = (noise >> 8).astype(F32) / (1 << 23)
        flips = (chance < jnp.exp(-0.8 * spins * around)) & (board == k % 2)
        return jnp.where(flips, -spins, spins), noise
    noise = jnp.arange(n * n, dtype=S32).reshape(n, n)
    return lax.fori_loop(0, 100, sweep, (jnp.sign(spins), noise))[0]


def random_walks(_, x):
    def walk(key, start):
        def step(carry, key):
            proposal = carry + 0.5 * jax.random.normal(key)
            accept = jnp.log(jax.random.uniform(key)) < 0.5 * (carry ** 2 - proposal ** 2)
            carry = jnp.where(accept, proposal, carry)
            return carry, carry
        return lax.scan(step, start, jax.random.split(key, 200))[1].mean()
    return jax.vmap(walk)(jax.random.split(jax.random.key(0), x.size), x)


def queue(_, arrivals, services):
    """Customers of four tills, each of whom takes the one that is free first."""
    def customer(tills, times):
        arrival, service = times
        till = jnp.argmin(tills)
        leaves = jnp.maximum(tills[till], arrival) + service
        return tills.at[till].set(leaves), leaves - arrival
    return lax.scan(customer, jnp.zeros(4), (jnp.cumsum(jnp.abs(arrivals)), jnp.abs(services)))[1]


def ring_buffer(_, x, weights):
    """A filter over the last 64 values, which lie in a ring."""
    def step(carry, value):
        ring, at = carry
        ring = ring.at[at].set(value)
        return (ring, (at + 1) % 64), jnp.roll(ring, -at - 1) @ weights
    return lax.scan(step, (jnp.zeros(64), 0), x)[1]


def means(_, points):
    """Lloyd's k-means."""
    def step(_, centres):
        nearest = jnp.argmin(jnp.square(points[:, None] - centres).sum(-1), 1)
        counts = jnp.zeros(16).at[nearest].add(1)
        return jnp.zeros_like(centres).at[nearest].add(points) / jnp.maximum(counts, 1)[:, None]
    return lax.fori_loop(0, 10, step, points[:16])


def run_lengths(_, x):
    starts = jnp.concatenate([jnp.ones(1, bool), x[1:] // 5 != x[:-1] // 5])
    number = jnp.cumsum(starts) - 1
    return jnp.zeros(x.size, S32).at[number].add(1), jnp.zeros(x.size, S32).at[number].set(x)


def sparse_product(_, rows, columns, values, x):
    size = x.shape[0]
    rows, columns = ((index * 7919 + 31 * jnp.arange(index.size)) % size for index in (rows, columns))
    return jnp.zeros_like(x).at[rows].add(values[:, None] * x[columns])


def bisection(_, targets):
    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        is_below = middle ** 3 + middle < targets
        return jnp.where(is_below, middle, low), jnp.where(is_below, high, middle)
    return lax.fori_loop(0, 40, halve, (jnp.full_like(targets, -4), jnp.full_like(targets, 4)))[0]


def searches(_, keys, wanted):
    return jnp.searchsorted(jnp.sort(keys), wanted)


def median_filter(_, image):
    wide = jnp.pad(image, 1, mode="edge")
    n, m = image.shape
    return jnp.median(jnp.stack([wide[i:i + n, j:j + m] for i in range(3) for j in range(3)]), 0)


def beam_search(weights, start):
    """Eight beams over 1,000 words, by a little recurrent network."""
    table, mix, out = weights(1000, 64), weights(64, 64), weights(64, 1000)

    def step(carry, _):
        words, state, scores = carry
        state = jnp.tanh(state @ mix + table[words])
        all_scores = scores[:, None] + jax.nn.log_softmax(state @ out)
        scores, best = lax.top_k(all_scores.reshape(-1), 8)
        return (best % 1000, state[best // 1000], scores), (best % 1000, best // 1000)
    first = (start, jnp.zeros((8, 64)), jnp.array([0.0] + [-1e9] * 7))
    return lax.scan(step, first, None, length=20)[0][2]


def nucleus(_, logits):
    """What is left of each distribution's most likely words, by their sum."""
    values = jnp.sort(jax.nn.softmax(logits), axis=-1)[:, ::-1]
    kept = jnp.cumsum(values, -1) - values < 0.9
    least = jnp.where(kept, values, 1).min(-1, keepdims=True)
    return jnp.where(jax.nn.softmax(logits) >= least, logits, -jnp.inf)


def kept_boxes(_, boxes, scores):
    """Non-maximum suppression."""
    boxes = jnp.concatenate([boxes[:, :2], boxes[:, :2] + jnp.abs(boxes[:, 2:])], 1)[jnp.argsort(-scores)]
    low, high = jnp.maximum(boxes[:, None, :2], boxes[None, :, :2]), jnp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = jnp.prod(jnp.maximum(high - low, 0), -1)
    area = jnp.prod(boxes[:, 2:] - boxes[:, :2], -1)
    overlap = shared / (area[:, None] + area - shared + 1e-6)

    def step(i, kept):
        drops = (overlap[i] > 0.3) & (jnp.arange(kept.size) > i) & kept[i]
        return kept & ~drops
    return lax.fori_loop(0, scores.size, step, jnp.ones(scores.size, bool))


NETWORKS = {
    "common_subsequence": (common_subsequence, ((128,), S32), ((128,), S32)),
    "knapsack": (knapsack, ((20,), S32), ((20,), F32)),
    "histogram": (histogram, ((20000,), S32)),
    "primes": (primes, ((1,), S32)),
    "shortest_paths": (shortest_paths, ((256, 256), F32)),
    "nearest_first": (nearest_first, ((256, 256), F32)),
    "labels_of_components": (labels_of_components, ((128, 128), F32)),
    "lower_upper": (lower_upper, ((128, 128), F32)),
    "gram_schmidt": (gram_schmidt, ((256, 64), F32)),
    "forward_substitution": (forward_substitution, ((256, 256), F32), ((256,), F32)),
    "gauss_seidel": (gauss_seidel, ((128, 128), F32), ((128,), F32)),
    "three_diagonals": (three_diagonals, *[((256, 64), F32)] * 3),
    "jacobi_rotations": (jacobi_rotations, ((64, 64), F32)),
    "power_iteration": (power_iteration, ((256, 256), F32)),
    "viterbi": (viterbi, ((500, 32), F32), ((32, 32), F32)),
    "connectionist_loss": (connectionist_loss, ((200, 64), F32), ((30,), S32)),
    "ising": (ising, ((256, 256), F32)),
    "random_walks": (random_walks, ((64,), F32)),
    "queue": (queue, ((2000,), F32), ((2000,), F32)),
    "ring_buffer": (ring_buffer, ((2000,), F32), ((64,), F32)),
    "means": (means, ((5000, 8), F32)),
    "run_lengths": (run_lengths, ((50000,), S32)),
    "sparse_product": (sparse_product, ((40000,), S32), ((40000,), S32), ((40000,), F32), ((5000, 16), F32)),
    "bisection": (bisection, ((100000,), F32)),
    "searches": (searches, ((20000,), F32), ((20000,), F32)),
    "median_filter": (median_filter, ((256, 256), F32)),
    "beam_search": (beam_search, ((8,), S32)),
    "nucleus": (nucleus, ((16, 8000), F32)),
    "kept_boxes": (kept_boxes, ((300, 4), F32), ((300,), F32)),
}
