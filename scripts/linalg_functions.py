#!/usr/bin/env python3
"""Linear algebra as JAX exports it for CPU, on hlorun: each function x element type, compared with JAX on this machine.

    python3 scripts/linalg_functions.py                      # a table of what agrees, exit 1 if anything does not
    python3 scripts/linalg_functions.py --only eig,svd --types c128
    python3 scripts/linalg_functions.py --fixtures           # regenerates tests/linear_algebra/

Where a decomposition is unique only up to signs or phases, what is compared is what is unique: QR, A + A v - v w, |R| ...
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import export_jax  # noqa: E402  found through the path above

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def adjoint(x):
    return jnp.swapaxes(x.conj(), -1, -2)


def diagonal(values):
    return values[..., None] * jnp.eye(values.shape[-1], dtype=values.dtype)


def qr(x, mode="reduced"):
    q, r = jnp.linalg.qr(x, mode=mode)
    return q @ r, adjoint(q) @ q, jnp.abs(r)


def pivoted_qr(x):
    q, r, p = jsl.qr(x, mode="economic", pivoting=True)
    return q @ r, jnp.abs(r), p


def svd(x, algorithm=None, full=False):
    u, s, vt = lax.linalg.svd(x, full_matrices=full, algorithm=algorithm)
    k = s.shape[-1]
    return (u[..., :k] * s[..., None, :].astype(u.dtype)) @ vt[..., :k, :], s, adjoint(u) @ u


def eigh(x, lower=True):
    v, w = lax.linalg.eigh(x, lower=lower)
    return w, (v * w[..., None, :].astype(v.dtype)) @ adjoint(v)


def eig(x):
    w, v = jnp.linalg.eig(x)
    c = x.astype(w.dtype)
    return jnp.sum(w, -1), jnp.prod(w, -1), c + c @ v - v * w[..., None, :], jnp.sum(jnp.abs(v) ** 2, -2)


def left_eig(x):
    w, vl, _ = lax.linalg.eig(x, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    c = x.astype(w.dtype)
    return c + adjoint(vl) @ c - w[..., :, None] * adjoint(vl)


def schur(x):
    t, z = lax.linalg.schur(x)
    return z @ t @ adjoint(z), adjoint(z) @ z, jnp.trace(t, axis1=-2, axis2=-1)


def hessenberg(x):
    h, q = jsl.hessenberg(x, calc_q=True)
    return q @ h @ adjoint(q), jnp.tril(h, -2)


def tridiagonal(x, lower=True):
    a, d, e, taus, _ = _tridiagonal(x, lower)
    return d, jnp.abs(e), jnp.abs(taus)


def _tridiagonal(x, lower):
    result = lax.linalg.tridiagonal(x, lower=lower)
    return result if len(result) == 5 else (*result, None)


def symmetric(x):
    return (x + adjoint(x)) / 2


def positive(x):
    return x @ adjoint(x) + 3 * jnp.eye(x.shape[-1], dtype=x.dtype)


def lu_factor(x):
    lu, pivots = jsl.lu_factor(x)
    return lu, pivots


def nan_of(function):
    """The function of a matrix that is not finite: NaN where JAX has it, no failure."""
    return lambda a: function(a.at[0, 0, 0].set(jnp.nan))


# Functions of a [2,4,4], b [2,4,3], tall [2,6,3] and wide [2,3,5] arrays.
FUNCTIONS = {
    "cholesky": lambda a, b, t, w: jnp.linalg.cholesky(positive(a)),
    "cholesky_fails": lambda a, b, t, w: jnp.linalg.cholesky(-positive(a)),
    "cho_solve": lambda a, b, t, w: jsl.cho_solve(jsl.cho_factor(positive(a[0])), b[0]),
    "lu_factor": lambda a, b, t, w: lu_factor(a[0]),
    "lu": lambda a, b, t, w: lax.linalg.lu(t),
    "lu_solve": lambda a, b, t, w: jsl.lu_solve(jsl.lu_factor(a[0]), b[0]),
    "det": lambda a, b, t, w: jnp.linalg.det(a),
    "slogdet": lambda a, b, t, w: jnp.linalg.slogdet(a),
    "inv": lambda a, b, t, w: jnp.linalg.inv(a),
    "inv_singular": lambda a, b, t, w: jnp.isfinite(jnp.linalg.inv(a * 0)),
    "solve": lambda a, b, t, w: jnp.linalg.solve(a, b),
    "solve_triangular": lambda a, b, t, w: jsl.solve_triangular(a[0], b[0], trans=1, lower=True),
    "solve_triangular_right": lambda a, b, t, w: lax.linalg.triangular_solve(a, adjoint(b), conjugate_a=True, transpose_a=True),
    "expm": lambda a, b, t, w: jsl.expm(a / 4),
    "qr_reduced": lambda a, b, t, w: qr(t),
    "qr_complete": lambda a, b, t, w: qr(t, "complete"),
    "qr_wide": lambda a, b, t, w: qr(w),
    "qr_pivoted": lambda a, b, t, w: pivoted_qr(t[0]),
    "householder_product": lambda a, b, t, w: lax.linalg.householder_product(t, t[..., 0, :] / 8),
    "ormqr": lambda a, b, t, w: lax.linalg.ormqr(t[0], t[0, 0] / 8, t[0] @ w[0], left=True, transpose=False),
    "ormqr_right": lambda a, b, t, w: lax.linalg.ormqr(t[0], t[0, 0] / 8, adjoint(t[0]), left=False, transpose=True),
    "svd": lambda a, b, t, w: svd(t),
    "svd_full": lambda a, b, t, w: svd(w, full=True),
    "svd_qr": lambda a, b, t, w: svd(w, lax.linalg.SvdAlgorithm.QR),
    "svdvals": lambda a, b, t, w: jnp.linalg.svd(t, compute_uv=False),
    "svd_nan": lambda a, b, t, w: nan_of(lambda x: jnp.isnan(jnp.linalg.svd(x, compute_uv=False)))(t),
    "pinv": lambda a, b, t, w: jnp.linalg.pinv(t),
    "lstsq": lambda a, b, t, w: jnp.linalg.lstsq(t[0], t[0, :, 0])[0],
    "matrix_rank": lambda a, b, t, w: jnp.linalg.matrix_rank(t @ w),
    "cond": lambda a, b, t, w: jnp.linalg.cond(a),
    "norm_nuclear": lambda a, b, t, w: jnp.linalg.norm(a, "nuc", axis=(-2, -1)),
    "eigh": lambda a, b, t, w: eigh(symmetric(a)),
    "eigh_upper": lambda a, b, t, w: eigh(symmetric(a), lower=False),
    "eigvalsh": lambda a, b, t, w: jnp.linalg.eigvalsh(a),
    "eigh_nan": lambda a, b, t, w: nan_of(lambda x: jnp.isnan(jnp.linalg.eigvalsh(x)))(a),
    "eig": lambda a, b, t, w: eig(a),
    "eig_left": lambda a, b, t, w: left_eig(a),
    "eigvals": lambda a, b, t, w: jnp.sum(jnp.linalg.eigvals(a) ** 2, -1),
    "schur": lambda a, b, t, w: schur(a),
    "sqrtm": lambda a, b, t, w: jsl.sqrtm(positive(a[0])),
    "hessenberg": lambda a, b, t, w: hessenberg(a[0]),
    "tridiagonal": lambda a, b, t, w: tridiagonal(symmetric(a)),
    "tridiagonal_upper": lambda a, b, t, w: tridiagonal(symmetric(a), lower=False),
    "tridiagonal_solve": lambda a, b, t, w: lax.linalg.tridiagonal_solve(
        a[:, 0].at[:, 0].set(0), a[:, 1] + 4, a[:, 2].at[:, -1].set(0), b),
    "polar": lambda a, b, t, w: jsl.polar(a[0], method="svd"),
    "roots": lambda a, b, t, w: jnp.sum(jnp.roots(a[0, 0], strip_zeros=False) ** 3),
    "top_k": lambda a, b, t, w: lax.top_k(a.real, 2),
    "approx_max_k": lambda a, b, t, w: lax.approx_max_k(a.real, 2),
    "approx_min_k": lambda a, b, t, w: lax.approx_min_k(a.real, 2),
    "empty": lambda a, b, t, w: (jnp.linalg.inv(a[:, :0, :0]), jnp.linalg.qr(t[:0])[1], jnp.linalg.eigvalsh(a[:0])),
}


# What tests/linear_algebra/ holds: most of them for f32, and one function a LAPACK routine for the other types.
FIXTURES_F32 = [name for name in FUNCTIONS if name not in (
    "expm", "sqrtm", "roots", "slogdet", "inv_singular", "lu_factor", "lu_solve", "eigh_upper", "tridiagonal_upper", "cond",
    "norm_nuclear", "matrix_rank", "qr_wide", "svd_nan", "approx_min_k", "polar")]
FIXTURES = ["cholesky", "cho_solve", "lu", "solve_triangular_right", "qr_reduced", "qr_pivoted", "ormqr", "svd", "svd_qr", "eigh",
            "eig", "eig_left", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve"]


def arguments(dtype):
    rng = np.random.default_rng(7)

    def normal(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)

    return normal(2, 4, 4), normal(2, 4, 3), normal(2, 6, 3), normal(2, 3, 5)


def tolerance(dtype):
    return 2e-4 if dtype in (np.float32, np.complex64) else 1e-10


def check(name, dtype, binary, folder):
    """None where hlorun agrees with JAX, else one line."""
    values = arguments(dtype)
    try:
        export_jax.export(FUNCTIONS[name], values, folder)
    except (NotImplementedError, ValueError, TypeError) as e:
        return f"JAX has no such function: {str(e).splitlines()[0][:100]}"
    bound = tolerance(dtype)
    result = subprocess.run([binary, f"--inputs={folder}/inputs", f"--expect={folder}/expected", "--reference",
                             f"--rel_error_bound={bound}", f"{folder}/module.hlo"],
                            capture_output=True, text=True, timeout=300)
    return None if result.returncode == 0 else (result.stderr.strip().splitlines() or ["no message"])[-1]


def write_fixtures(types):
    """One module a type, so that one compilation serves all of its functions."""
    for type_name in types:
        values = arguments(TYPES[type_name])
        usable = []
        for name in FIXTURES_F32 if type_name == "f32" else FIXTURES:
            try:
                jax.eval_shape(FUNCTIONS[name], *values)
                usable.append(FUNCTIONS[name])
            except (NotImplementedError, ValueError, TypeError):
                print(f"{type_name}: JAX has no {name}")

        def everything(*args):
            return [function(*args) for function in usable]

        folder = os.path.join(ROOT, "tests", "linear_algebra", type_name)
        export_jax.export(everything, values, folder)
        # Two archives instead of hundreds of files.
        for part in ("inputs", "expected"):
            files = sorted(os.listdir(os.path.join(folder, part)))
            arrays = {name[:-4]: np.load(os.path.join(folder, part, name)) for name in files}
            np.savez_compressed(os.path.join(folder, part + ".npz"), **arrays)
            shutil.rmtree(os.path.join(folder, part))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--types", default=",".join(TYPES), help="of " + ",".join(TYPES))
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "bin", "hlorun"))
    parser.add_argument("--fixtures", action="store_true", help="write tests/linear_algebra/")
    flags = parser.parse_args()
    types = flags.types.split(",")
    if flags.fixtures:
        write_fixtures(types)
        return 0
    failures = 0
    for name in flags.only.split(",") if flags.only else FUNCTIONS:
        cells = []
        for type_name in types:
            with tempfile.TemporaryDirectory() as folder:
                line = check(name, TYPES[type_name], flags.binary, folder)
            cells.append("equal" if line is None else line)
        wrong = [cell for cell in cells if cell != "equal" and not cell.startswith("JAX has no")]
        failures += len(wrong)
        print(f"{name:24} " + "  ".join(f"{t}:{c}" for t, c in zip(types, cells)), flush=True)
    print(f"{failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
