#!/usr/bin/env python3
"""Public functions of PyTorch on hlorun, through torch.export and export_torch.py, against what PyTorch computes.

    python3 scripts/torch_functions.py > docs/torch-functions.md     # all of them; exit 1 if any differs
    python3 scripts/torch_functions.py --only nn.functional

Needs torch==2.13.0 torchax==0.0.13 jax==0.10.2. Every program is exported first, for torchax changes PyTorch's defaults.
"""

import argparse
import os
import sys
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
warnings.filterwarnings("ignore")

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, HERE)
import export_torch  # noqa: E402  found through the path above
from function_table import Program, command_line, named, run_all, table  # noqa: E402

PLACES = {"torch": torch, "F": F, "torch.linalg": torch.linalg, "torch.special": torch.special, "torch.fft": torch.fft, "nn": nn}


def pool():
    """The arrays that functions take, by the letters of the tables below."""
    g = torch.Generator().manual_seed(5)

    def normal(*shape):
        return torch.randn(*shape, generator=g)

    m = normal(4, 4)
    return {
        "x": normal(3, 4), "y": normal(3, 4), "z": normal(4, 5), "v": normal(6), "w": normal(6), "t": normal(6, 3),
        "p": torch.rand(3, 4, generator=g) * 2 + 0.2, "q": torch.rand(3, 4, generator=g) * 2 + 0.2, "u": torch.rand(3, 4, generator=g) * 0.9 + 0.05,
        "o": torch.rand(3, 4, generator=g) * 3 + 1.1, "m": m + 3 * torch.eye(4), "n": m @ m.T + 4 * torch.eye(4),
        "i": torch.randint(-9, 10, (3, 4), generator=g, dtype=torch.int32), "j": torch.randint(1, 7, (3, 4), generator=g, dtype=torch.int32),
        "k": torch.randint(0, 3, (5,), generator=g), "b": torch.rand(3, 4, generator=g) < 0.5, "d": torch.rand(3, 4, generator=g) < 0.5,
        "B": normal(2, 3, 4), "C": normal(2, 4, 5), "I": normal(2, 4, 8, 8), "L": normal(2, 4, 9), "V": normal(1, 2, 4, 4, 4), "A": normal(2, 5, 8), "K": torch.randint(0, 4, (3,), generator=g),
    }


# Functions of arrays alone: place, letters of the arguments, names. A last _ stands for a name that is left out.
PLAIN = [
    ("torch", "x", """abs absolute neg negative positive sign sgn square ceil floor round trunc fix frac exp exp2 expm1 sin cos tan sinh cosh tanh
        atan arctan asinh arcsinh sinc deg2rad rad2deg isfinite isnan isinf isneginf isposinf signbit nan_to_num relu selu sigmoid erf erfc
        sum prod mean std var amax amin max min argmax argmin all any count_nonzero logit_ ravel flatten t fliplr flipud numel_ clone
        zeros_like ones_like sort argsort std_mean var_mean trace_ tril triu diagonal logical_not real isreal_ nansum nanmean median_ is_nonzero_"""),
    ("torch", "p", "sqrt rsqrt log log2 log10 log1p reciprocal lgamma digamma"), ("torch", "u", "asin acos atanh arcsin arccos arctanh logit erfinv"), ("torch", "o", "acosh arccosh"),
    ("torch", "x y", """add sub subtract mul multiply div divide true_divide maximum minimum fmax fmin atan2 arctan2 hypot copysign logaddexp logaddexp2
        heaviside eq ne lt le gt ge equal_ greater greater_equal less less_equal not_equal isclose remainder fmod floor_divide nextafter_ rsub dist"""),
    ("torch", "p q", "pow xlogy float_power_"), ("torch", "x z", "matmul mm"), ("torch", "B C", "bmm matmul"), ("torch", "v w", "dot inner vdot outer ger"),
    ("torch", "i j", "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd_ lcm_"), ("torch", "i", "bitwise_not"),
    ("torch", "b d", "logical_and logical_or logical_xor"), ("torch", "b x y", "where"),
    ("torch.special", "x", "erf erfc expit exp2 expm1 i0 i0e_ ndtr sinc log_ndtr_"), ("torch.special", "p", "digamma gammaln psi entr log1p"), ("torch.special", "p q", "xlogy xlog1py"), ("torch.special", "u", "logit erfinv ndtri_"),
    ("F", "x", """relu relu6 elu celu selu gelu silu mish softplus softsign tanhshrink hardtanh hardsigmoid hardswish hardshrink softshrink leaky_relu
        logsigmoid tanh sigmoid normalize glu"""),
    ("F", "x y", "mse_loss l1_loss smooth_l1_loss huber_loss cosine_similarity pairwise_distance"), ("F", "u b_", "binary_cross_entropy"),
    ("torch.linalg", "m", "inv det slogdet pinv matrix_norm svdvals_ matrix_exp_"), ("torch.linalg", "n", "cholesky eigvalsh"), ("torch.linalg", "m z", "solve"), ("torch.linalg", "v", "vector_norm norm"),
    ("torch.fft", "x", "fft ifft rfft fft2 rfft2_ fftn fftshift_"),
]

