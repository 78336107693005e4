#!/usr/bin/env python3
"""Published architectures with random weights, exported from PyTorch: on hlorun and XLA:CPU in alternation.

    python3 bench/published.py [--hlorun build/bin/hlorun] [--rounds 2] [--iterations 6] [--keep FOLDER] [--json FILE] [NAME ...]

Image networks of timm and torchvision, text, speech and vision transformers of transformers, diffusion networks of diffusers, at a part of
their width or depth, some at all of it (bench/published_programs.py); NAME_bf16 is the same in bf16, NAME_of_8_images of eight images at once,
NAME_train a step of training: statistics of the batch, gradients, SGD. They are other people's programs: a search for what hlorun does
wrong or slowly. Each is exported once into --keep by scripts/export_torch.py, in a process of its own; hlorun's result is compared with XLA:CPU's in each round. Ratios are hlorun's time over
XLA:CPU's; only those within one run count. Needs jax==0.10.2 torch==2.13.0 torchax==0.0.13 torchvision==0.28.0 timm==1.0.31
transformers==5.24.0 diffusers==0.42.1.
"""
import os
import sys

from networks import compare, measure_exported
from published_programs import BATCH, DIFFUSIONS, EIGHT, IMAGES, IN_BF16, IN_EIGHTS, LOW, SIDES, STEP, TEXTS, TRAINED, VISION
from runs import HERE

sys.path[:0] = [os.path.join(HERE, "..", "scripts")]


def declare_vision_operators():
    """The wheel's own operators are compiled for another torch; detection alone needs them, but torchvision, timm and transformers name them."""
    import torch  # pylint: disable=import-outside-toplevel

    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
        library.define(operator)
    return library


def from_torchvision(name):
    import torch  # pylint: disable=import-outside-toplevel
    import torchvision  # pylint: disable=import-outside-toplevel

    group, function, shape = VISION[name]
    segments = group == "segmentation"
    models = getattr(torchvision.models, group) if group else torchvision.models
    model = getattr(models, function)(weights=None, **({"weights_backbone": None} if segments else {}))
    return model, ("x",), (torch.randn(shape),), (lambda result: result["out"]) if segments else None


def made(what, shape):
    import torch  # pylint: disable=import-outside-toplevel

    limits = {"words": 1000, "few": 30, "ones": 2}
    return torch.randn(shape) if what == "reals" else torch.randint(1 if what == "ones" else 0, limits[what], shape)


def from_transformers(name):
    import torch  # pylint: disable=import-outside-toplevel
    import transformers  # pylint: disable=import-outside-toplevel

    kind, configuration, sizes, inputs = TEXTS[name]
    parts = {field: getattr(transformers, value[0])(**value[1]) for field, value in sizes.items() if isinstance(value, tuple)}
    settings = getattr(transformers, configuration)(**{**sizes, **parts})
    settings._experts_implementation = "batched_mm"  # pylint: disable=protected-access
    try:
        settings._attn_implementation = "sdpa"  # pylint: disable=protected-access
        model = getattr(transformers, kind)(settings)
    except ValueError:  # it has no other attention
        settings._attn_implementation = "eager"  # pylint: disable=protected-access
        model = getattr(transformers, kind)(settings)
    return model, tuple(word for word, _, _ in inputs), tuple(made(what, shape) for _, shape, what in inputs), lambda result: result[0]


def from_diffusers(name):
    import diffusers  # pylint: disable=import-outside-toplevel

    kind, sizes, inputs = DIFFUSIONS[name]
    model = getattr(diffusers, kind)(**sizes)
    return (model, tuple(word for word, _, _ in inputs), tuple(made(what, shape) for _, shape, what in inputs),
            lambda result: result[0] if isinstance(result, tuple) else result.sample)


def from_timm(name):
    import timm  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel

    side = SIDES.get(name, 224)
    return timm.create_model(name, pretrained=False), ("x",), (torch.randn(1, 3, side, side),), None


def export(name, folder):
    import torch  # pylint: disable=import-outside-toplevel

    import export_torch  # pylint: disable=import-outside-toplevel

    torch.manual_seed(0)
    operators = declare_vision_operators()  # pylint: disable=unused-variable
    whole = name.removesuffix(LOW).removesuffix(STEP).removesuffix(EIGHT)
    makers = {from_torchvision: VISION, from_transformers: TEXTS, from_diffusers: DIFFUSIONS, from_timm: IMAGES}
    model, names, batch, pick = next(make for make, known in makers.items() if whole in known)(whole)

    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            result = self.model(**dict(zip(names, tensors))) if whole in {**TEXTS, **DIFFUSIONS} else self.model(*tensors)
            return pick(result) if pick else result

    program = Program().eval()
    if name.endswith(LOW):
        program = program.to(torch.bfloat16)
        batch = tuple(tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor for tensor in batch)
    if name.endswith(EIGHT):
        batch = tuple(torch.randn((8, *tensor.shape[1:])) for tensor in batch)
    if name.endswith(STEP):
        return export_step(program, tuple(torch.cat([tensor.roll(shift, -1) for shift in range(BATCH)]) for tensor in batch), folder)
    with torch.no_grad():
        export_torch.export(torch.export.export(program, batch), batch, folder)


def export_step(program, batch, folder):
    """A step of SGD on the logarithm of the mean square of what `program` returns; norms of batches take the batch's statistics. Weights that are
    zero or one at first are moved a little: a result that is zero but for its gradient's rounding says nothing."""
    import torch  # pylint: disable=import-outside-toplevel

    import export_jax  # pylint: disable=import-outside-toplevel
    import export_torch  # pylint: disable=import-outside-toplevel

    for module in program.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):  # pylint: disable=protected-access
            module.train()
    states, main = export_torch.to_jax(torch.export.export(program, batch))
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel

    inputs = [jnp.asarray(export_torch.to_numpy(tensor)) for tensor in batch]
    states = [state + 0.05 * torch.rand(state.shape).numpy() if state.ndim == 1 and state.dtype == "float32" else state for state in states]
    floats = [i for i, state in enumerate(states) if jnp.issubdtype(state.dtype, jnp.floating)]

    def loss(weights, others, *arrays):
        every = list(others)
        for i, weight in zip(floats, weights):
            every[i] = weight
        return sum(jnp.log(jnp.mean(jnp.square(leaf))) for leaf in jax.tree.leaves(main(*every, *arrays)) if jnp.issubdtype(leaf.dtype, jnp.floating))

    def step(others, *arrays):
        weights = [others[i] for i in floats]
        value, gradients = jax.value_and_grad(loss)(weights, others, *arrays)
        return value, [weight - gradient for weight, gradient in zip(weights, gradients)]

    lowered = jax.jit(step, keep_unused=True).lower(states, *inputs)
    export_jax.write_program(folder, export_jax.hlo_text(lowered.compiler_ir("hlo")), [*states, *inputs])


def row_of(name, _, flags, folder):
    return measure_exported(name, export, flags, folder)


if __name__ == "__main__":
    sys.exit(compare(__doc__, dict.fromkeys([*IMAGES, *VISION, *TEXTS, *DIFFUSIONS, *IN_BF16, *IN_EIGHTS, *TRAINED]), row_of, rounds=2, iterations=6))
