#!/usr/bin/env python3
"""Published architectures with random weights, exported from PyTorch: on hlorun and XLA:CPU in alternation.

    python3 bench/published.py [--hlorun build/bin/hlorun] [--rounds 2] [--iterations 6] [--keep FOLDER] [--json FILE] [NAME ...]

Image networks of timm and torchvision, text, speech and vision transformers of transformers at a part of their width or depth; NAME_bf16 is the
same in bf16, NAME_train a step of training: statistics of the batch, gradients, SGD. They are other people's programs: a search for what hlorun does wrong or slowly. Each is exported once into --keep by
scripts/export_torch.py, in a process of its own; hlorun's result is compared with XLA:CPU's in each round. Ratios are hlorun's time over
XLA:CPU's; only those within one run count. Needs jax==0.10.2 torch==2.13.0 torchax==0.0.13 torchvision==0.28.0 timm==1.0.31 transformers==5.24.0.
"""
import multiprocessing
import os
import sys

from networks import compare, measure
from runs import HERE

sys.path[:0] = [os.path.join(HERE, "..", "scripts")]

# timm's: images of 224 x 224 unless the table says otherwise.
IMAGES = """
mobilenetv3_large_100 efficientnet_b0 efficientnet_lite0 ghostnet_100 mnasnet_100 mixnet_s regnety_008 regnetx_004 densenet121 repvgg_a0
res2net50_26w_4s seresnext26t_32x4d resnest14d vovnet39a cspdarknet53 xception41 hrnet_w18_small dla34 nf_resnet50 convnext_pico convnextv2_atto
inception_next_tiny efficientformer_l1 fastvit_t8 edgenext_small mobilevit_s mobilevitv2_100 mobileone_s1 repvit_m0_9 starnet_s2 hgnetv2_b0 lcnet_100
tinynet_a dpn68 selecsls42b resnet18 resnet26d wide_resnet50_2 vgg11_bn deit_tiny_patch16_224 cait_xxs24_224 crossvit_tiny_240 mixer_s16_224
resmlp_12_224 gmlp_s16_224 poolformer_s12 maxvit_rmlp_pico_rw_256 coat_lite_tiny convit_tiny levit_128 pit_ti_224 focalnet_tiny_srf
twins_pcpvt_small tnt_s_patch16_224 xcit_tiny_12_p16_224 volo_d1_224 beit_base_patch16_224 eva02_tiny_patch14_224 hiera_tiny_224 mambaout_femto
tiny_vit_5m_224 visformer_tiny swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 nest_tiny davit_tiny gcvit_xxtiny mvitv2_tiny
""".split()
SIDES = {"crossvit_tiny_240": 240, "maxvit_rmlp_pico_rw_256": 256}
# torchvision's: where it is, its name there, the shape of its input.
VISION = {
    "deeplab": ("segmentation", "deeplabv3_mobilenet_v3_large", (1, 3, 224, 224)),
    "lraspp": ("segmentation", "lraspp_mobilenet_v3_large", (1, 3, 224, 224)),
    "fcn": ("segmentation", "fcn_resnet50", (1, 3, 128, 128)),
    "r3d": ("video", "r3d_18", (1, 3, 8, 112, 112)),
    "r21d": ("video", "r2plus1d_18", (1, 3, 8, 112, 112)),
    "s3d": ("video", "s3d", (1, 3, 16, 224, 224)),
    "mvit_video": ("video", "mvit_v2_s", (1, 3, 16, 224, 224)),
    "shufflenet": ("", "shufflenet_v2_x1_0", (1, 3, 224, 224)),
    "squeezenet": ("", "squeezenet1_1", (1, 3, 224, 224)),
    "alexnet": ("", "alexnet", (8, 3, 224, 224)),
    "vitb": ("", "vit_b_16", (1, 3, 224, 224)),
}
ENCODER = {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536}
DECODER = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1376, "vocab_size": 8000, "use_cache": False}
GROUPED = {**DECODER, "num_key_value_heads": 2}
WORDS, MASK, PROMPT = ("input_ids", (2, 128), "words"), ("attention_mask", (2, 128), "ones"), ("input_ids", (1, 128), "words")
IMAGE = ("pixel_values", (1, 3, 224, 224), "reals")
# transformers': class, configuration, its arguments, inputs by name.
TEXTS = {
    "bert": ("BertModel", "BertConfig", ENCODER, [WORDS, MASK]),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 384, "n_layers": 4, "n_heads": 6, "hidden_dim": 1536}, [WORDS, MASK]),
    "albert": ("AlbertModel", "AlbertConfig", {**ENCODER, "embedding_size": 128}, [WORDS, MASK]),
    "electra": ("ElectraModel", "ElectraConfig", ENCODER, [WORDS, MASK]),
    "mpnet": ("MPNetModel", "MPNetConfig", ENCODER, [WORDS, MASK]),
    "deberta": ("DebertaV2Model", "DebertaV2Config",
                {**ENCODER, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 64, "share_att_key": True}, [WORDS, MASK]),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000, "use_cache": False}, [PROMPT]),
    "gptneox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", DECODER, [PROMPT]),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000, "use_cache": False},
              [PROMPT, ("attention_mask", (1, 128), "ones")]),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, [PROMPT]),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 64}, [PROMPT]),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 64}, [PROMPT]),
    "phi": ("PhiForCausalLM", "PhiConfig", DECODER, [PROMPT]),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 8000, "use_cache": False},
              [("input_ids", (1, 64), "words")]),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config",
               {"hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 8000, "num_heads": 8, "head_dim": 64, "n_groups": 1, "state_size": 32,
                "chunk_size": 64, "use_cache": False}, [PROMPT]),
    "t5": ("T5EncoderModel", "T5Config", {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_kv": 64, "d_ff": 1536, "feed_forward_proj": "gated-gelu"},
           [WORDS, MASK]),
    "fnet": ("FNetModel", "FNetConfig", {"hidden_size": 384, "num_hidden_layers": 4, "intermediate_size": 1536}, [WORDS]),
    "whisper": ("WhisperModel", "WhisperConfig",
                {"d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                 "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "use_cache": False},
                [("input_features", (1, 80, 3000), "reals"), ("decoder_input_ids", (1, 16), "words")]),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", {**ENCODER, "apply_spec_augment": False}, [("input_values", (1, 16000), "reals")]),
    "clipv": ("CLIPVisionModel", "CLIPVisionConfig", ENCODER, [IMAGE]),
    "clipt": ("CLIPTextModel", "CLIPTextConfig", ENCODER, [("input_ids", (2, 77), "words"), ("attention_mask", (2, 77), "ones")]),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", ENCODER, [IMAGE]),
    "dinov2": ("Dinov2Model", "Dinov2Config",
               {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "image_size": 224, "patch_size": 14}, [IMAGE]),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, [("pixel_values", (1, 3, 256, 256), "reals")]),
    "yolos": ("YolosModel", "YolosConfig", {**ENCODER, "image_size": [224, 224]}, [IMAGE]),
    "videomae": ("VideoMAEModel", "VideoMAEConfig", {**ENCODER, "image_size": 112, "num_frames": 8}, [("pixel_values", (1, 8, 3, 112, 112), "reals")]),
    "timesformer": ("TimesformerModel", "TimesformerConfig", {**ENCODER, "image_size": 112, "num_frames": 4},
                    [("pixel_values", (1, 4, 3, 112, 112), "reals")]),
    "patchtst": ("PatchTSTForPrediction", "PatchTSTConfig",
                 {"num_input_channels": 7, "context_length": 128, "prediction_length": 24, "d_model": 128, "num_hidden_layers": 3,
                  "num_attention_heads": 8, "ffn_dim": 256}, [("past_values", (8, 128, 7), "reals")]),
    "sam": ("SamVisionModel", "SamVisionConfig",
            {"image_size": 512, "hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "global_attn_indexes": [3], "window_size": 14},
            [("pixel_values", (1, 3, 512, 512), "reals")]),
    "swin2sr": ("Swin2SRForImageSuperResolution", "Swin2SRConfig", {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
                [("pixel_values", (1, 3, 64, 64), "reals")]),
}
LOW = "_bf16"
STEP, BATCH = "_train", 4
TRAINED = [name + STEP for name in (
    "resnet18", "mobilenetv3_large_100", "efficientnet_b0", "ghostnet_100", "densenet121", "regnety_008", "convnext_pico", "inception_next_tiny",
    "fastvit_t8", "edgenext_small", "mobilevit_s", "dla34", "deit_tiny_patch16_224", "mixer_s16_224", "poolformer_s12", "swin_tiny_patch4_window7_224",
    "xcit_tiny_12_p16_224", "mambaout_femto", "coat_lite_tiny", "lraspp", "r3d", "squeezenet", "shufflenet", "bert", "albert", "deberta", "gpt2", "llama",
    "gemma2", "mamba", "mamba2", "t5", "fnet", "whisper", "wav2vec2", "clipt", "segformer", "patchtst", "swin2sr")]
IN_BF16 = [name + LOW for name in ("bert", "llama", "gemma2", "t5", "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "resnet18", "convnext_pico")]


def from_torchvision(name):
    import torch  # pylint: disable=import-outside-toplevel

    # The wheel's own operators are compiled for another torch; detection alone needs them.
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
        library.define(operator)
    import torchvision  # pylint: disable=import-outside-toplevel

    group, function, shape = VISION[name]
    segments = group == "segmentation"
    models = getattr(torchvision.models, group) if group else torchvision.models
    model = getattr(models, function)(weights=None, **({"weights_backbone": None} if segments else {}))
    return model, ("x",), (torch.randn(shape),), (lambda result: result["out"]) if segments else None


def from_transformers(name):
    import torch  # pylint: disable=import-outside-toplevel
    import transformers  # pylint: disable=import-outside-toplevel

    kind, configuration, sizes, inputs = TEXTS[name]
    make = {"words": lambda shape: torch.randint(0, 1000, shape), "few": lambda shape: torch.randint(0, 30, shape), "ones": lambda shape: torch.ones(shape, dtype=torch.int64), "reals": torch.randn}
    settings = getattr(transformers, configuration)(**sizes)
    try:
        settings._experts_implementation = "batched_mm"; settings._attn_implementation = "sdpa"  # pylint: disable=protected-access
        model = getattr(transformers, kind)(settings)
    except ValueError:  # it has no other attention
        settings._attn_implementation = "eager"  # pylint: disable=protected-access
        model = getattr(transformers, kind)(settings)
    return model, tuple(word for word, _, _ in inputs), tuple(make[what](shape) for _, shape, what in inputs), lambda result: result[0]


def from_timm(name):
    import timm  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel

    side = SIDES.get(name, 224)
    return timm.create_model(name, pretrained=False), ("x",), (torch.randn(1, 3, side, side),), None


def export(name, folder):
    import torch  # pylint: disable=import-outside-toplevel

    import export_torch  # pylint: disable=import-outside-toplevel

    torch.manual_seed(0)
    whole = name.removesuffix(LOW).removesuffix(STEP)
    make = from_torchvision if whole in VISION else from_transformers if whole in TEXTS else from_timm
    model, names, batch, pick = make(whole)

    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            result = self.model(**dict(zip(names, tensors))) if whole in TEXTS else self.model(*tensors)
            return pick(result) if pick else result

    program = Program().eval()
    if name.endswith(LOW):
        program = program.to(torch.bfloat16)
        batch = tuple(tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor for tensor in batch)
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
    export_jax.save_arrays(os.path.join(folder, "inputs"), [*states, *inputs])
    with open(os.path.join(folder, "module.hlo"), "w", encoding="utf-8") as file:
        file.write(export_jax.hlo_text(lowered.compiler_ir("hlo")))


def row_of(name, _, flags, folder):
    if not os.path.exists(os.path.join(folder, "module.hlo")):
        # torchax stays in the way of the next export.
        process = multiprocessing.get_context("spawn").Process(target=export, args=(name, folder))
        process.start()
        process.join()
        if process.exitcode != 0:
            return {"network": name, "error": "could not be exported"}
    return measure(name, None, flags, folder)


if __name__ == "__main__":
    sys.exit(compare(__doc__, dict.fromkeys([*IMAGES, *VISION, *TEXTS, *IN_BF16, *TRAINED]), row_of, rounds=2, iterations=6))