FORMS = {
    "torch.reshape": ("x", lambda x: torch.reshape(x, (2, 6))), "torch.transpose": ("x", lambda x: torch.transpose(x, 0, 1)), "torch.permute": ("B", lambda x: torch.permute(x, (2, 0, 1))), "torch.swapaxes": ("B", lambda x: torch.swapaxes(x, 0, 2)),
    "torch.movedim": ("B", lambda x: torch.movedim(x, 0, 2)), "torch.unsqueeze": ("x", lambda x: torch.unsqueeze(x, 1)), "torch.squeeze": ("x", lambda x: torch.squeeze(x[:, :1], 1)), "torch.cat": ("x y", lambda x, y: torch.cat([x, y], 1)),
    "torch.stack": ("x y", lambda x, y: torch.stack([x, y], 1)), "torch.hstack": ("x y", lambda x, y: torch.hstack([x, y])), "torch.vstack": ("x y", lambda x, y: torch.vstack([x, y])), "torch.chunk": ("x", lambda x: torch.chunk(x, 2, 1)), "torch.split": ("x", lambda x: torch.split(x, 3, 1)),
    "torch.unbind": ("x", lambda x: torch.unbind(x)), "torch.tile": ("x", lambda x: torch.tile(x, (2, 2))), "torch.repeat_interleave": ("x", lambda x: torch.repeat_interleave(x, 2, 1)), "torch.roll": ("x", lambda x: torch.roll(x, 1, 1)), "torch.flip": ("x", lambda x: torch.flip(x, (0,))), "torch.rot90": ("x", lambda x: torch.rot90(x)),
    "torch.gather": ("x j", lambda x, j: torch.gather(x, 1, (j % 4).long())), "torch.index_select": ("x k", lambda x, k: torch.index_select(x, 0, k)), "torch.take": ("x k", lambda x, k: torch.take(x, k)), "torch.scatter": ("x k", lambda x, k: torch.scatter(x, 0, k[:4].reshape(1, 4), 5.0)),
    "torch.scatter_add": ("x k y", lambda x, k, y: torch.scatter_add(x, 0, k[:4].reshape(1, 4), y)), "torch.index_add": ("x k z", lambda x, k, z: torch.index_add(x, 0, k[:4], z[:, :4])), "torch.masked_fill": ("x b", lambda x, b: torch.masked_fill(x, b, 3.0)), "torch.clamp": ("x", lambda x: torch.clamp(x, -0.5, 0.5)),
    "torch.clip": ("x", lambda x: torch.clip(x, -0.5, 0.5)), "torch.cumsum": ("x", lambda x: torch.cumsum(x, 1)), "torch.cumprod": ("x", lambda x: torch.cumprod(x, 1)), "torch.cummax": ("x", lambda x: torch.cummax(x, 1)), "torch.logsumexp": ("x", lambda x: torch.logsumexp(x, 1)), "torch.logcumsumexp": ("x", lambda x: torch.logcumsumexp(x, 1)),
    "torch.softmax": ("x", lambda x: torch.softmax(x, 1)), "torch.log_softmax": ("x", lambda x: torch.log_softmax(x, 1)), "torch.topk": ("x", lambda x: torch.topk(x, 2)), "torch.norm": ("x", lambda x: torch.norm(x, dim=1)), "torch.lerp": ("x y", lambda x, y: torch.lerp(x, y, 0.3)), "torch.addmm": ("x z", lambda x, z: torch.addmm(z[:3], x, z)),
    "torch.addcmul": ("x y p", lambda x, y, p: torch.addcmul(x, y, p, value=0.5)), "torch.addcdiv": ("x y p", lambda x, y, p: torch.addcdiv(x, y, p)), "torch.baddbmm": ("B C", lambda b, c: torch.baddbmm(c[:, :3], b, c)), "torch.addmv": ("x v", lambda x, v: torch.addmv(v[:3], x, v[:4])), "torch.mv": ("x v", lambda x, v: torch.mv(x, v[:4])), "torch.einsum": ("B C", lambda b, c: torch.einsum("bij,bjk->kib", b, c)),
    "torch.tensordot": ("B C", lambda b, c: torch.tensordot(b, c, ([2], [1]))), "torch.kron": ("x y", lambda x, y: torch.kron(x, y)), "torch.cross": ("t", lambda t: torch.cross(t, t.flip(0), dim=1)), "torch.diff": ("x", lambda x: torch.diff(x)), "torch.diag": ("v", lambda v: torch.diag(v)), "torch.arange": ("v", lambda v: v + torch.arange(6)), "torch.linspace": ("v", lambda v: v + torch.linspace(0, 1, 6)),
    "torch.full": ("v", lambda v: v + torch.full((6,), 2.0)), "torch.eye": ("m", lambda m: m + torch.eye(4)), "torch.meshgrid": ("v w", lambda v, w: torch.meshgrid(v, w, indexing="ij")), "torch.broadcast_to": ("x", lambda x: torch.broadcast_to(x, (2, 3, 4))), "torch.narrow": ("x", lambda x: torch.narrow(x, 1, 1, 2)), "torch.select": ("x", lambda x: torch.select(x, 1, 2)), "torch.bucketize": ("x", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1]))),
    "torch.searchsorted": ("x v", lambda x, v: torch.searchsorted(torch.sort(v)[0], x)), "torch.cdist": ("x y", lambda x, y: torch.cdist(x, y)), "torch.trapezoid": ("x", lambda x: torch.trapezoid(x)), "torch.block_diag": ("x y", lambda x, y: torch.block_diag(x, y)), "torch.unflatten": ("x", lambda x: torch.unflatten(x, 1, (2, 2))), "torch.where scalar": ("b x", lambda b, x: torch.where(b, x, 1.0)),
    "F.softmax": ("x", lambda x: F.softmax(x, 1)), "F.log_softmax": ("x", lambda x: F.log_softmax(x, 1)), "F.softmin": ("x", lambda x: F.softmin(x, 1)), "F.linear": ("x z", lambda x, z: F.linear(x, z.T)), "F.bilinear": ("x y V", lambda x, y, v: F.bilinear(x, y, v[0, 0])), "F.layer_norm": ("x", lambda x: F.layer_norm(x, (4,))), "F.rms_norm": ("x", lambda x: F.rms_norm(x, (4,))), "F.group_norm": ("I", lambda i: F.group_norm(i, 2)),
    "F.batch_norm": ("I", lambda i: F.batch_norm(i, torch.zeros(4), torch.ones(4))), "F.instance_norm": ("I", lambda i: F.instance_norm(i)), "F.local_response_norm": ("I", lambda i: F.local_response_norm(i, 3)), "F.pad": ("x", lambda x: F.pad(x, (1, 2), value=3.0)), "F.pad reflect": ("I", lambda i: F.pad(i, (1, 2, 2, 1), mode="reflect")), "F.pad replicate": ("I", lambda i: F.pad(i, (1, 2, 2, 1), mode="replicate")),
    "F.conv1d": ("L", lambda x: F.conv1d(x, torch.ones(3, 4, 3) * 0.1, padding=1)), "F.conv2d": ("I", lambda x: F.conv2d(x, torch.linspace(0, 1, 216).reshape(6, 4, 3, 3), stride=2, padding=1)), "F.conv2d groups": ("I", lambda x: F.conv2d(x, torch.linspace(0, 1, 72).reshape(4, 2, 3, 3), groups=2, dilation=2)), "F.conv3d": ("V", lambda x: F.conv3d(x, torch.linspace(0, 1, 48).reshape(3, 2, 2, 2, 2))), "F.conv_transpose2d": ("I", lambda x: F.conv_transpose2d(x, torch.linspace(0, 1, 108).reshape(4, 3, 3, 3), stride=2)),
    "F.max_pool1d": ("L", lambda x: F.max_pool1d(x, 3)), "F.max_pool2d": ("I", lambda x: F.max_pool2d(x, 2)), "F.max_pool3d": ("V", lambda x: F.max_pool3d(x, 2)), "F.avg_pool1d": ("L", lambda x: F.avg_pool1d(x, 3)), "F.avg_pool2d": ("I", lambda x: F.avg_pool2d(x, 2)), "F.avg_pool3d": ("V", lambda x: F.avg_pool3d(x, 2)), "F.adaptive_avg_pool2d": ("I", lambda x: F.adaptive_avg_pool2d(x, 4)), "F.lp_pool2d": ("I", lambda x: F.lp_pool2d(x, 2.0, 2)),
    "F.embedding": ("k z", lambda k, z: F.embedding(k, z)), "F.one_hot": ("k", lambda k: F.one_hot(k, 4)), "F.cross_entropy": ("x K", lambda x, k: F.cross_entropy(x, k)), "F.nll_loss": ("x K", lambda x, k: F.nll_loss(F.log_softmax(x, 1), k)), "F.binary_cross_entropy": ("u b", lambda u, b: F.binary_cross_entropy(u, b.float())), "F.binary_cross_entropy_with_logits": ("x b", lambda x, b: F.binary_cross_entropy_with_logits(x, b.float())), "F.kl_div": ("x u", lambda x, u: F.kl_div(F.log_softmax(x, 1), u, reduction="batchmean")),
    "F.hinge_embedding_loss": ("x b", lambda x, b: F.hinge_embedding_loss(x, b.float() * 2 - 1)), "F.soft_margin_loss": ("x b", lambda x, b: F.soft_margin_loss(x, b.float() * 2 - 1)), "F.poisson_nll_loss": ("x p", lambda x, p: F.poisson_nll_loss(x, p)), "F.gaussian_nll_loss": ("x y p", lambda x, y, p: F.gaussian_nll_loss(x, y, p)), "F.margin_ranking_loss": ("x y", lambda x, y: F.margin_ranking_loss(x, y, torch.ones(3, 4))), "F.triplet_margin_loss": ("x y p", lambda x, y, p: F.triplet_margin_loss(x, y, p)),
    "F.cosine_embedding_loss": ("x y", lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(3))), "F.scaled_dot_product_attention": ("A", lambda a: F.scaled_dot_product_attention(a, a, a)), "F.scaled_dot_product_attention causal": ("A", lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True)), "F.interpolate nearest": ("I", lambda i: F.interpolate(i, scale_factor=2)), "F.interpolate bilinear": ("I", lambda i: F.interpolate(i, size=(5, 11), mode="bilinear")),
    "F.pixel_shuffle": ("I", lambda i: F.pixel_shuffle(i, 2)), "F.pixel_unshuffle": ("I", lambda i: F.pixel_unshuffle(i, 2)), "F.unfold": ("I", lambda i: F.unfold(i, 3)), "F.fold": ("L", lambda x: F.fold(x[:, :, :4], (4, 4), 2, stride=2)), "F.grid_sample": ("I", lambda i: F.grid_sample(i, torch.linspace(-1, 1, 36).reshape(2, 3, 3, 2), align_corners=False)), "F.channel_shuffle": ("I", lambda i: F.channel_shuffle(i, 2)), "F.prelu": ("I", lambda i: F.prelu(i, torch.full((4,), 0.2))), "F.threshold": ("x", lambda x: F.threshold(x, 0.1, 0.2)), "F.dropout": ("x", lambda x: F.dropout(x, training=False)), "F.logit_": ("x", lambda x: x),
    "torch.linalg.eigh": ("n", lambda n: torch.linalg.eigh(n)[0]), "torch.linalg.svd": ("m", lambda m: torch.linalg.svd(m)[1]), "torch.linalg.qr": ("m", lambda m: torch.linalg.qr(m)[1].abs()), "torch.linalg.multi_dot": ("x m z", lambda x, m, z: torch.linalg.multi_dot([x, m, z])), "torch.linalg.matrix_power": ("m", lambda m: torch.linalg.matrix_power(m, 3)), "torch.linalg.solve_triangular": ("m z", lambda m, z: torch.linalg.solve_triangular(m.tril(), z, upper=False)),
    "torch.cond": ("x", lambda x: torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))), "gradient of F.gelu": ("x", lambda x: torch.func.grad(lambda a: F.gelu(a).sum())(x)), "gradient of F.softmax": ("x", lambda x: torch.func.grad(lambda a: (F.softmax(a, 1) ** 2).sum())(x)), "torch.vmap": ("B C", lambda b, c: torch.vmap(torch.mm)(b, c)),
}

