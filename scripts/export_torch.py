#!/usr/bin/env python3
"""A PyTorch program to a folder that hlorun runs: module.hlo, inputs/N.npy (weights first), expected/N.npy.

    python3 scripts/export_torch.py model.pt2 --output exported/
    python3 scripts/export_torch.py model.py:make --output exported/
    hlorun --inputs=exported/inputs --expect=exported/expected exported/module.hlo

model.pt2 is what torch.export.save writes; FILE.py:FUNCTION returns (module, arguments). The expected outputs are
PyTorch's own. A third value of FUNCTION's is torch.export's dynamic_shapes: {dimension: Dim(name, min, max)} or None for each
argument, in a tuple; sizes with a max become bounds (f32[<=8,4]), others stay open for --bound=NAME=N or --bucket=pow2. 64-bit integers become 32-bit ones, as JAX has them. Needs torch==2.13.0 torchax==0.0.13 jax==0.10.2.
From Python: export_torch.export(program, arguments, folder) with an ExportedProgram, before torchax is imported.
"""

import argparse
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from export_jax import hlo_text, load_symbol, write_folder  # noqa: E402  found through the path above


def import_torchax():
    """torchax 0.0.13 looks up overloads that torch 2.13 no longer has; while it is imported they are placeholders."""
    import torch._ops

    packet = torch._ops.OpOverloadPacket
    look_up = packet.__getattr__

    def look_up_or_placeholder(self, name):
        try:
            return look_up(self, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return (str(self), name)  # a key of torchax's tables that no operator has

    packet.__getattr__ = look_up_or_placeholder
    try:
        import torchax
        import torchax.export

        torchax.default_env()  # fills the tables of operators
        return torchax.export
    finally:
        packet.__getattr__ = look_up


def user_line(node):
    """(file, line, function) of the user's code that an fx node comes from, or None."""
    places = re.findall(r'File "([^"]+)", line (\d+), in (\w+)', node.stack_trace or "")
    places = [p for p in places if "/site-packages/" not in p[0] and not p[0].startswith("<")]
    return (places[-1][0], int(places[-1][1]), places[-1][2]) if places else None


def call_at(place, function):
    """Calls `function` from a frame that claims to be at `place`, which is what JAX writes into the module's metadata."""
    file, line, name = place
    name = name if name.isidentifier() else "forward"
    code = compile("\n" * (line - 1) + f"def {name}(): return call()", file, "exec")
    scope = {"call": function}
    exec(code, scope)
    return scope[name]()


def exclude_own_frames():
    """JAX names the innermost frame that is the user's: not this file's, nor torchax's."""
    try:
        from jax._src import source_info_util
    except ImportError:
        return
    for path in (os.path.abspath(__file__), *(m.__path__[0] for n, m in sys.modules.items() if n in ("torch", "torchax"))):
        source_info_util.register_exclusion(path)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """PyTorch's scaled_dot_product_attention of [..., heads, length, depth] in JAX."""
    import jax
    import jax.numpy as jnp

    if dropout_p:
        raise SystemExit("attention with dropout is random: export the module in eval mode")
    if enable_gqa:
        key, value = (jnp.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = jnp.einsum("...qd,...kd->...qk", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        scores = jnp.where(attn_mask, scores, -jnp.inf) if attn_mask.dtype == bool else scores + attn_mask
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores, axis=-1), value)


def make_interpreter(base):
    """torchax's interpreter, with PyTorch's control flow as JAX's."""
    import jax
    import torch

    class Interpreter(base):
        def branch(self, graph):
            return lambda *operands: type(self)(graph).run(*operands, enable_io_processing=False)

        def run_node(self, node):
            place = user_line(node)
            run = super().run_node
            return call_at(place, lambda: run(node)) if place else run(node)

        def call_function(self, target, args, kwargs):
            # torchax changes some of the lists that it is given (a convolution's padding), which fx forbids.
            args = tuple(list(a) if isinstance(a, list) else a for a in args)
            if target is torch.ops.aten.scaled_dot_product_attention.default:
                return attention(*args, **kwargs)
            if target is torch.ops.higher_order.cond:
                predicate, on_true, on_false, operands = args
                return jax.lax.cond(predicate, self.branch(on_true), self.branch(on_false), *operands)
            if target is torch.ops.higher_order.while_loop:
                condition, body, carried, shared = args
                return jax.lax.while_loop(lambda c: self.branch(condition)(*c, *shared),
                                          lambda c: tuple(self.branch(body)(*c, *shared)), tuple(carried))
            if target is torch.ops.higher_order.map_impl:
                body, mapped, shared = args
                return jax.lax.map(lambda row: tuple(self.branch(body)(*row, *shared)), tuple(mapped))
            return super().call_function(target, args, kwargs)

    return Interpreter


def to_numpy(tensor):
    import ml_dtypes
    import torch

    tensor = torch.as_tensor(tensor).detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def decomposed(program):
    """The ExportedProgram in PyTorch's core operators. Its attention for CPUs claims other strides than it gives where there are several sequences
    (GPT-2 in batches), and a view of them is refused; then attention stays one operator, for `attention`."""
    import torch

    try:
        return program.run_decompositions()
    except ValueError:
        table = torch.export.default_decompositions()
        del table[torch.ops.aten.scaled_dot_product_attention.default]
        program = program.run_decompositions(table)
    # torchax asks for PyTorch's table again, then for its own.
    program.run_decompositions = lambda own=None: program if own is None else type(program).run_decompositions(program, own)
    return program


def to_jax(program):
    """(the program's states as NumPy arrays, a JAX function of states and inputs, flattened) of an ExportedProgram."""
    import torch

    program = decomposed(program)
    torchax_export = import_torchax()
    import jax

    exclude_own_frames()
    if not hasattr(torchax_export.JaxInterpreter, "branch"):
        torchax_export.JaxInterpreter = make_interpreter(torchax_export.JaxInterpreter)
    with torch.device("cpu"):
        _, states, function = torchax_export.exported_program_to_jax(program, export_raw=True)
    states = [np.asarray(jax.numpy.asarray(to_numpy(tensor))) for tensor in states]

    def main(*leaves):
        return function(list(leaves[:len(states)]), tuple(leaves[len(states):]))

    return states, main


def symbolic_specs(program, states, arguments, dynamic_shapes):
    """(a shape or "b,10" for each state and argument, {name: bound}) of what torch.export was told of sizes."""
    specs, limits = [tuple(s.shape) for s in states], {}
    for tensor, dims in zip(arguments, dynamic_shapes):
        shape = [str(n) for n in tensor.shape]
        for d, dim in (dims or {}).items():
            name = dim if isinstance(dim, str) else dim.__name__
            shape[d] = name
            most = getattr(dim, "max", None)
            if isinstance(most, int) and most < 2**31:
                limits[name] = most
        specs.append(",".join(shape) if dims else tuple(tensor.shape))
    return specs, limits


def export(program, arguments, folder, dynamic_shapes=None):
    """Writes an ExportedProgram, called with the tuple `arguments`, to `folder`."""
    import torch

    flat = torch.utils._pytree.tree_leaves(arguments)
    with torch.no_grad():
        expected = [to_numpy(leaf) for leaf in torch.utils._pytree.tree_leaves(program.module()(*arguments))]
    states, main = to_jax(program)
    import jax

    inputs = [*states, *(np.asarray(jax.numpy.asarray(to_numpy(tensor))) for tensor in flat)]
    if dynamic_shapes:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
        import bounded

        specs, limits = symbolic_specs(program, states, flat, dynamic_shapes)
        text = bounded.export_text(main, specs, [a.dtype for a in inputs], limits, hlo_text)
    else:
        text = hlo_text(jax.jit(main, keep_unused=True).lower(*inputs).compiler_ir("hlo"))
    write_folder(folder, text, inputs, expected)


def load(model):
    """An ExportedProgram, its arguments and its dynamic_shapes (None for static), from MODEL.pt2 or FILE.py:FUNCTION."""
    import torch

    if model.endswith(".pt2"):
        if not os.path.exists(model):
            raise SystemExit(f"there is no file {model}")
        program = torch.export.load(model)
        if program.example_inputs is None:
            raise SystemExit(f"{model} holds no example inputs: export it with them")
        arguments, keywords = program.example_inputs
        if keywords:
            raise SystemExit(f"{model} takes keyword arguments ({', '.join(keywords)}): export it with positional ones")
        return program, arguments, None
    module, arguments, *shapes = load_symbol(model)()
    shapes = shapes[0] if shapes else None
    return torch.export.export(module.eval(), arguments, dynamic_shapes=shapes), arguments, shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MODEL.pt2 or FILE.py:FUNCTION")
    parser.add_argument("-o", "--output", required=True, help="the folder")
    flags = parser.parse_args()
    program, arguments, shapes = load(flags.model)
    export(program, arguments, flags.output, shapes)
    print(f"hlorun --inputs={flags.output}/inputs --expect={flags.output}/expected {flags.output}/module.hlo")


if __name__ == "__main__":
    main()
