"""JAX functions of arrays whose sizes vary, as HLO at the bounds of those sizes.

The function is traced with symbolic shapes. Its operations are then replayed at the bounds; what the program computes
from a size (the divisor of a mean, the shape of zeros) reads the parameter's actual size instead, and arrays that no
parameter gives a size (zeros, iota, reshapes) are cut to theirs. jaxlib would fold the sizes into constants. The text that
comes out has static shapes, but for the parameters; hlo-opt --bound infers all others.
"""

import contextlib
import functools
import os
import re
import shutil
import subprocess

import numpy as np


def hlo_opt():
    here = os.path.dirname(os.path.abspath(__file__))
    for place in (os.environ.get("HLO_OPT"), os.path.join(here, "../../build/bin/hlo-opt"), shutil.which("hlo-opt")):
        if place and os.path.exists(place):
            return place
    raise SystemExit("hlo-opt infers the shapes of bounded modules: build it (ninja -C build hlo-opt), or say where by HLO_OPT")


def bounds_of(specs, bounds):
    """{symbol: bound}: {"b": 8} as given; complains about a symbol without one."""
    symbols = sorted({s for spec in specs if spec for s in re.findall(r"[A-Za-z_]\w*", spec)})
    missing = [s for s in symbols if s not in bounds]
    return symbols, missing


def source_of(equation):
    try:
        from jax._src import source_info_util
    except ImportError:
        return contextlib.nullcontext()
    return source_info_util.user_context(equation.source_info.traceback)


class Replay:
    """Evaluates a jaxpr with symbolic dimensions at their bounds."""

    def __init__(self, bounds, sizes):
        self.bounds = bounds  # {symbol: bound}
        self.sizes = sizes    # {symbol: s32 scalar}

    def at_bound(self, value):
        """`value`, a parameter of an operation, without symbols."""
        import jax

        if hasattr(value, "_evaluate"):
            return int(value._evaluate(self.bounds))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.at_bound(v) for v in value))
        if isinstance(value, (tuple, list)):
            return type(value)(self.at_bound(v) for v in value)
        if isinstance(value, dict):
            return {k: self.at_bound(v) for k, v in value.items()}
        if isinstance(value, jax.core.ShapedArray):
            return value.update(shape=self.at_bound(value.shape))
        return value

    def size(self, dimension):
        """A symbolic dimension as an s32 scalar of the program."""
        import jax.numpy as jnp

        return jnp.asarray(dimension._evaluate(self.sizes), jnp.int32)

    def jaxpr(self, jaxpr, constants, *arguments):
        from jax.extend import core

        values = {}

        def read(atom):
            return atom.val if isinstance(atom, core.Literal) else values[atom]

        values.update(zip(jaxpr.constvars, constants))
        values.update(zip(jaxpr.invars, arguments))
        for equation in jaxpr.eqns:
            with source_of(equation):  # the user's line, not this one
                results = self.equation(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results))
        return [read(atom) for atom in jaxpr.outvars]

    def closed(self, closed):
        return lambda *arguments: self.jaxpr(closed.jaxpr, closed.consts, *arguments)

    def equation(self, equation, operands):
        import jax

        name, params = equation.primitive.name, equation.params
        if name == "dim_as_value":
            return [self.size(params["dim"]).astype(equation.outvars[0].aval.dtype)]
        if name in ("pjit", "jit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call", "custom_vjp_call"):
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params.get("fun_jaxpr")
            if not hasattr(inner, "consts"):
                return self.jaxpr(inner, [], *operands)
            return self.closed(inner)(*operands)
        if name == "cond":
            return jax.lax.switch(operands[0], [self.closed(b) for b in params["branches"]], *operands[1:])
        if name == "while":
            c, b = params["cond_nconsts"], params["body_nconsts"]
            condition, body = self.closed(params["cond_jaxpr"]), self.closed(params["body_jaxpr"])
            return jax.lax.while_loop(lambda carry: condition(*operands[:c], *carry)[0],
                                      lambda carry: body(*operands[c:c + b], *carry), operands[c + b:])
        if name == "hlorun_resize":
            return [marker(f"hlorun.set_dimension_size.{params['dimension']}", operands[0].shape, operands[0].dtype, *operands)]
        if name == "scan":
            return self.scan(params, [v.aval for v in equation.outvars], operands)
        results = equation.primitive.bind(*operands, **self.at_bound(params))
        results = results if equation.primitive.multiple_results else [results]
        if name in ("broadcast_in_dim", "iota", "reshape", "dynamic_slice", "pad", "concatenate"):
            results = [self.cut(r, v.aval.shape, name) for r, v in zip(results, equation.outvars)]
        return results

    def scan(self, params, results, operands):
        """A loop over as many slices as there are, whose results are as long."""
        import jax
        import jax.numpy as jnp

        step, length = self.closed(params["jaxpr"]), params["length"]
        count = self.size(length) if hasattr(length, "_evaluate") else jnp.int32(length)
        consts, carries = params["num_consts"], params["num_carry"]
        arrays = operands[consts + carries:]
        outputs = [self.cut(jnp.zeros(self.at_bound(r.shape), r.dtype), r.shape, "scan") for r in results[carries:]]

        def body(state):
            trip, carry, outputs = state
            at = count - 1 - trip if params["reverse"] else trip
            slices = [jax.lax.dynamic_index_in_dim(x, at, keepdims=False) for x in arrays]
            new = step(*operands[:consts], *carry, *slices)
            outputs = [jax.lax.dynamic_update_index_in_dim(y, slice, at, 0) for y, slice in zip(outputs, new[carries:])]
            return trip + 1, new[:carries], outputs

        start = (jnp.int32(0), operands[consts:consts + carries], outputs)
        _, carry, outputs = jax.lax.while_loop(lambda state: state[0] < count, body, start)
        return [*carry, *outputs]

    def cut(self, value, shape, name):
        """`value` with its actual sizes."""
        dynamic = [d for d, n in enumerate(shape) if hasattr(n, "_evaluate")]
        if name == "reshape" and dynamic:
            return marker("hlorun.dynamic_reshape." + "_".join(map(str, dynamic)), value.shape, value.dtype, value,
                          *(self.size(n) if hasattr(n, "_evaluate") else np.int32(n) for n in shape))
        for d in dynamic:
            value = marker(f"hlorun.set_dimension_size.{d}", value.shape, value.dtype, value, self.size(shape[d]))
        return value