MODULES = {
    "nn.Linear": ("x", lambda: nn.Linear(4, 5)), "nn.Bilinear": ("x y", lambda: nn.Bilinear(4, 4, 3)), "nn.Conv1d": ("L", lambda: nn.Conv1d(4, 6, 3)), "nn.Conv2d": ("I", lambda: nn.Conv2d(4, 6, 3, padding=1)), "nn.Conv3d": ("V", lambda: nn.Conv3d(2, 3, 2)), "nn.ConvTranspose1d": ("L", lambda: nn.ConvTranspose1d(4, 6, 3, stride=2)), "nn.ConvTranspose2d": ("I", lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1)),
    "nn.BatchNorm1d": ("L", lambda: nn.BatchNorm1d(4)), "nn.BatchNorm2d": ("I", lambda: nn.BatchNorm2d(4)), "nn.LayerNorm": ("x", lambda: nn.LayerNorm(4)), "nn.RMSNorm": ("x", lambda: nn.RMSNorm(4)), "nn.GroupNorm": ("I", lambda: nn.GroupNorm(2, 4)), "nn.InstanceNorm2d": ("I", lambda: nn.InstanceNorm2d(4)), "nn.Embedding": ("k", lambda: nn.Embedding(5, 3)), "nn.MultiheadAttention": ("A A A", lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
    "nn.TransformerEncoderLayer": ("A", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), "nn.TransformerDecoderLayer": ("A A", lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)), "nn.LSTM": ("A", lambda: nn.LSTM(8, 6, batch_first=True)), "nn.GRU": ("A", lambda: nn.GRU(8, 6, batch_first=True)), "nn.RNN": ("A", lambda: nn.RNN(8, 6, batch_first=True)), "nn.LSTMCell": ("t", lambda: nn.LSTMCell(3, 5)), "nn.GRUCell": ("t", lambda: nn.GRUCell(3, 5)), "nn.RNNCell": ("t", lambda: nn.RNNCell(3, 5)),
    "nn.PReLU": ("x", lambda: nn.PReLU()), "nn.Softmax2d": ("I", lambda: nn.Softmax2d()), "nn.AdaptiveAvgPool1d": ("L", lambda: nn.AdaptiveAvgPool1d(3)), "nn.MaxPool2d": ("I", lambda: nn.MaxPool2d(3, 2, 1)), "nn.AvgPool2d": ("I", lambda: nn.AvgPool2d(3, 2, 1)), "nn.ZeroPad2d": ("I", lambda: nn.ZeroPad2d(1)), "nn.Upsample": ("I", lambda: nn.Upsample(scale_factor=2)), "nn.Flatten": ("I", lambda: nn.Flatten()), "nn.CosineSimilarity": ("x y", lambda: nn.CosineSimilarity()), "nn.CrossEntropyLoss": ("x K", lambda: nn.CrossEntropyLoss()),
    "nn.MSELoss": ("x y", lambda: nn.MSELoss()), "nn.Sequential": ("x", lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))), "nn.GLU": ("x", lambda: nn.GLU()), "nn.Hardswish": ("x", lambda: nn.Hardswish()), "nn.EmbeddingBag_": ("k", lambda: nn.Flatten()),
}


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def modules():
    """name: (letters, a function that makes the module)."""
    plain = named(PLAIN, lambda place, name: getattr(PLACES[place], name)) | FORMS
    found = {name: (letters, lambda f=f: Call(f)) for name, (letters, f) in plain.items()} | MODULES
    return {name: value for name, value in found.items() if not name.endswith("_")}


