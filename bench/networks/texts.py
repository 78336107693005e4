"""Networks for text: `NETWORKS` maps a name to (function of weights and inputs, shapes of the inputs[, type of the weights])."""

import jax
import jax.numpy as jnp
from jax import lax
from layers import attend, attention, causal, dense, encoder_layer, heads_of, layer_norm, mlp, rms_norm

F32, S32 = jnp.float32, jnp.int32
WORDS = 8192


def minilm(weights, words, mask):
    x = layer_norm(weights, weights(WORDS, 384, scale=0.5)[words] + weights(words.shape[1], 384, scale=0.5))
    for _ in range(6):
        x = layer_norm(weights, x + attention(weights, x, 12, mask=mask[:, None, None] > 0))
        x = layer_norm(weights, x + mlp(weights, x, 1536))
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return mean * lax.rsqrt(jnp.square(mean).sum(-1, keepdims=True))


def gpt_prefill(weights, words):
    table = weights(50257, 512, scale=0.5)
    x = table[words] + weights(words.shape[1], 512, scale=0.1)
    for _ in range(6):
        x = encoder_layer(weights, x, 8, causal(words.shape[1]))
    return layer_norm(weights, x)[:, -1] @ table.T * 0.05


def long_attention(_, q, k, v):
    return attend(q, k, v)


def long_attention_step(_, q, k, v):
    """Its gradients, where tokens see those before them."""
    loss = lambda q, k, v: jnp.square(attend(q, k, v, causal(q.shape[1]))).mean()  # pylint: disable=unnecessary-lambda-assignment
    return jax.grad(loss, (0, 1, 2))(q, k, v)


def rotated(x, positions):
    """Rotary positions, halves of each head turned: x is [batch, length, heads, features]."""
    half = x.shape[-1] // 2
    angles = positions[:, None] / 10000.0 ** (jnp.arange(half) / half)
    cosine, sine = (f(angles)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    low, high = x[..., :half], x[..., half:]
    return jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], -1)