def marker(target, shape, dtype, *operands):
    """A custom-call that stands for an op that JAX has no word for; `finish` writes that op."""
    import jax

    return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(shape, dtype))(*operands)


def resize(array, dimension, size):
    """The first `size` (an s32 scalar of the program) elements along a dimension: a result of data-dependent size."""
    return resize_p().bind(array, size, dimension=dimension)


@functools.cache
def resize_p():
    """A primitive of its own, so that it may be traced at symbolic shapes."""
    from jax.extend import core

    primitive = core.Primitive("hlorun_resize")
    primitive.def_abstract_eval(lambda array, size, dimension: array)
    return primitive


def with_bounds(head, dimensions):
    """"%x = f32[8,20]{1,0} " -> "%x = f32[<=8,20]{1,0} " for dimension 0."""
    start, end = head.rindex("["), head.rindex("]")
    sizes = head[start + 1:end].split(",")
    for d in dimensions:
        sizes[d] = "<=" + sizes[d]
    return head[:start + 1] + ",".join(sizes) + head[end:]


def finish(text):
    """Markers become the ops that they stand for."""
    def replace(match):
        op, _, dimensions = match["target"].removeprefix("hlorun.").rpartition(".")
        head, operands, rest = match["head"], match["operands"], match["rest"]
        if op == "get_dimension_size":
            return f"{head}get-dimension-size({operands}), dimensions={{{dimensions}}}{rest}"
        head = with_bounds(head, [int(d) for d in dimensions.split("_")])
        if op == "set_dimension_size":
            return f"{head}set-dimension-size({operands}), dimensions={{{dimensions}}}{rest}"
        return f"{head}dynamic-reshape({operands}){rest}"

    # The shapes of the whole program are what its parameters and root have.
    text = re.sub(r", entry_computation_layout=\{.*?\}(?=, \w+=|\n)", "", text, count=1)
    text = re.sub(r"(?m)^(ENTRY %[\w.]+) \(.*\{$", r"\1 {", text)
    pattern = (r'(?P<head>[^\n]* = [^\n]*?)custom-call\((?P<operands>[^\n]*?)\), custom_call_target="(?P<target>hlorun\.[\w.]+)"'
               r'(?:, operand_layout_constraints=[^\n]*?\}(?=, api_version))?(?:, api_version=\w+)?'
               r'(?P<rest>[^\n]*?)(?:, backend_config=\{\})?(?=\n)')
    return re.sub(pattern, replace, text)


def export_text(function, specs, dtypes, bounds, hlo_text):
    """HLO text of `function` over arrays of shapes such as "b,10" (None: a scalar or static shape as given by a tuple).

    `bounds`: {"b": 8}. A symbol without a bound is exported at 16 and left for --bound or --bucket.
    """
    import jax
    from jax import export as jax_export

    symbols, missing = bounds_of([s for s in specs if isinstance(s, str)], bounds)
    bounds = {**bounds, **{name: 16 for name in missing}}
    scope = jax_export.SymbolicScope([f"{s} <= {bounds[s]}" for s in symbols if s not in missing])
    shapes = [jax_export.symbolic_shape(spec, scope=scope) if isinstance(spec, str) else tuple(spec) for spec in specs]
    traced = jax.jit(function, keep_unused=True).trace(*(jax.ShapeDtypeStruct(s, d) for s, d in zip(shapes, dtypes)))
    closed = traced.jaxpr
    places = [(s, leaf, d) for leaf, shape in enumerate(shapes) for d, n in enumerate(shape) for s in symbols if str(n) == s]

    def main(*arguments):
        sizes = {}
        for symbol, leaf, d in places:
            if symbol not in sizes:
                sizes[symbol] = marker(f"hlorun.get_dimension_size.{d}", (), np.int32, arguments[leaf])
        unknown = [s for s in symbols if s not in sizes]
        if unknown:
            raise SystemExit(f"no parameter has the size {', '.join(unknown)} itself, only what follows from it")
        results = Replay(bounds, sizes).jaxpr(closed.jaxpr, closed.consts, *arguments)
        return results

    static = [jax.ShapeDtypeStruct(tuple(int(n._evaluate(bounds)) if hasattr(n, "_evaluate") else n for n in s), d)
              for s, d in zip(shapes, dtypes)]
    text = finish(hlo_text(jax.jit(main, keep_unused=True).lower(*static).compiler_ir("hlo")))
    names = ",".join(f"{s}:{leaf}:{d}" for s, leaf, d in places)
    text = add_attribute(text, "hlorun.symbols", names)
    settings = [f"{leaf}:{d}={bounds[s]}" for s, leaf, d in places if s not in missing]
    command = [hlo_opt(), "-", "--passes=none", *(f"--bound={s}" for s in settings)]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def add_attribute(text, name, value):
    head, _, rest = text.partition("\n")
    if "frontend_attributes={" in head:
        head = head.replace("frontend_attributes={", f'frontend_attributes={{{name}="{value}",', 1)
    else:
        head += f', frontend_attributes={{{name}="{value}"}}'
    return head + "\n" + rest