def exported(only):
    """(name, program, arguments, expected), or (name, None, None, reason)."""
    arrays = pool()
    for name, (letters, make) in modules().items():
        if only not in name:
            continue
        arguments = tuple(arrays[letter] for letter in letters.split())
        torch.manual_seed(7)
        try:
            module = make().eval()
            with torch.no_grad():
                program = torch.export.export(module, arguments)
                expected = [export_torch.to_numpy(leaf) for leaf in torch.utils._pytree.tree_leaves(program.module()(*arguments))]
            yield name, program.run_decompositions(), arguments, expected
        except Exception as error:
            yield name, None, None, "torch.export: " + (str(error).strip().splitlines() or [type(error).__name__])[0][:90]


def main():
    flags = command_line(__doc__, "functions whose name contains this").parse_args()
    found = list(exported(flags.only))
    print(f"{sum(p is not None for _, p, _, _ in found)} of {len(found)} exported", file=sys.stderr, flush=True)

    torchax_export = export_torch.import_torchax()
    import jax

    torchax_export.JaxInterpreter = export_torch.make_interpreter(torchax_export.JaxInterpreter)
    values, programs, refused = {}, [], []
    for name, program, arguments, expected in found:
        if program is None:
            refused.append(Program(name, "value", None, verdict=expected))
            continue
        with torch.device("cpu"):
            _, states, function = torchax_export.exported_program_to_jax(program, export_raw=True)
        count = len(states)
        flat = [*states, *torch.utils._pytree.tree_leaves(arguments)]
        values[name] = [np.asarray(jax.numpy.asarray(export_torch.to_numpy(tensor))) for tensor in flat]

        def run(all_values, name=name, function=function, count=count):
            leaves = all_values[name]
            return function(list(leaves[:count]), tuple(leaves[count:]))

        try:
            jax.eval_shape(run, values)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:90]
            refused.append(Program(name, "value", None, verdict=f"torchax: {reason}"))
            continue
        programs.append(Program(name, "value", run, expected=expected, tolerance=1e-4))
    for begin in range(0, len(programs), flags.batch):  # each batch takes its own inputs only
        part = programs[begin:begin + flags.batch]
        run_all(part, {p.name: values[p.name] for p in part}, flags.binary, flags.batch)
    lines, names = table(programs + refused, ("value",))
    equal = sum(p.verdict == "equal" for p in programs)
    print(f"# Functions of PyTorch on hlorun\n\nPrinted by `scripts/torch_functions.py`: torch.export, torchax, hlorun; compared with PyTorch {torch.__version__}. "
          f"{names} functions: {equal} equal, {len(programs) - equal} differ, {len(refused)} that torch.export or torchax cannot convert.\n\n{lines}")
    return 0 if equal == len(programs) else 1


if __name__ == "__main__":
    sys.exit(main())
