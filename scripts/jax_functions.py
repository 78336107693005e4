#!/usr/bin/env python3
"""Public functions of JAX on hlorun: each with its gradient, where it has one, and under vmap, against JAX on this machine.

    python3 scripts/jax_functions.py > docs/jax-functions.md    # all of them; exit 1 if anything differs
    python3 scripts/jax_functions.py --only jnp.fft             # those whose name matches this

"equal": as JAX, floats to 2e-5 of the largest magnitude (2e-4 for gradients and where a line of the table says so), integers
exactly. "–": JAX has no gradient of it, or no batching rule. Functions run in batches of many to a module.
"""

import argparse
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.image
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.signal
import jax.scipy.spatial.transform
import jax.scipy.special
import jax.scipy.stats
import numpy as np
from jax import lax

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from function_table import Program, command_line, named, run_all, table  # noqa: E402  found through the path above

PLACES = {"jnp": jnp, "jnp.linalg": jnp.linalg, "jnp.fft": jnp.fft, "lax": lax, "nn": jax.nn, "random": jax.random, "image": jax.image,
          "special": jsp.special, "stats": jsp.stats, "linalg": jsp.linalg, "signal": jsp.signal, "ndimage": jsp.ndimage,
          "scipy.fft": jsp.fft, "lax.linalg": lax.linalg, "initializers": jax.nn.initializers, "integrate": jsp.integrate}