def llama_layer(weights, x, positions, mask, heads=16, groups=4, kept=None):
    """Grouped queries, rotary positions, a gated mlp. `kept`: (keys, values, place) of the tokens before, else None."""
    features = x.shape[-1]
    y, size = rms_norm(weights, x), features // heads
    q = rotated(heads_of(y @ weights(features, features), heads), positions)
    k = rotated(heads_of(y @ weights(features, groups * size), groups), positions)
    v = heads_of(y @ weights(features, groups * size), groups)
    if kept is not None:
        k, v = (lax.dynamic_update_slice(old, new, (0, kept[2], 0, 0)) for old, new in zip(kept, (k, v)))
    wide_k, wide_v = (jnp.repeat(a, heads // groups, 2) for a in (k, v))
    x = x + attend(q, wide_k, wide_v, mask).reshape(x.shape) @ weights(features, features)
    y = rms_norm(weights, x)
    x = x + (jax.nn.silu(y @ weights(features, 2816)) * (y @ weights(features, 2816))) @ weights(2816, features)
    return x, k, v


def llama_prefill(weights, words):
    x = weights(WORDS, 1024, scale=0.5)[words]
    for _ in range(4):
        x, _, _ = llama_layer(weights, x, jnp.arange(words.shape[1]), causal(words.shape[1]))
    return rms_norm(weights, x)[:, -1] @ weights(1024, WORDS)


def llama_decode(weights, word, place, keys, values):
    """One token: keys and values are [layers, batch, 512, groups, features]."""
    x = weights(WORDS, 1024, scale=0.5)[word]
    seen = jnp.arange(keys.shape[2]) <= place
    new_keys, new_values = [], []
    for layer in range(keys.shape[0]):
        x, k, v = llama_layer(weights, x, place[None], seen, kept=(keys[layer], values[layer], place))
        new_keys.append(k)
        new_values.append(v)
    return jnp.argmax(rms_norm(weights, x)[:, -1] @ weights(1024, WORDS), -1), jnp.stack(new_keys), jnp.stack(new_values)


def gpt_generate(weights, words):
    """16 tokens, each from those before, with keys and values kept: a loop around a whole network."""
    length, features, heads, layers = 64, 384, 6, 4
    table = weights(WORDS, features, scale=0.5)
    layer_weights = [tuple(weights(*shape) for shape in ((features, 3 * features), (features, features), (features, 4 * features),
                                                         (4 * features, features))) for _ in range(layers)]

    def norm(x):
        x = x - x.mean(-1, keepdims=True)
        return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5)

    def step(carried, place):
        word, keys, values = carried
        x = table[word]
        for i, (qkv, out, up, down) in enumerate(layer_weights):
            q, k, v = (a.reshape(-1, 1, heads, features // heads) for a in jnp.split(norm(x) @ qkv, 3, -1))
            keys, values = (lax.dynamic_update_slice(old, new[None], (i, 0, place, 0, 0)) for old, new in ((keys, k), (values, v)))
            x = x + attend(q, keys[i], values[i], jnp.arange(length) <= place).reshape(x.shape) @ out
            x = x + jax.nn.gelu(norm(x) @ up) @ down
        word = jnp.argmax(norm(x) @ table.T, -1)
        return (word, keys, values), word

    kept = jnp.zeros((layers, words.shape[0], length, heads, features // heads), F32)
    return lax.scan(step, (words, kept, kept), jnp.arange(16))[1]


def t5_encoder(weights, words):
    """Positions as a bias of the scores, by buckets of distance."""
    x = weights(WORDS, 512, scale=0.5)[words]
    distance = jnp.arange(words.shape[1])[None] - jnp.arange(words.shape[1])[:, None]
    far = 8 + (jnp.log(jnp.maximum(jnp.abs(distance), 1) / 8.0) / jnp.log(16.0) * 8).astype(S32)
    bucket = jnp.where(jnp.abs(distance) < 8, jnp.abs(distance), jnp.minimum(far, 15)) + 16 * (distance > 0)
    bias = weights(32, 8, scale=1.0)[bucket].transpose(2, 0, 1)
    for _ in range(4):
        y = rms_norm(weights, x)
        q, k, v = (heads_of(y @ weights(512, 512), 8) for _ in range(3))
        scores = jax.nn.softmax(jnp.einsum("bmhd,bnhd->bhmn", q, k) + bias, -1)
        x = x + jnp.einsum("bhmn,bnhd->bmhd", scores, v).reshape(x.shape) @ weights(512, 512)
        y = rms_norm(weights, x)
        x = x + (jax.nn.gelu(y @ weights(512, 1024)) * (y @ weights(512, 1024))) @ weights(1024, 512)
    return rms_norm(weights, x)


def experts(weights, x):
    """Each token goes to the two best of eight experts, up to a capacity."""
    tokens, features = x.shape
    capacity, count = tokens // 4, 8
    gates, chosen = lax.top_k(jax.nn.softmax(x @ weights(features, count), -1), 2)
    one_hot = jax.nn.one_hot(chosen.reshape(-1), count, dtype=S32)
    place = ((jnp.cumsum(one_hot, 0) - 1) * one_hot).sum(-1)
    kept = place < capacity
    slot = jnp.where(kept, chosen.reshape(-1) * capacity + place, count * capacity)
    rows = jnp.zeros((count * capacity, features), x.dtype).at[slot].set(jnp.repeat(x, 2, 0), mode="drop")
    rows = rows.reshape(count, capacity, features)
    rows = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", rows, weights(count, features, 1024, scale=0.03))),
                      weights(count, 1024, features, scale=0.03))
    back = rows.reshape(-1, features).at[slot].get(mode="fill", fill_value=0) * (gates.reshape(-1) * kept)[:, None]
    return x + back.reshape(tokens, 2, features).sum(1)


def lstm_layer(weights, x, from_the_end=False):
    features = x.shape[-1]
    inside, between, bias = weights(features, 4 * features), weights(features, 4 * features), weights(4 * features, scale=0.1)

    def step(carried, row):
        h, c = carried
        i, f, g, o = jnp.split(row + h @ between, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros(x.shape[1:], x.dtype)
    return lax.scan(step, (zeros, zeros), x @ inside + bias, reverse=from_the_end)[1]


def lstm(weights, x):
    """[length, batch, features] through two layers."""
    return lstm_layer(weights, lstm_layer(weights, x))


def both_ways(weights, x):
    """[batch, length, features] from the beginning and from the end."""
    x = x.swapaxes(0, 1)
    return jnp.concatenate([lstm_layer(weights, x), lstm_layer(weights, x, from_the_end=True)], -1).swapaxes(0, 1)


def sampled(weights, x):
    logits = x @ weights(x.shape[-1], WORDS)
    return jax.random.categorical(jax.random.PRNGKey(1), logits / 0.7)


def state_space(weights, x):
    """A selective state space (as in Mamba): an associative scan over time, x is [length, features]."""
    length, features = x.shape
    step = jax.nn.softplus(dense(weights, x, features))[..., None]
    decay = jnp.exp(-step * jnp.exp(weights(features, 16, scale=0.1)))
    inward = step * (x @ weights(features, 16))[:, None] * x[..., None]
    states = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (decay, inward))[1]
    return jnp.einsum("lfs,ls->lf", states, x @ weights(features, 16)) * jax.nn.silu(dense(weights, x, features))


ONE_WORD = ((1, 1), S32)
KEPT = ((4, 1, 512, 4, 64), F32)
LONG = ((1, 1024, 12, 64), F32)
NETWORKS = {
    "minilm": (minilm, ((8, 64), S32), ((8, 64), F32)),
    "gpt_prefill": (gpt_prefill, ((1, 256), S32)),
    "long_attention": (long_attention, LONG, LONG, LONG),
    "long_attention_step": (long_attention_step, LONG, LONG, LONG),
    "llama_prefill": (llama_prefill, ((1, 256), S32)),
    "llama_prefill_bf16": (llama_prefill, ((1, 256), S32), jnp.bfloat16),
    "llama_decode": (llama_decode, ONE_WORD, ((), S32), KEPT, KEPT),
    "llama_decode_bf16": (llama_decode, ONE_WORD, ((), S32), (KEPT[0], jnp.bfloat16), (KEPT[0], jnp.bfloat16), jnp.bfloat16),
    "gpt_generate": (gpt_generate, ((1, 1), S32)),
    "t5_encoder": (t5_encoder, ((4, 128), S32)),
    "experts": (experts, ((512, 256), F32)),
    "lstm": (lstm, ((128, 16, 256), F32)),
    "both_ways": (both_ways, ((8, 100, 128), F32)),
    "sampled": (sampled, ((64, 256), F32)),
    "state_space": (state_space, ((1024, 256), F32)),
}
