"""The worked examples: each as a PyTorch user writes it (`original`), and rewritten so that it is one graph (`module`, or
`jax` where torch.export refuses or unrolls)."""

import dataclasses
from typing import Callable

import numpy as np
import torch
from torch import nn
from torch._higher_order_ops.map import map as torch_map

NAN, F = float("nan"), np.float32


@dataclasses.dataclass
class Example:
    name: str
    original: Callable                  # on tensors of actual size, as eager PyTorch runs it
    cases: Callable                     # {name: arguments as NumPy arrays}
    arguments: Callable                 # of the sizes at which it is traced
    module: Callable = None             # makes the rewritten class
    jax: Callable = None                # an equal JAX function
    wrap: Callable = None               # applied to the JAX function
    specs: tuple = ()                   # shapes with names for sizes that vary: "b,10"
    bounds: dict = dataclasses.field(default_factory=dict)
    sizes_are_data: bool = False        # of results
    donate: tuple = ()

    def __post_init__(self):
        self.traced = self.arguments()
        if not self.specs:
            self.specs = tuple(None for _ in self.traced)


def seeded(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def layer(inputs, outputs, seed=1):
    """A Linear with seeded weights, so that a class and its rewritten form have the same."""
    torch.manual_seed(seed)
    with torch.device("cpu"):  # importing torchax makes another one the default
        linear = nn.Linear(inputs, outputs)
    with torch.no_grad():  # multiples of 1/64, so that a sum of exactly 0 is one in any order of additions
        for parameter in linear.parameters():
            parameter.copy_((parameter * 64).round() / 64)
    return linear


def signs(n, seed=3):
    """Arrays of n elements: a positive sum, a negative one, one of exactly 0, and one of NaN."""
    x = np.abs(seeded(n, seed=seed))
    zero = np.array([(i + 1) // 2 * (-1) ** i for i in range(n)], F)
    zero[-1] -= zero.sum()
    nan = x.copy()
    nan[n // 2] = NAN
    mixed = x * np.array([1 if i % 3 else -1 for i in range(n)], F)
    return {"positive": x, "negative": -x, "mixed": mixed, "sum_is_zero": zero, "nan": nan}


# --- LinearModule, forward and backward ---
class LinearModule(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.bias = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return x @ self.weight + self.bias


def linear_and_gradients(x):
    m = LinearModule()
    x.requires_grad_(True)
    y = m(x)
    grads = torch.autograd.grad((y * y).sum(), [m.weight, m.bias, x])
    return (y, grads[1], grads[0], grads[2])


def with_gradients(function):
    """y and the gradients of sum(y * y) by all arguments, in the program's order (states first)."""
    import jax
    import jax.numpy as jnp

    def both(*leaves):
        def loss(*leaves):
            (y,) = function(*leaves)
            return jnp.sum(y * y), y

        gradients, y = jax.grad(loss, argnums=tuple(range(len(leaves))), has_aux=True)(*leaves)
        by_rank = sorted(gradients[:2], key=lambda g: g.ndim)
        return (y, *by_rank, gradients[2])

    return both


# --- branches on data ---
def my_model_forward(x):
    if x.sum() > 0:
        return torch.sin(x)
    return torch.cos(x)


class SinOrCos(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.sin(x), lambda x: torch.cos(x), (x,))


def my_model(x):
    return x + 1 if x.mean() > 0 else 2 * x


class MyModel(nn.Module):
    def forward(self, x):
        return torch.cond(x.mean() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


def my_fixed_model(x):
    return x + 1 if x.sum() > 0 else 2 * x


class MyFixedModel(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


def dynamic_activation(x):
    return torch.relu(x) if x.mean() > 0 else torch.sigmoid(x)


class DynamicActivation(nn.Module):
    def forward(self, x):
        return torch.cond(x.mean() > 0, lambda x: torch.relu(x), lambda x: torch.sigmoid(x), (x,))


def table_cases(rows, width, extra=lambda i: ()):
    """{name: (table, i, *extra(i))} for each row i of a random table, then of one whose sum is exactly 0 and of one with NaN."""
    def index(i):
        return np.array(i, np.int32)

    cases = {f"row_{i}": (seeded(rows, width), index(i), *extra(i)) for i in range(rows)}
    for name in ("sum_is_zero", "nan"):
        cases[name] = (signs(rows * width)[name].reshape(rows, width), index(rows // 2), *extra(0))
    return cases


def activation_cases():
    cases = {f"{n}_{kind}": (x,) for n in (3, 5) for kind, x in signs(n).items()}
    return {**cases, "0": (np.zeros(0, F),), "1": (np.array([2], F),), "1_negative": (np.array([-2], F),)}


class ConditionalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = layer(10, 5)

    def forward(self, x):
        y = self.linear(x)
        return torch.cond(y.sum() > 0, lambda y: torch.relu(y), lambda y: torch.sigmoid(y), (y,))


def conditional_model(x):
    y = layer(10, 5)(x)
    return torch.relu(y) if y.sum() > 0 else torch.sigmoid(y)


def batches(*sizes, width=10):
    """Random rows of each batch size, both signs; rows whose outputs are all the bias's; rows with NaN."""
    cases = {}
    for n in sizes:
        cases[f"batch_{n}"] = seeded(n, width, seed=n)
        cases[f"batch_{n}_negated"] = -3 * seeded(n, width, seed=n)
    cases["zeros"] = np.zeros((3, width), F)
    nan = seeded(3, width)
    nan[1, 4] = NAN
    cases["nan"] = nan
    return {name: (x,) for name, x in cases.items()}


def zero_sum_batch():
    """A row whose outputs have a sum of exactly 0, searched for."""
    linear = layer(10, 5)
    for seed in range(100000):
        x = np.round(seeded(1, 10, seed=seed) * 2) / 2
        if float(linear(torch.from_numpy(x)).sum()) == 0:
            return x
    raise ValueError("no such row")


# --- sizes that are data ---
class DynamicSizeModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = layer(10, 20)

    def forward(self, x, factor):
        y = self.linear(x)
        return y[: int(5 * factor)]


def dynamic_size_jax(mask):
    """The first int(5 * factor) rows, as Python's slices clamp; or all rows, 0 where they are not among them."""
    import bounded
    import jax
    import jax.numpy as jnp

    linear = layer(10, 20)
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()

    def function(x, factor):
        y = x @ weight.T + bias
        rows = jax.lax.convert_element_type(5 * factor, jnp.int32)  # towards zero, as int() does
        count = jnp.asarray(x.shape[0], jnp.int32)
        rows = jnp.clip(jnp.where(rows < 0, rows + count, rows), 0, count)
        if mask:
            index = jax.lax.broadcasted_iota(jnp.int32, y.shape, 0)
            return jnp.where(index < rows, y, 0)
        return bounded.resize(y, 0, rows)

    return function


def masked_rows(x, factor):
    y = layer(10, 20)(x)
    rows = int(5 * factor)
    keep = torch.zeros_like(y)
    keep[:rows] = 1
    return torch.where(keep > 0, y, 0)


def dynamic_size_cases():
    factors = {"0": 0.0, "half": 0.5, "1": 1.0, "all": 2.0, "more": 50.0, "negative": -0.5, "very_negative": -9.0}
    cases = {f"rows_{name}": (seeded(6, 10), np.array(f, F)) for name, f in factors.items()}
    for n in (0, 1, 3, 8):
        cases[f"batch_{n}"] = (seeded(n, 10, seed=n), np.array(0.5, F))
    nan = seeded(6, 10)
    nan[4:] = NAN
    cases["nan_beyond"] = (nan, np.array(0.5, F))
    cases["nan_kept"] = (nan[::-1].copy(), np.array(0.5, F))
    cases["sum_is_zero"] = (np.zeros((4, 10), F), np.array(0.6, F))
    return cases


def mask_jax():
    import bounded
    import jax.numpy as jnp

    def function(x):
        keep = x > 0
        count = jnp.sum(keep.astype(jnp.int32))
        # Each kept element goes to its rank among the kept ones; the others fall off the end.
        place = jnp.where(keep, jnp.cumsum(keep.astype(jnp.int32)) - 1, x.shape[0])
        kept = jnp.zeros_like(x).at[place].set(x, mode="drop")
        positions = jnp.zeros(x.shape, jnp.int32).at[place].set(jnp.arange(x.shape[0], dtype=jnp.int32), mode="drop")
        return bounded.resize(kept, 0, count), bounded.resize(positions, 0, count)

    return function


def mask_and_nonzero(x):
    return x[x > 0], torch.nonzero(x > 0)[:, 0]


# --- loops ---
class IterativeAddition(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = layer(10, 5)

    def forward(self, x, reps):
        y = self.linear(x)
        return torch.while_loop(lambda i, r, reps, y: i < reps, lambda i, r, reps, y: (i + 1, r + y, reps.clone(), y.clone()),
                                (torch.zeros((), dtype=torch.int32), y.clone(), reps, y))[1]


def iterative_addition(x, reps):
    y = layer(10, 5)(x)
    result = y
    for _ in range(int(reps)):
        result = result + y
    return result


MOST_REPS = 8


class IterativeAdditionMasked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = layer(10, 5)

    def forward(self, x, reps):
        y = self.linear(x)
        result = y
        for i in range(MOST_REPS):
            result = torch.where(i < reps, result + y, result)
        return result


def addition_cases():
    cases = {f"reps_{n}": (seeded(3, 10), np.array(n, np.int32)) for n in (-2, 0, 1, 5, 8)}
    for n in (0, 1, 3, 8):
        cases[f"batch_{n}"] = (seeded(n, 10, seed=n), np.array(3, np.int32))
    nan = seeded(3, 10)
    nan[1, 2] = NAN
    cases["nan"] = (nan, np.array(2, np.int32))
    cases["zeros"] = (np.zeros((3, 10), F), np.array(2, np.int32))
    cases["sum_is_zero"] = (zero_sum_batch(), np.array(2, np.int32))
    return cases


def newton(x):
    i = 0
    change = 1.0
    while i < 100 and change > 1e-6:
        following = x - F(0.1) * x
        change = abs(following - x)
        x = following
        i += 1
    return x, np.int32(i)


class Newton(nn.Module):
    def forward(self, x):
        def goes_on(i, x, change):
            return (i < 100) & (change > 1e-6)

        def step(i, x, change):
            following = x - 0.1 * x
            return i + 1, following, (following - x).abs()

        i, x, _ = torch.while_loop(goes_on, step, (torch.zeros((), dtype=torch.int32), x, torch.ones(())))
        return x, i


class Sin3(nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = torch.sin(x)
        return x


class SumOfList(nn.Module):
    def forward(self, x, a, b):
        for scalar in [a, b]:
            x = x * scalar + scalar
        return x


class MapRows(nn.Module):
    def forward(self, xs):
        return torch_map(lambda row: torch.sin(row) * row.sum(), xs)


def map_rows(xs):
    return torch.stack([torch.sin(row) * row.sum() for row in xs]) if len(xs) else xs.clone()


class IndexOnDevice(nn.Module):
    def forward(self, x, i):
        return x.index_select(0, i.reshape(1)).reshape(x.shape[1:])


class Matmul(nn.Module):
    def forward(self, x, y):
        return x @ y


def update_in_place(x, i, row):
    x = x.clone()
    x[int(i)] = row
    return x


def update_jax():
    import jax

    return lambda x, i, row: jax.lax.dynamic_update_slice(x, row[None], (i, 0))


def matmul_cases():
    cases = {f"{m}_by_{n}": (seeded(m, 5, seed=m), seeded(5, n, seed=n)) for m in (0, 1, 3, 6) for n in (0, 1, 3, 7)}
    opposite = np.concatenate([np.ones((5, 2), F), -np.ones((5, 2), F)], axis=1)  # every row of the product sums to 0
    cases["sum_is_zero"] = (np.round(seeded(3, 5) * 4), opposite)
    nan = seeded(3, 5)
    nan[1, 2] = NAN
    cases["nan"] = (nan, seeded(5, 4))
    return cases


def map_cases():
    one_nan = seeded(4, 3)
    one_nan[2, 1] = NAN
    zero = np.stack([signs(3)["sum_is_zero"] * n for n in range(1, 5)]).astype(F)
    return {"rows": (seeded(4, 3),), "nan": (np.full((4, 3), NAN, F),), "nan_in_a_row": (one_nan,), "zeros": (np.zeros((4, 3), F),),
            "sum_is_zero": (zero,)}


def list_cases():
    cases = {name: (x, np.array(2, F), np.array(-0.5, F)) for name, x in signs(4).items()}
    x = signs(4)["positive"]
    return {**cases, "scalars_0": (x, np.array(0, F), np.array(0, F)), "scalar_nan": (x, np.array(2, F), np.array(NAN, F))}


def newton_cases():
    values = {"5_hits_the_cap": 5, "0.1_takes_89": 0.1, "zero": 0, "negative": -5, "nan": NAN, "infinite": float("inf"), "tiny": 1e-7}
    return {name: (np.array(v, F),) for name, v in values.items()}


def conditional_cases():
    return {**batches(0, 1, 3, 8), "sum_is_zero": (zero_sum_batch(),)}


def each(cases):
    return lambda: {name: (x,) for name, x in cases.items()}


def t(*shape):
    return torch.from_numpy(seeded(*shape))


EXAMPLES = [
    Example("linear_module", linear_and_gradients, lambda: {**each(signs(4))(), "zeros": (np.zeros(4, F),)}, lambda: (t(4),), LinearModule,
            wrap=with_gradients),
    Example("my_model_forward", my_model_forward, each(signs(5)), lambda: (t(5),), SinOrCos),
    Example("my_model", my_model, each(signs(10)), lambda: (t(10),), MyModel),
    Example("my_fixed_model", my_fixed_model, each(signs(5)), lambda: (t(5),), MyFixedModel),
    Example("dynamic_activation", dynamic_activation, activation_cases, lambda: (t(3),), DynamicActivation, specs=("n",), bounds={"n": 5}),
    Example("conditional_model", conditional_model, conditional_cases, lambda: (t(3, 10),), ConditionalModel, specs=("b,10",),
            bounds={"b": 8}),
    Example("dynamic_size_model", lambda x, f: DynamicSizeModel()(x, f), dynamic_size_cases, lambda: (t(6, 10), torch.tensor(0.5)),
            jax=lambda *a: dynamic_size_jax(False)(*a), specs=("b,10", None), bounds={"b": 8}),
    Example("dynamic_size_masked", masked_rows, dynamic_size_cases, lambda: (t(6, 10), torch.tensor(0.5)),
            jax=lambda *a: dynamic_size_jax(True)(*a), specs=("b,10", None), bounds={"b": 8}),
    Example("iterative_addition", iterative_addition, addition_cases, lambda: (t(3, 10), torch.tensor(2, dtype=torch.int32)),
            IterativeAddition, specs=("b,10", None), bounds={"b": 8}),
    Example("iterative_addition_masked", iterative_addition, addition_cases, lambda: (t(3, 10), torch.tensor(2, dtype=torch.int32)),
            IterativeAdditionMasked, specs=("b,10", None), bounds={"b": 8}),
    Example("newton", newton, newton_cases, lambda: (torch.tensor(5.0),), Newton),
    Example("exportable_model", lambda x, y: x @ y, matmul_cases, lambda: (t(3, 5), t(5, 4)), Matmul, specs=("m,5", "5,n"),
            bounds={"m": 6, "n": 7}),
    Example("list_of_scalars", lambda x, a, b: SumOfList()(x, a, b), list_cases, lambda: (t(4), torch.tensor(2.0), torch.tensor(-0.5)), SumOfList),
    Example("sin_three_times", lambda x: Sin3()(x), each(signs(4)), lambda: (t(4),), Sin3),
    Example("map_rows", map_rows, map_cases, lambda: (t(4, 3),), MapRows),
    Example("index_on_device", lambda x, i: x[int(i)], lambda: table_cases(4, 3),
            lambda: (t(4, 3), torch.tensor(1, dtype=torch.int32)), IndexOnDevice),
    Example("mask", mask_and_nonzero,
            lambda: {**each(signs(6))(), "none": (-np.ones(6, F),), "all": (np.ones(6, F),), "size_0": (np.zeros(0, F),),
                     "size_1": (np.ones(1, F),), "size_1_dropped": (-np.ones(1, F),), "size_3": (seeded(3),)},
            lambda: (t(6),), jax=lambda x: mask_jax()(x), specs=("n",), bounds={"n": 6}, sizes_are_data=True),
    Example("update_in_place", update_in_place, lambda: table_cases(4, 3, lambda i: (seeded(3, seed=9),)),
            lambda: (t(4, 3), torch.tensor(1, dtype=torch.int32), t(3)), jax=lambda *a: update_jax()(*a), donate=(0,)),
]