def pool(seed):
    """The arrays that functions take, by the letters of the tables below."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    m = normal(4, 4)
    return {
        "x": normal(3, 4), "y": normal(3, 4), "z": normal(4, 5), "v": normal(6), "w": normal(6), "s": normal(1)[0],
        "p": rng.uniform(0.2, 2.5, (3, 4)).astype(np.float32), "q": rng.uniform(0.2, 2.5, (3, 4)).astype(np.float32),
        "u": rng.uniform(0.05, 0.95, (3, 4)).astype(np.float32), "o": rng.uniform(1.1, 4, (3, 4)).astype(np.float32),
        "m": m + 3 * np.eye(4, dtype=np.float32), "n": (m @ m.T + 4 * np.eye(4)).astype(np.float32), "t": normal(6, 3),
        "c": (normal(3, 4) + 1j * normal(3, 4)).astype(np.complex64),
        "i": rng.integers(-9, 10, (3, 4)).astype(np.int32), "j": rng.integers(1, 7, (3, 4)).astype(np.int32),
        "k": rng.integers(0, 4, 5).astype(np.int32), "b": rng.random((3, 4)) < 0.5, "d": rng.random((3, 4)) < 0.5,
        "I": normal(1, 8, 8, 2), "K": normal(3, 3, 2, 3), "r": np.asarray(jax.random.key_data(jax.random.key(seed))),
        "B": normal(2, 3, 4), "C": normal(2, 4, 5), "N": rng.integers(1, 12, (3, 4)).astype(np.float32),
    }


# Functions of arrays alone: place, letters of the arguments, names.
PLAIN = [
    ("jnp", "x", """abs absolute fabs negative positive sign square ceil floor rint trunc exp exp2 expm1 sin cos tan sinh cosh tanh arctan
        arcsinh sinc deg2rad rad2deg degrees radians isfinite isnan isinf isneginf isposinf signbit nan_to_num cbrt ravel fliplr flipud flip
        transpose sort argsort argmax argmin max min amax amin sum prod mean std var ptp median all any count_nonzero cumsum cumprod diff
        ediff1d nansum nanprod nanmean nanstd nanvar nanmax nanmin nanargmax nanargmin nancumsum nancumprod nanmedian logical_not sort_complex
        real imag conj conjugate angle isreal iscomplex round around atleast_1d atleast_2d atleast_3d squeeze matrix_transpose
        zeros_like ones_like empty_like copy frexp modf spacing corrcoef cov trace diag diagonal tril triu tril_indices_from
        triu_indices_from array_repr_ fix_ gradient unwrap acosh_ asinh atan ndim_ size_ shape_ isrealobj_"""),
    ("jnp", "p", "sqrt log log2 log10 log1p reciprocal i0"),
    ("jnp", "u", "arcsin arccos arctanh asin acos atanh"),
    ("jnp", "o", "arccosh acosh"),
    ("jnp", "x y", """add subtract multiply divide true_divide maximum minimum fmax fmin arctan2 atan2 hypot copysign heaviside logaddexp
        logaddexp2 nextafter equal not_equal greater greater_equal less less_equal allclose isclose array_equal array_equiv outer kron
        inner_ vdot vstack_ float_power_ remainder mod fmod floor_divide divmod"""),
    ("jnp", "p x", "power float_power pow"),
    ("jnp", "x z", "dot matmul"), ("jnp", "B C", "matmul"),
    ("jnp", "v w", "inner convolve correlate polyadd polysub polymul polyval outer vecdot union1d_ cross_"),
    ("jnp", "i j", """bitwise_and bitwise_or bitwise_xor bitwise_left_shift_ left_shift right_shift bitwise_right_shift_ gcd lcm floor_divide mod
        remainder divmod"""),
    ("jnp", "i", "bitwise_not invert bitwise_invert bitwise_count abs sign cumsum sort argsort"),
    ("jnp", "b d", "logical_and logical_or logical_xor"),
    ("jnp", "c", "real imag conj angle abs exp log sqrt sin cos tanh sum prod mean isreal iscomplex square reciprocal"),
    ("jnp", "b x y", "where"),
    ("jnp", "v", "vander cumulative_sum cumulative_prod hamming_ polyder polyint roots_ diagflat trapezoid"),
    ("jnp", "k v", "take_"),
    ("jnp.linalg", "m", "inv det slogdet norm pinv cond matrix_norm matrix_transpose trace diagonal svdvals eigvals_ matrix_rank"),
    ("jnp.linalg", "n", "cholesky eigvalsh"),
    ("jnp.linalg", "m z", "solve matmul"), ("jnp.linalg", "v", "vector_norm"), ("jnp.linalg", "v w", "vecdot outer"),
    ("jnp.fft", "x", "fft ifft rfft hfft fft2 rfft2 fftn rfftn ifft2 ifftn fftshift ifftshift ihfft"),
    ("jnp.fft", "c", "fft ifft irfft fft2 ifft2 irfft2 fftn ifftn irfftn hfft"),
    ("lax", "x", """abs neg sign ceil floor round exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan cbrt erf erfc square is_finite logistic
        stop_gradient cumsum_ log1p_ integer_pow_ real_ imag_"""),
    ("lax", "p", "log log1p sqrt rsqrt lgamma digamma bessel_i0e bessel_i1e"),
    ("lax", "u", "asin acos atanh erf_inv"), ("lax", "o", "acosh"),
    ("lax", "x y", "add sub mul div max min atan2 nextafter complex eq ne lt le gt ge rem"),
    ("lax", "p q", "pow igamma igammac zeta_ random_gamma_grad"),
    ("lax", "i j", "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical add sub mul div rem max min"),
    ("lax", "i", "bitwise_not population_count clz abs neg sign"),
    ("lax", "x z", "dot"), ("lax", "B C", "batch_matmul"), ("lax", "c", "real imag conj abs exp log sqrt neg"),
    ("lax", "b x y", "select"),
    ("nn", "x", """relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid hard_silu hard_swish hard_tanh elu celu
        selu gelu glu squareplus mish identity sparse_plus sparse_sigmoid softmax log_softmax logsumexp standardize log1mexp_ relu"""),
    ("nn", "p", "log1mexp"),
    ("special", "x", "erf erfc expit ndtr log_ndtr i0 i0e i1 i1e logsumexp softmax log_softmax gammaln_ exp1_ sinc_"),
    ("special", "p", "gamma gammaln digamma entr factorial log1p_ loggamma_ expi exp1 i0 i1 spence"),
    ("special", "u", "logit erfinv ndtri"),
    ("special", "p q", "beta betaln xlogy xlog1py rel_entr kl_div gammainc gammaincc"),
    ("special", "p q u", "betainc"), ("special", "o p", "zeta"), ("special", "j p", "polygamma"),
    ("stats.norm", "x", "pdf logpdf cdf logcdf sf logsf"), ("stats.norm", "u", "ppf isf"),
    ("stats.cauchy", "x", "pdf logpdf cdf logcdf sf logsf"), ("stats.cauchy", "u", "ppf isf"),
    ("stats.expon", "p", "pdf logpdf cdf logcdf sf logsf"), ("stats.expon", "u", "ppf"),
    ("stats.laplace", "x", "pdf logpdf cdf"), ("stats.logistic", "x", "pdf logpdf cdf sf"), ("stats.logistic", "u", "ppf isf"),
    ("stats.uniform", "x", "pdf logpdf cdf"), ("stats.uniform", "u", "ppf"), ("stats.gumbel_r", "x", "pdf logpdf cdf logcdf sf"), ("stats.gumbel_r", "u", "ppf"),
    ("stats.gumbel_l", "x", "pdf logpdf cdf logcdf sf"), ("stats.gumbel_l", "u", "ppf"),
    ("stats.gamma", "p q", "pdf logpdf cdf logcdf sf"), ("stats.beta", "u p q", "pdf logpdf cdf logcdf"),
    ("stats.chi2", "p q", "pdf logpdf cdf sf"), ("stats.t", "x p", "pdf logpdf"), ("stats.pareto", "o p", "pdf logpdf cdf"),
    ("stats.poisson", "j p", "pmf logpmf cdf entropy_"), ("stats.geom", "j u", "pmf logpmf"), ("stats.bernoulli", "b u", "pmf logpmf_"),
    ("stats.binom", "j N u", "pmf logpmf"), ("stats.nbinom", "j p u", "pmf logpmf"), ("stats.gennorm", "x p", "pdf logpdf cdf"),
    ("stats.vonmises", "x p", "pdf logpdf"), ("stats.wrapcauchy", "p u", "pdf logpdf"), ("stats", "p", "rankdata sem"),
    ("linalg", "m", "inv det lu_ expm hilbert_ toeplitz_"), ("linalg", "n", "cholesky sqrtm_"), ("linalg", "m z", "solve"), ("linalg", "x z_", "block_diag_"),
    ("linalg", "x y", "block_diag"), ("linalg", "v", "toeplitz"),
    ("signal", "x y", "convolve2d correlate2d fftconvolve_"), ("signal", "v w", "convolve correlate fftconvolve"), ("signal", "x", "detrend"),
    ("scipy.fft", "x", "dct idct dctn idctn"),
]

# Functions with arguments that are no arrays, or that need a form of their own: name: (letters, function).
FORMS = {
    "jnp.reshape": ("x", lambda x: jnp.reshape(x, (2, 6))), "jnp.swapaxes": ("B", lambda x: jnp.swapaxes(x, 0, 2)),
    "jnp.moveaxis": ("B", lambda x: jnp.moveaxis(x, 0, 2)), "jnp.rollaxis": ("B", lambda x: jnp.rollaxis(x, 2)),
    "jnp.permute_dims": ("B", lambda x: jnp.permute_dims(x, (2, 0, 1))), "jnp.expand_dims": ("x", lambda x: jnp.expand_dims(x, 1)),
    "jnp.broadcast_to": ("x", lambda x: jnp.broadcast_to(x, (2, 3, 4))), "jnp.broadcast_arrays": ("x s", lambda x, s: jnp.broadcast_arrays(x, s)),
    "jnp.concatenate": ("x y", lambda x, y: jnp.concatenate([x, y], 1)), "jnp.concat": ("x y", lambda x, y: jnp.concat([x, y])),
    "jnp.stack": ("x y", lambda x, y: jnp.stack([x, y], 1)), "jnp.hstack": ("x y", lambda x, y: jnp.hstack([x, y])),
    "jnp.vstack": ("x y", lambda x, y: jnp.vstack([x, y])), "jnp.dstack": ("x y", lambda x, y: jnp.dstack([x, y])),
    "jnp.column_stack": ("v w", lambda x, y: jnp.column_stack([x, y])), "jnp.block": ("x y", lambda x, y: jnp.block([[x, y], [y, x]])),
    "jnp.append": ("x y", lambda x, y: jnp.append(x, y)), "jnp.split": ("x", lambda x: jnp.split(x, 2, 1)),
    "jnp.array_split": ("v", lambda x: jnp.array_split(x, 4)), "jnp.hsplit": ("x", lambda x: jnp.hsplit(x, 2)),
    "jnp.vsplit": ("z", lambda x: jnp.vsplit(x, 2)), "jnp.dsplit": ("B", lambda x: jnp.dsplit(x, 2)), "jnp.unstack": ("x", lambda x: jnp.unstack(x)),
    "jnp.tile": ("x", lambda x: jnp.tile(x, (2, 3))), "jnp.repeat": ("x", lambda x: jnp.repeat(x, 3, 1)), "jnp.roll": ("x", lambda x: jnp.roll(x, (1, -2), (0, 1))),
    "jnp.rot90": ("x", lambda x: jnp.rot90(x)), "jnp.pad": ("x", lambda x: jnp.pad(x, ((1, 2), (0, 3)), mode="reflect")),
    "jnp.pad edge": ("x", lambda x: jnp.pad(x, 2, mode="edge")), "jnp.pad wrap": ("x", lambda x: jnp.pad(x, 2, mode="wrap")),
    "jnp.take": ("x k", lambda x, k: jnp.take(x, k, axis=1)), "jnp.take_along_axis": ("x i", lambda x, i: jnp.take_along_axis(x, i % 3, 0)),
    "jnp.put_along_axis": ("x j", lambda x, j: jnp.put_along_axis(x, j[:, :1] % 4, 9.0, 1, inplace=False)), "jnp.put": ("v k", lambda v, k: jnp.put(v, k, 7.0, inplace=False)),
    "jnp.choose": ("j x y", lambda j, x, y: jnp.choose(j % 2, [x, y], mode="clip")), "jnp.select": ("b d x y", lambda b, d, x, y: jnp.select([b, d], [x, y], 3.0)),
    "jnp.piecewise": ("x", lambda x: jnp.piecewise(x, [x < -0.5, x > 0.5], [lambda v: -v, lambda v: v * v, 1.0])),
    "jnp.clip": ("x", lambda x: jnp.clip(x, -0.5, 0.5)), "jnp.interp": ("x v", lambda x, v: jnp.interp(x, jnp.arange(6.0) - 3, v)),
    "jnp.digitize": ("x", lambda x: jnp.digitize(x, jnp.array([-1.0, 0, 1]))), "jnp.searchsorted": ("v x", lambda v, x: jnp.searchsorted(jnp.sort(v), x)),
    "jnp.bincount": ("j", lambda j: jnp.bincount(j.ravel(), length=8)), "jnp.histogram": ("x", lambda x: jnp.histogram(x, bins=5, range=(-2, 2))),
    "jnp.histogram2d": ("v w", lambda v, w: jnp.histogram2d(v, w, bins=3, range=((-2, 2), (-2, 2)))), "jnp.histogram_bin_edges": ("x", lambda x: jnp.histogram_bin_edges(x, 4)),
    "jnp.histogramdd": ("t", lambda t: jnp.histogramdd(t, bins=2, range=((-2, 2),) * 3)[0]),
    "jnp.average": ("x p", lambda x, p: jnp.average(x, axis=1, weights=p)), "jnp.percentile": ("x", lambda x: jnp.percentile(x, 30.0, axis=1)),
    "jnp.quantile": ("x", lambda x: jnp.quantile(x, jnp.array([0.1, 0.5]), axis=0)), "jnp.nanpercentile": ("x", lambda x: jnp.nanpercentile(x, 30.0, axis=1)),
    "jnp.nanquantile": ("x", lambda x: jnp.nanquantile(x, 0.7)), "jnp.partition": ("x", lambda x: jnp.sort(jnp.partition(x, 2)[:, :2])),
    "jnp.argpartition": ("x", lambda x: jnp.sort(jnp.argpartition(x, 2)[:, :2])), "jnp.lexsort": ("x i", lambda x, i: jnp.lexsort((x, i))),
    "jnp.unique": ("j", lambda j: jnp.unique(j, size=8, fill_value=-1)), "jnp.unique_values": ("j", lambda j: jnp.unique_values(j, size=8)),
    "jnp.unique_counts": ("j", lambda j: tuple(jnp.unique_counts(j, size=8))), "jnp.unique_inverse": ("j", lambda j: tuple(jnp.unique_inverse(j, size=8))),
    "jnp.nonzero": ("b", lambda b: jnp.nonzero(b, size=12)), "jnp.flatnonzero": ("b", lambda b: jnp.flatnonzero(b, size=12)), "jnp.argwhere": ("b", lambda b: jnp.argwhere(b, size=12)),
    "jnp.extract": ("b x", lambda b, x: jnp.extract(b, x, size=12)), "jnp.compress": ("v x", lambda v, x: jnp.compress(v > 0, x.ravel(), size=6)),
    "jnp.isin": ("i k", lambda i, k: jnp.isin(i, k)), "jnp.intersect1d": ("i j", lambda i, j: jnp.intersect1d(i, j, size=8)), "jnp.union1d": ("i j", lambda i, j: jnp.union1d(i, j, size=20)),
    "jnp.setdiff1d": ("i j", lambda i, j: jnp.setdiff1d(i, j, size=12)), "jnp.setxor1d": ("i j", lambda i, j: jnp.setxor1d(i, j, size=20)),
    "jnp.einsum": ("B C", lambda x, y: jnp.einsum("bij,bjk->kib", x, y)), "jnp.tensordot": ("B C", lambda x, y: jnp.tensordot(x, y, ((0, 2), (0, 1)))),
    "jnp.cross": ("t", lambda t: jnp.cross(t, t[::-1])), "jnp.matvec": ("x v", lambda x, v: jnp.matvec(x, v[:4])), "jnp.vecmat": ("x v", lambda x, v: jnp.vecmat(v[:3], x)),
    "jnp.apply_along_axis": ("x", lambda x: jnp.apply_along_axis(jnp.cumsum, 1, x)), "jnp.apply_over_axes": ("B", lambda x: jnp.apply_over_axes(jnp.sum, x, (0, 2))),
    "jnp.vectorize": ("x y", lambda x, y: jnp.vectorize(lambda a, b: a * b + 1)(x, y)), "jnp.fromfunction": ("s", lambda s: jnp.fromfunction(lambda a, b: a * 10 + b + s, (3, 4))),
    "jnp.arange": ("s", lambda s: jnp.arange(3, 17, 2) + s), "jnp.linspace": ("s", lambda s: jnp.linspace(s, s + 3, 7)), "jnp.logspace": ("s", lambda s: jnp.logspace(s, s + 1, 5)),
    "jnp.geomspace": ("p", lambda p: jnp.geomspace(p[0, 0], p[0, 0] + 5, 6)), "jnp.eye": ("s", lambda s: s * jnp.eye(3, 4, k=1)), "jnp.identity": ("s", lambda s: s * jnp.identity(3)),
    "jnp.full": ("s", lambda s: jnp.full((2, 3), s)), "jnp.full_like": ("x s", lambda x, s: jnp.full_like(x, s)), "jnp.ones": ("s", lambda s: s * jnp.ones((2, 3))),
    "jnp.zeros": ("s", lambda s: s + jnp.zeros((2, 3))), "jnp.meshgrid": ("v w", lambda v, w: jnp.meshgrid(v, w, indexing="ij")), "jnp.indices": ("s", lambda s: jnp.indices((2, 3)) * s),
    "jnp.ix_": ("x k", lambda x, k: x[jnp.ix_(k % 3, k)]), "jnp.diag_indices": ("m", lambda m: m[jnp.diag_indices(4)]), "jnp.tri": ("s", lambda s: s * jnp.tri(4, 5, 1)),
    "jnp.tril_indices": ("m", lambda m: m[jnp.tril_indices(4)]), "jnp.triu_indices": ("m", lambda m: m[jnp.triu_indices(4)]), "jnp.fill_diagonal": ("m s", lambda m, s: jnp.fill_diagonal(m, s, inplace=False)),
    "jnp.unravel_index": ("j", lambda j: jnp.unravel_index(j, (3, 4))), "jnp.ravel_multi_index": ("j", lambda j: jnp.ravel_multi_index((j % 3, j % 4), (3, 4), mode="clip")),
    "jnp.delete": ("x", lambda x: jnp.delete(x, 1, axis=1)), "jnp.insert": ("x s", lambda x, s: jnp.insert(x, 2, s, axis=1)), "jnp.resize": ("x", lambda x: jnp.resize(x, (5, 3))),
    "jnp.ldexp": ("x i", lambda x, i: jnp.ldexp(x, i)), "jnp.astype": ("x", lambda x: jnp.astype(x * 9, jnp.int8)),
    "jnp.packbits": ("b", lambda b: jnp.packbits(b, axis=1)), "jnp.unpackbits": ("j", lambda j: jnp.unpackbits(j.astype(jnp.uint8), axis=1)),
    "jnp.polyfit": ("v", lambda v: jnp.polyfit(jnp.arange(6.0), v, 2)), "jnp.polydiv": ("v w", lambda v, w: jnp.polydiv(v, w[:3])), "jnp.poly": ("v", lambda v: jnp.poly(v)),
    "jnp.blackman": ("s", lambda s: s * jnp.blackman(7)), "jnp.bartlett": ("s", lambda s: s * jnp.bartlett(7)), "jnp.hamming": ("s", lambda s: s * jnp.hamming(7)),
    "jnp.hanning": ("s", lambda s: s * jnp.hanning(7)), "jnp.kaiser": ("s", lambda s: s * jnp.kaiser(7, 3.0)), "jnp.frombuffer": ("s", lambda s: s + jnp.frombuffer(b"\0\0\x80?", jnp.float32)),
    "jnp.at.set": ("x k", lambda x, k: x.at[k % 3].set(5.0)), "jnp.at.add": ("x k y", lambda x, k, y: x.at[k % 3, k].add(y[0, 0])), "jnp.at.multiply": ("v k", lambda v, k: v.at[k].multiply(2.0)),
    "jnp.at.min": ("v k", lambda v, k: v.at[k].min(0.0)), "jnp.at.max": ("v k", lambda v, k: v.at[k].max(0.0)), "jnp.at.apply": ("v", lambda v: v.at[2:4].apply(jnp.sin)),
    "jnp.at.get": ("v i", lambda v, i: v.at[i].get(mode="fill", fill_value=3.0)), "jnp.nanquantile 2": ("u", lambda u: jnp.nanquantile(u, 0.2, axis=1)),
    "jnp.linalg.eigh": ("n", lambda n: (jnp.linalg.eigh(n)[0], jnp.abs(jnp.linalg.eigh(n)[1]))), "jnp.linalg.qr": ("m", lambda m: jnp.abs(jnp.linalg.qr(m)[1])),
    "jnp.linalg.svd": ("m", lambda m: jnp.linalg.svd(m, compute_uv=False)), "jnp.linalg.lstsq": ("t", lambda t: jnp.linalg.lstsq(t, t[:, 0] + 1)[0]),
    "jnp.linalg.eigvals": ("m", lambda m: jnp.sum(jnp.linalg.eigvals(m) ** 2)), "jnp.linalg.eig": ("m", lambda m: jnp.sum(jnp.linalg.eig(m)[0])),
    "jnp.linalg.matrix_power": ("m", lambda m: jnp.linalg.matrix_power(m, 5)), "jnp.linalg.multi_dot": ("x z m", lambda x, z, m: jnp.linalg.multi_dot([x, m, z])),
    "jnp.linalg.tensorsolve": ("m", lambda m: jnp.linalg.tensorsolve(m.reshape(2, 2, 4), m[:2, :2])), "jnp.linalg.tensorinv": ("m", lambda m: jnp.linalg.tensorinv(m.reshape(2, 2, 4), 2)),
    "jnp.linalg.cross": ("t", lambda t: jnp.linalg.cross(t, t[::-1])), "jnp.linalg.tensordot": ("x z", lambda x, z: jnp.linalg.tensordot(x, z, axes=1)),
    "jnp.fft.fftfreq": ("s", lambda s: s * jnp.fft.fftfreq(7)), "jnp.fft.rfftfreq": ("s", lambda s: s * jnp.fft.rfftfreq(7)), "jnp.fft.fft n": ("x", lambda x: jnp.fft.fft(x, n=11)),
    "lax.broadcast": ("x", lambda x: lax.broadcast(x, (2,))), "lax.broadcast_in_dim": ("v", lambda v: lax.broadcast_in_dim(v, (3, 6), (1,))), "lax.clamp": ("x", lambda x: lax.clamp(-0.5, x, 0.5)),
    "lax.collapse": ("B", lambda x: lax.collapse(x, 0, 2)), "lax.concatenate": ("x y", lambda x, y: lax.concatenate([x, y], 0)), "lax.convert_element_type": ("x", lambda x: lax.convert_element_type(x, jnp.bfloat16)),
    "lax.bitcast_convert_type": ("x", lambda x: lax.bitcast_convert_type(x, jnp.int8)), "lax.reduce_precision": ("x", lambda x: lax.reduce_precision(x, 5, 4)), "lax.integer_pow": ("x", lambda x: lax.integer_pow(x, -3)),
    "lax.cumsum": ("x", lambda x: lax.cumsum(x, 1, reverse=True)), "lax.cumprod": ("x", lambda x: lax.cumprod(x, 1)), "lax.cummax": ("x", lambda x: lax.cummax(x, 0)), "lax.cummin": ("x", lambda x: lax.cummin(x, 1)),
    "lax.cumlogsumexp": ("x", lambda x: lax.cumlogsumexp(x, 1)), "lax.dot_general": ("B C", lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))),
    "lax.dynamic_slice": ("x k", lambda x, k: lax.dynamic_slice(x, (k[0], k[1]), (2, 2))), "lax.dynamic_update_slice": ("x k m", lambda x, k, m: lax.dynamic_update_slice(x, m[:2, :2], (k[0], k[1]))),
    "lax.dynamic_index_in_dim": ("x k", lambda x, k: lax.dynamic_index_in_dim(x, k[0])), "lax.dynamic_slice_in_dim": ("x k", lambda x, k: lax.dynamic_slice_in_dim(x, k[0], 2)),
    "lax.dynamic_update_index_in_dim": ("x k v", lambda x, k, v: lax.dynamic_update_index_in_dim(x, v[:4], k[0], 0)), "lax.dynamic_update_slice_in_dim": ("x k m", lambda x, k, m: lax.dynamic_update_slice_in_dim(x, m[:2], k[0], 0)),
    "lax.index_in_dim": ("x", lambda x: lax.index_in_dim(x, 1)), "lax.index_take": ("x k", lambda x, k: lax.index_take(x, (k % 3,), (0,))), "lax.slice": ("x", lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2))),
    "lax.slice_in_dim": ("x", lambda x: lax.slice_in_dim(x, 1, 4, 2, 1)), "lax.pad": ("x", lambda x: lax.pad(x, 1.0, ((1, 2, 1), (-1, 0, 0)))), "lax.rev": ("x", lambda x: lax.rev(x, (0, 1))),
    "lax.reshape": ("x", lambda x: lax.reshape(x, (6, 2), (1, 0))), "lax.squeeze": ("I", lambda x: lax.squeeze(x, (0,))), "lax.expand_dims": ("x", lambda x: lax.expand_dims(x, (1,))), "lax.transpose": ("B", lambda x: lax.transpose(x, (2, 0, 1))),
    "lax.split": ("x", lambda x: lax.split(x, (1, 3), 1)), "lax.iota": ("i", lambda i: i + lax.iota(jnp.int32, 4)), "lax.broadcasted_iota": ("i", lambda i: i + lax.broadcasted_iota(jnp.int32, (3, 4), 1)),
    "lax.full": ("s", lambda s: s + lax.full((3,), 2.0)), "lax.full_like": ("x", lambda x: lax.full_like(x, 2.0)), "lax.argmax": ("x", lambda x: lax.argmax(x, 1, jnp.int32)), "lax.argmin": ("x", lambda x: lax.argmin(x, 0, jnp.int32)),
    "lax.reduce": ("x", lambda x: lax.reduce(x, -np.inf, lax.max, (1,))), "lax.reduce general": ("x i", lambda x, i: lax.reduce((x, i), (0.0, 0), lambda a, b: (a[0] + b[0], a[1] | b[1]), (0,))), "lax.reduce_sum": ("x", lambda x: lax.reduce_sum(x, (1,))), "lax.reduce_max": ("x", lambda x: lax.reduce_max(x, (1,))),
    "lax.reduce_min": ("x", lambda x: lax.reduce_min(x, (1,))), "lax.reduce_prod": ("x", lambda x: lax.reduce_prod(x, (0,))), "lax.reduce_and": ("b", lambda b: lax.reduce_and(b, (0,))), "lax.reduce_or": ("b", lambda b: lax.reduce_or(b, (0,))), "lax.reduce_xor": ("i", lambda i: lax.reduce_xor(i, (0,))),
    "lax.reduce_window": ("x", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME")), "lax.reduce_window max": ("x", lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID")),
    "lax.sort": ("x", lambda x: lax.sort(x, dimension=0)), "lax.sort keys": ("i x", lambda i, x: lax.sort((i, x), num_keys=1)), "lax.sort_key_val": ("x i", lambda x, i: lax.sort_key_val(x, i)), "lax.top_k": ("x", lambda x: lax.top_k(x, 2)),
    "lax.approx_max_k": ("x", lambda x: lax.approx_max_k(x, 2)), "lax.approx_min_k": ("x", lambda x: lax.approx_min_k(x, 2)), "lax.select_n": ("b x y", lambda b, x, y: lax.select_n(b, x, y)), "lax.optimization_barrier": ("x", lambda x: lax.optimization_barrier(x) + 1),
    "lax.conv": ("I K", lambda x, k: lax.conv(x.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (1, 1), "SAME")), "lax.conv_transpose": ("I K", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME")),
    "lax.conv_general_dilated": ("I K", lambda x, k: lax.conv_general_dilated(x, k, (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"))), "lax.conv_with_general_padding": ("I K", lambda x, k: lax.conv_with_general_padding(x.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (1, 1), ((1, 0), (0, 1)), (1, 1), (1, 1))),
    "lax.conv_general_dilated_patches": ("I", lambda x: lax.conv_general_dilated_patches(x.transpose(0, 3, 1, 2), (3, 3), (1, 1), "VALID")), "lax.conv_general_dilated_local": ("I", lambda x: lax.conv_general_dilated_local(x.transpose(0, 3, 1, 2), jnp.ones((4, 18, 6, 6)), (1, 1), "VALID", (3, 3))),
    "lax.gather": ("x k", lambda x, k: lax.gather(x, k[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))), "lax.scatter": ("x k m", lambda x, k, m: lax.scatter(x, k[:1, None], m[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,)))),
    "lax.scatter_add": ("x k m", lambda x, k, m: lax.scatter_add(x, k[:4, None], m, lax.ScatterDimensionNumbers((1,), (0,), (0,)))), "lax.scatter_sub": ("x k m", lambda x, k, m: lax.scatter_sub(x, k[:4, None], m, lax.ScatterDimensionNumbers((1,), (0,), (0,)))), "lax.scatter_mul": ("x k m", lambda x, k, m: lax.scatter_mul(x, k[:1, None], m[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,)))), "lax.scatter_min": ("x k m", lambda x, k, m: lax.scatter_min(x, k[:4, None], m, lax.ScatterDimensionNumbers((1,), (0,), (0,)))),
    "lax.scatter_max": ("x k m", lambda x, k, m: lax.scatter_max(x, k[:4, None], m, lax.ScatterDimensionNumbers((1,), (0,), (0,)))), "lax.scatter_apply": ("x k", lambda x, k: lax.scatter_apply(x, k[:1, None], jnp.sin, lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=(1, 4))),
    "lax.cond": ("s x", lambda s, x: lax.cond(s > 0, jnp.sin, jnp.cos, x)), "lax.switch": ("k x", lambda k, x: lax.switch(k[0], [jnp.sin, jnp.cos, jnp.tanh], x)), "lax.fori_loop": ("x", lambda x: lax.fori_loop(0, 5, lambda n, a: a * 0.5 + n, x)),
    "lax.while_loop": ("s", lambda s: lax.while_loop(lambda a: a[1] < 5, lambda a: (a[0] * 1.5, a[1] + 1), (s, 0))), "lax.scan": ("s v", lambda s, v: lax.scan(lambda c, a: (c * 0.5 + a, c), s, v)), "lax.map": ("x", lambda x: lax.map(lambda r: jnp.sum(r) * r, x)), "lax.associative_scan": ("x", lambda x: lax.associative_scan(jnp.add, x, axis=1)),
    "lax.custom_root": ("p", lambda p: lax.custom_root(lambda a: a * a - p, p, lambda f, a: lax.fori_loop(0, 12, lambda n, b: b - f(b) / (2 * b), a), lambda g, y: y / g(jnp.ones_like(y)))), "lax.fft": ("c", lambda c: lax.fft(c, "FFT", (4,))), "lax.ragged_dot": ("x C k", lambda x, c, k: lax.ragged_dot(x, c, jnp.array([1, 2]))),
    "lax.betainc": ("p q u", lax.betainc), "lax.polygamma": ("o p", lambda o, p: lax.polygamma(jnp.floor(o), p)), "lax.zeta": ("o p", lax.zeta), "lax.dot 2": ("v w", lax.dot), "lax.rng_bit_generator": ("k", lambda k: lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32) + k[0].astype(jnp.uint32), (3, 5))), "lax.rng_uniform_": ("s", lambda s: s),
    "lax.linalg.cholesky": ("n", lax.linalg.cholesky), "lax.linalg.eigh": ("n", lambda n: lax.linalg.eigh(n)[1]), "lax.linalg.lu": ("m", lambda m: lax.linalg.lu(m)), "lax.linalg.qr": ("t", lambda t: jnp.abs(lax.linalg.qr(t, full_matrices=False)[1])), "lax.linalg.svd": ("t", lambda t: lax.linalg.svd(t, full_matrices=False, compute_uv=False)), "lax.linalg.triangular_solve": ("m z", lambda m, z: lax.linalg.triangular_solve(jnp.tril(m), z, left_side=True, lower=True)),
    "lax.linalg.schur": ("n", lambda n: jnp.abs(jnp.diagonal(lax.linalg.schur(n)[0]))), "lax.linalg.householder_product": ("t v", lambda t, v: lax.linalg.householder_product(t, v[:3] / 8)), "lax.linalg.hessenberg": ("m", lambda m: jnp.abs(lax.linalg.hessenberg(m)[0])), "lax.linalg.tridiagonal_solve": ("v w z", lambda v, w, z: lax.linalg.tridiagonal_solve(v[:4].at[0].set(0), w[:4] + 9, v[2:].at[3].set(0), z)), "lax.linalg.eig": ("m", lambda m: jnp.sum(lax.linalg.eig(m)[0])), "lax.linalg.symmetric_product": ("m z", lambda m, z: lax.linalg.symmetric_product(z, m + m.T)),
    "nn.one_hot": ("k", lambda k: jax.nn.one_hot(k, 4)), "nn.logmeanexp": ("x", lambda x: jax.nn.logmeanexp(x, 1)), "nn.dot_product_attention": ("B", lambda b: jax.nn.dot_product_attention(b[:, :, None], b[:, :, None], b[:, :, None], is_causal=True)), "nn.scaled_matmul_": ("s", lambda s: s),
    "special.bernoulli": ("s", lambda s: s * jsp.special.bernoulli(6)), "special.multigammaln": ("o", lambda o: jsp.special.multigammaln(o, 2)), "special.lpmn_values_": ("s", lambda s: s), "special.hyp1f1": ("p q u", jsp.special.hyp1f1), "special.poch": ("p q", jsp.special.poch), "special.fresnel": ("x", jsp.special.fresnel), "special.hyp2f1": ("p q o u", lambda a, b, c, u: jsp.special.hyp2f1(a, b, c, u * 0.5)), "special.sici": ("p", jsp.special.sici), "special.bessel_jn": ("p", lambda p: jsp.special.bessel_jn(p, v=2)), "special.sph_harm_y": ("s", lambda s: jsp.special.sph_harm_y(jnp.array([1, 2]), jnp.array([0, 1]), jnp.array([0.3, 0.4]), s + jnp.array([1.0, 2.0]), n_max=2).real),
    "stats.dirichlet.logpdf": ("p", lambda p: jsp.stats.dirichlet.logpdf(jax.nn.softmax(p[0]), p[1])), "stats.multivariate_normal.logpdf": ("v n", lambda v, n: jsp.stats.multivariate_normal.logpdf(v[:4], v[2:], n)), "stats.multivariate_normal.pdf": ("v n", lambda v, n: jsp.stats.multivariate_normal.pdf(v[:4], v[2:], n)), "stats.multinomial.logpmf": ("N", lambda n: jsp.stats.multinomial.logpmf(jnp.array([1, 2, 3]), 6, jax.nn.softmax(n[0, :3]))), "stats.betabinom.logpmf": ("j N p q", jsp.stats.betabinom.logpmf),
    "stats.truncnorm.logpdf": ("u", lambda u: jsp.stats.truncnorm.logpdf(u, -1.0, 2.0)), "stats.truncnorm.cdf": ("u", lambda u: jsp.stats.truncnorm.cdf(u, -1.0, 2.0)), "stats.mode": ("j", lambda j: tuple(jsp.stats.mode(j))), "stats.gaussian_kde": ("v w", lambda v, w: jsp.stats.gaussian_kde(v).evaluate(w)),
    "linalg.lu": ("m", jsp.linalg.lu), "linalg.lu_solve": ("m z", lambda m, z: jsp.linalg.lu_solve(jsp.linalg.lu_factor(m), z)), "linalg.lu_factor": ("m", jsp.linalg.lu_factor), "linalg.cho_solve": ("n z", lambda n, z: jsp.linalg.cho_solve(jsp.linalg.cho_factor(n), z)), "linalg.cho_factor": ("n", lambda n: jnp.triu(jsp.linalg.cho_factor(n)[0])), "linalg.solve_triangular": ("m z", lambda m, z: jsp.linalg.solve_triangular(m, z, lower=True)),
    "linalg.eigh": ("n", lambda n: jsp.linalg.eigh(n)[0]), "linalg.svd": ("m", lambda m: jsp.linalg.svd(m, compute_uv=False)), "linalg.qr": ("t", lambda t: jnp.abs(jsp.linalg.qr(t, mode="r")[0])), "linalg.polar": ("m", lambda m: jsp.linalg.polar(m)[0]), "linalg.expm_frechet": ("m n", lambda m, n: jsp.linalg.expm_frechet(m / 8, n / 8)), "linalg.sqrtm": ("n", lambda n: jsp.linalg.sqrtm(n).real), "linalg.hilbert": ("s", lambda s: s * jsp.linalg.hilbert(4)), "linalg.pascal": ("s", lambda s: s * jsp.linalg.pascal(4)), "linalg.eigh_tridiagonal": ("v w", lambda v, w: jsp.linalg.eigh_tridiagonal(v, w[:5], eigvals_only=True)), "linalg.schur": ("n", lambda n: jnp.abs(jnp.diagonal(jsp.linalg.schur(n)[0]))), "linalg.hessenberg": ("m", lambda m: jnp.abs(jsp.linalg.hessenberg(m))), "linalg.funm_": ("s", lambda s: s),
    "signal.stft": ("I", lambda i: jsp.signal.stft(i.ravel(), nperseg=16)), "signal.istft": ("I", lambda i: jsp.signal.istft(jsp.signal.stft(i.ravel(), nperseg=16)[2], nperseg=16)[1]), "signal.csd": ("I", lambda i: jsp.signal.csd(i.ravel(), i.ravel()[::-1], nperseg=16)[1]), "signal.welch": ("I", lambda i: jsp.signal.welch(i.ravel(), nperseg=16)[1]),
    "ndimage.map_coordinates": ("x p q", lambda x, p, q: jsp.ndimage.map_coordinates(x, [p, q], order=1, mode="nearest")), "integrate.trapezoid": ("v", lambda v: jsp.integrate.trapezoid(v)), "image.resize": ("I", lambda i: jax.image.resize(i, (1, 5, 12, 2), "bilinear")), "image.resize cubic": ("I", lambda i: jax.image.resize(i, (1, 11, 5, 2), "cubic")), "image.resize nearest": ("I", lambda i: jax.image.resize(i, (1, 11, 5, 2), "nearest")), "image.resize lanczos": ("I", lambda i: jax.image.resize(i, (1, 11, 5, 2), "lanczos3")),
    "image.scale_and_translate": ("I v", lambda i, v: jax.image.scale_and_translate(i, (1, 6, 7, 2), (1, 2), jnp.array([0.7, 0.8]), jnp.array([0.2, 0.1]), "linear")),
}

# Random numbers: functions of a key.
RANDOM = {
    "split": lambda k: jax.random.key_data(jax.random.split(k, 3)), "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 5)), "bits": lambda k: jax.random.bits(k, (3, 5)), "uniform": lambda k: jax.random.uniform(k, (3, 5)), "normal": lambda k: jax.random.normal(k, (3, 5)), "randint": lambda k: jax.random.randint(k, (3, 5), -4, 9),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (20,)), "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (5,)), "gamma": lambda k: jax.random.gamma(k, 2.0, (5,)), "dirichlet": lambda k: jax.random.dirichlet(k, jnp.array([1.0, 2, 3]), (4,)), "exponential": lambda k: jax.random.exponential(k, (7,)), "cauchy": lambda k: jax.random.cauchy(k, (7,)), "laplace": lambda k: jax.random.laplace(k, (7,)), "logistic": lambda k: jax.random.logistic(k, (7,)),
    "gumbel": lambda k: jax.random.gumbel(k, (7,)), "pareto": lambda k: jax.random.pareto(k, 2.0, (7,)), "t": lambda k: jax.random.t(k, 3.0, (7,)), "chisquare": lambda k: jax.random.chisquare(k, 3.0, shape=(5,)), "f": lambda k: jax.random.f(k, 3.0, 4.0, shape=(5,)), "weibull_min": lambda k: jax.random.weibull_min(k, 1.0, 2.0, (7,)), "rayleigh": lambda k: jax.random.rayleigh(k, 2.0, (7,)), "maxwell": lambda k: jax.random.maxwell(k, (7,)), "double_sided_maxwell": lambda k: jax.random.double_sided_maxwell(k, 0.0, 1.0, (7,)),
    "lognormal": lambda k: jax.random.lognormal(k, shape=(7,)), "loggamma": lambda k: jax.random.loggamma(k, 2.0, (5,)), "triangular": lambda k: jax.random.triangular(k, 0.0, 1.0, 3.0, (7,)), "truncated_normal": lambda k: jax.random.truncated_normal(k, -1.0, 2.0, (7,)), "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0), shape=(9,)), "choice": lambda k: jax.random.choice(k, 20, (6,), replace=False), "choice weights": lambda k: jax.random.choice(k, 5, (9,), p=jnp.array([0.1, 0.2, 0.3, 0.2, 0.2])), "permutation": lambda k: jax.random.permutation(k, 12),
    "poisson": lambda k: jax.random.poisson(k, 4.0, (9,)), "binomial": lambda k: jax.random.binomial(k, 10.0, 0.3, (9,)), "geometric": lambda k: jax.random.geometric(k, 0.3, (9,)), "multinomial": lambda k: jax.random.multinomial(k, 9.0, jnp.array([0.2, 0.3, 0.5])), "multivariate_normal": lambda k: jax.random.multivariate_normal(k, jnp.zeros(2), jnp.array([[2.0, 1], [1, 3]]), (4,)), "orthogonal": lambda k: jnp.abs(jnp.linalg.det(jax.random.orthogonal(k, 3))), "rademacher": lambda k: jax.random.rademacher(k, (9,)), "ball": lambda k: jax.random.ball(k, 3, shape=(4,)), "wald": lambda k: jax.random.wald(k, 2.0, (7,)), "generalized_normal": lambda k: jax.random.generalized_normal(k, 2.0, (7,)),
    "bits rbg": lambda k: jax.random.bits(jax.random.wrap_key_data(jnp.tile(jax.random.key_data(k), 2), impl="rbg"), (3, 5)), "uniform bf16": lambda k: jax.random.uniform(k, (9,), jnp.bfloat16),
}
INITIALIZERS = "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform normal orthogonal truncated_normal uniform variance_scaling delta_orthogonal_"


def functions():
    """name: (letters, function)."""
    found = named(PLAIN, lambda place, name: getattr(PLACES.get(place) or getattr(jsp.stats, place.split(".")[1]), name))
    found |= FORMS
    for name, function in RANDOM.items():
        found[f"random.{name}"] = ("r", lambda r, f=function: f(jax.random.wrap_key_data(r)))
    for name in INITIALIZERS.split():
        if name.endswith("_"):
            continue
        maker = getattr(jax.nn.initializers, name)
        initializer = maker(1.0, "fan_in", "normal") if name == "variance_scaling" else maker()
        found[f"initializers.{name}"] = ("r", lambda r, f=initializer: f(jax.random.wrap_key_data(r), (4, 5)))
    return {name: value for name, value in found.items() if not name.endswith("_")}


def total(tree):
    """A number that depends on every floating result."""
    parts = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    if not parts:
        raise TypeError("no floating result")
    real = [leaf.real.astype(jnp.float32) for leaf in parts]
    return sum(jnp.sum(leaf * jnp.cos(jnp.arange(leaf.size, dtype=jnp.float32).reshape(leaf.shape))) for leaf in real)


def programs_of(name, letters, function, example):
    """The function itself, its gradient by all floating arguments, and both arguments' rows under vmap."""
    letters = letters.split()
    arguments = lambda values, which: [values[which][letter] for letter in letters]  # noqa: E731
    programs = [Program(name, "value", lambda values: function(*arguments(values, "one")))]
    floating = tuple(i for i, letter in enumerate(letters) if example["one"][letter].dtype.kind == "f")
    forms = [("vmap", lambda values: jax.vmap(function)(*arguments(values, "two")), 2e-5)]
    if floating:
        gradient = jax.grad(lambda *a: total(function(*a)), floating)
        forms.insert(0, ("gradient", lambda values: gradient(*arguments(values, "one")), 2e-4))
    for mode, form, tolerance in forms:
        try:
            jax.eval_shape(form, example)
        except Exception:  # JAX has no gradient or batching rule for it, and says so in many ways
            continue
        programs.append(Program(name, mode, form, tolerance=tolerance))
    return programs


def main():
    flags = command_line(__doc__, "functions whose name matches this regular expression").parse_args()
    one, other = pool(3), pool(4)
    values = {"one": one, "two": {letter: np.stack([one[letter], other[letter]]) for letter in one}}
    programs, unknown = [], []
    for name, (letters, function) in functions().items():
        if not re.search(flags.only, name):
            continue
        try:
            jax.eval_shape(lambda v, f=function, l=letters: f(*[v["one"][x] for x in l.split()]), values)
        except Exception as error:
            unknown.append(f"{name}: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}")
            continue
        programs += programs_of(name, letters, function, values)
    for line in unknown:
        print("JAX:", line, file=sys.stderr)
    run_all(programs, values, flags.binary, flags.batch)
    lines, names = table(programs, ("value", "gradient", "vmap"))
    equal = sum(p.verdict == "equal" for p in programs)
    print(f"# Functions of JAX on hlorun\n\nPrinted by `scripts/jax_functions.py`, compared with JAX {jax.__version__} on CPU: {names} functions, "
          f"{equal} of {len(programs)} programs equal.\n\n{lines}")
    return 0 if equal == len(programs) else 1


if __name__ == "__main__":
    sys.exit(main())
