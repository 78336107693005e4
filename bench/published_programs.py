"""The programs of bench/published.py: names of timm's networks, and where the others are with their sizes and inputs."""

# timm's: images of 224 x 224 unless the table says otherwise.
IMAGES = """
mobilenetv3_large_100 efficientnet_b0 efficientnet_lite0 ghostnet_100 mnasnet_100 mixnet_s regnety_008 regnetx_004 densenet121 repvgg_a0
res2net50_26w_4s seresnext26t_32x4d resnest14d vovnet39a cspdarknet53 xception41 hrnet_w18_small dla34 nf_resnet50 convnext_pico convnextv2_atto
inception_next_tiny efficientformer_l1 fastvit_t8 edgenext_small mobilevit_s mobilevitv2_100 mobileone_s1 repvit_m0_9 starnet_s2 hgnetv2_b0 lcnet_100
tinynet_a dpn68 selecsls42b resnet18 resnet26d wide_resnet50_2 vgg11_bn deit_tiny_patch16_224 cait_xxs24_224 crossvit_tiny_240 mixer_s16_224
resmlp_12_224 gmlp_s16_224 poolformer_s12 maxvit_rmlp_pico_rw_256 coat_lite_tiny convit_tiny levit_128 pit_ti_224 focalnet_tiny_srf
twins_pcpvt_small tnt_s_patch16_224 xcit_tiny_12_p16_224 volo_d1_224 beit_base_patch16_224 eva02_tiny_patch14_224 hiera_tiny_224 mambaout_femto
tiny_vit_5m_224 visformer_tiny swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 nest_tiny davit_tiny gcvit_xxtiny mvitv2_tiny
convnext_small convnext_tiny efficientnet_b3 vit_base_patch16_224 vit_small_patch16_224 swin_small_patch4_window7_224 mixer_b16_224 resnet101
resnext50_32x4d seresnet50 maxvit_tiny_tf_224 tf_efficientnet_lite4 xception65 inception_v4 nasnetalarge
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
LONG = ("input_ids", (1, 512), "words")
WIDE = {
    **GROUPED,
    "vocab_size": 32000,
    "hidden_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 5632,
}
IMAGE = ("pixel_values", (1, 3, 224, 224), "reals")


def picture(side):
    return ("pixel_values", (1, 3, side, side), "reals")


BOTH = {
    "d_model": 384,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "decoder_ffn_dim": 1536,
    "vocab_size": 8000,
    "use_cache": False,
}
ANSWER = ("decoder_input_ids", (2, 32), "words")
DETECTION = {
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 512,
    "decoder_ffn_dim": 512,
    "num_queries": 50,
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "backbone_config": (
        "ResNetConfig",
        {"out_features": ["stage4"], "depths": [2, 2, 2, 2], "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]},
    ),
}
# transformers': class, configuration, its arguments (a pair is a configuration within it), inputs by name.
TEXTS = {
    "bert": ("BertModel", "BertConfig", ENCODER, [WORDS, MASK]),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 384, "n_layers": 4, "n_heads": 6, "hidden_dim": 1536}, [WORDS, MASK]),
    "albert": ("AlbertModel", "AlbertConfig", {**ENCODER, "embedding_size": 128}, [WORDS, MASK]),
    "electra": ("ElectraModel", "ElectraConfig", ENCODER, [WORDS, MASK]),
    "mpnet": ("MPNetModel", "MPNetConfig", ENCODER, [WORDS, MASK]),
    "deberta": (
        "DebertaV2Model",
        "DebertaV2Config",
        {**ENCODER, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 64, "share_att_key": True},
        [WORDS, MASK],
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000, "use_cache": False}, [PROMPT]),
    "gptneox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", DECODER, [PROMPT]),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"hidden_size": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000, "use_cache": False},
        [PROMPT, ("attention_mask", (1, 128), "ones")],
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, [PROMPT]),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 64}, [PROMPT]),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 64}, [PROMPT]),
    "phi": ("PhiForCausalLM", "PhiConfig", DECODER, [PROMPT]),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 8000, "use_cache": False},
        [("input_ids", (1, 64), "words")],
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {
            "hidden_size": 256,
            "num_hidden_layers": 2,
            "vocab_size": 8000,
            "num_heads": 8,
            "head_dim": 64,
            "n_groups": 1,
            "state_size": 32,
            "chunk_size": 64,
            "use_cache": False,
        },
        [PROMPT],
    ),
    "t5": (
        "T5EncoderModel",
        "T5Config",
        {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_kv": 64, "d_ff": 1536, "feed_forward_proj": "gated-gelu"},
        [WORDS, MASK],
    ),
    "fnet": ("FNetModel", "FNetConfig", {"hidden_size": 384, "num_hidden_layers": 4, "intermediate_size": 1536}, [WORDS]),
    "whisper": (
        "WhisperModel",
        "WhisperConfig",
        {
            "d_model": 256,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 1024,
            "decoder_ffn_dim": 1024,
            "use_cache": False,
        },
        [("input_features", (1, 80, 3000), "reals"), ("decoder_input_ids", (1, 16), "words")],
    ),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", {**ENCODER, "apply_spec_augment": False}, [("input_values", (1, 16000), "reals")]),
    "clipv": ("CLIPVisionModel", "CLIPVisionConfig", ENCODER, [IMAGE]),
    "clipt": ("CLIPTextModel", "CLIPTextConfig", ENCODER, [("input_ids", (2, 77), "words"), ("attention_mask", (2, 77), "ones")]),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", ENCODER, [IMAGE]),
    "dinov2": (
        "Dinov2Model",
        "Dinov2Config",
        {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "image_size": 224, "patch_size": 14},
        [IMAGE],
    ),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, [("pixel_values", (1, 3, 256, 256), "reals")]),
    "yolos": ("YolosModel", "YolosConfig", {**ENCODER, "image_size": [224, 224]}, [IMAGE]),
    "videomae": (
        "VideoMAEModel",
        "VideoMAEConfig",
        {**ENCODER, "image_size": 112, "num_frames": 8},
        [("pixel_values", (1, 8, 3, 112, 112), "reals")],
    ),
    "timesformer": (
        "TimesformerModel",
        "TimesformerConfig",
        {**ENCODER, "image_size": 112, "num_frames": 4},
        [("pixel_values", (1, 4, 3, 112, 112), "reals")],
    ),
    "patchtst": (
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        {
            "num_input_channels": 7,
            "context_length": 128,
            "prediction_length": 24,
            "d_model": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 8,
            "ffn_dim": 256,
        },
        [("past_values", (8, 128, 7), "reals")],
    ),
    "sam": (
        "SamVisionModel",
        "SamVisionConfig",
        {"image_size": 512, "hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "global_attn_indexes": [3], "window_size": 14},
        [("pixel_values", (1, 3, 512, 512), "reals")],
    ),
    "swin2sr": (
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
        [("pixel_values", (1, 3, 64, 64), "reals")],
    ),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {
            "hidden_size": 512,
            "word_embed_proj_dim": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "ffn_dim": 2048,
            "vocab_size": 8000,
            "use_cache": False,
        },
        [PROMPT],
    ),
    "mpt": ("MptForCausalLM", "MptConfig", {"d_model": 512, "n_heads": 8, "n_layers": 4, "vocab_size": 8000, "use_cache": False}, [PROMPT]),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", GROUPED, [PROMPT]),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", DECODER, [PROMPT]),
    "granite": ("GraniteForCausalLM", "GraniteConfig", GROUPED, [PROMPT]),
    "cohere": ("CohereForCausalLM", "CohereConfig", GROUPED, [PROMPT]),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", {**GROUPED, "head_dim": 64, "pad_token_id": 0}, [PROMPT]),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", GROUPED, [PROMPT]),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}, [PROMPT]),
    "gptoss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GROUPED, "head_dim": 64, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 512},
        [PROMPT],
    ),
    "deepseek": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **DECODER,
            "num_key_value_heads": 8,
            "moe_intermediate_size": 256,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "q_lora_rank": 128,
            "kv_lora_rank": 64,
            "qk_rope_head_dim": 32,
            "qk_nope_head_dim": 32,
            "v_head_dim": 64,
            "first_k_dense_replace": 1,
        },
        [PROMPT],
    ),
    "recurrentgemma": (
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        {
            "hidden_size": 512,
            "num_hidden_layers": 3,
            "num_attention_heads": 8,
            "intermediate_size": 1536,
            "lru_width": 512,
            "vocab_size": 8000,
            "use_cache": False,
        },
        [PROMPT],
    ),
    "rwkv": (
        "RwkvForCausalLM",
        "RwkvConfig",
        {"hidden_size": 256, "attention_hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 4000, "use_cache": False},
        [("input_ids", (1, 32), "words")],
    ),
    "xlnet": ("XLNetModel", "XLNetConfig", {"d_model": 384, "n_layer": 4, "n_head": 6, "d_inner": 1536, "vocab_size": 8000}, [WORDS, MASK]),
    "funnel": ("FunnelModel", "FunnelConfig", {"d_model": 384, "n_head": 6, "d_head": 64, "d_inner": 1536, "block_sizes": [2, 2, 2]}, [WORDS, MASK]),
    "roformer": ("RoFormerModel", "RoFormerConfig", ENCODER, [WORDS, MASK]),
    "bigbird": (
        "BigBirdModel",
        "BigBirdConfig",
        {**ENCODER, "block_size": 16, "attention_type": "block_sparse"},
        [("input_ids", (1, 512), "words"), ("attention_mask", (1, 512), "ones")],
    ),
    "convbert": ("ConvBertModel", "ConvBertConfig", {**ENCODER, "embedding_size": 384}, [WORDS, MASK]),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", {**ENCODER, "embedding_size": 384}, [WORDS, MASK]),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", {"num_hidden_layers": 6}, [WORDS, MASK]),
    "canine": ("CanineModel", "CanineConfig", ENCODER, [("input_ids", (1, 256), "words"), ("attention_mask", (1, 256), "ones")]),
    "perceiver": (
        "PerceiverModel",
        "PerceiverConfig",
        {"d_model": 256, "d_latents": 512, "num_latents": 128, "num_self_attends_per_block": 4},
        [("inputs", (1, 512, 256), "reals")],
    ),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        {
            **ENCODER,
            "local_attention": 64,
            "vocab_size": 8000,
            "pad_token_id": 0,
            "cls_token_id": 1,
            "sep_token_id": 2,
            "eos_token_id": 2,
            "bos_token_id": 1,
        },
        [WORDS, MASK],
    ),
    "esm": (
        "EsmModel",
        "EsmConfig",
        {**ENCODER, "vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32, "position_embedding_type": "rotary"},
        [("input_ids", (2, 128), "few"), MASK],
    ),
    "ibert": ("IBertModel", "IBertConfig", {**ENCODER, "quant_mode": False}, [WORDS, MASK]),
    "bart": ("BartModel", "BartConfig", BOTH, [WORDS, MASK, ANSWER]),
    "pegasus": ("PegasusModel", "PegasusConfig", BOTH, [WORDS, MASK, ANSWER]),
    "m2m": ("M2M100Model", "M2M100Config", BOTH, [WORDS, MASK, ANSWER]),
    "t5full": (
        "T5Model",
        "T5Config",
        {"d_model": 384, "num_layers": 3, "num_decoder_layers": 3, "num_heads": 6, "d_kv": 64, "d_ff": 1536, "use_cache": False},
        [WORDS, MASK, ANSWER],
    ),
    "hubert": ("HubertModel", "HubertConfig", {**ENCODER, "apply_spec_augment": False}, [("input_values", (1, 16000), "reals")]),
    "wavlm": ("WavLMModel", "WavLMConfig", {**ENCODER, "apply_spec_augment": False}, [("input_values", (1, 16000), "reals")]),
    "data2vec_audio": (
        "Data2VecAudioModel",
        "Data2VecAudioConfig",
        {**ENCODER, "apply_spec_augment": False},
        [("input_values", (1, 16000), "reals")],
    ),
    "sew": ("SEWModel", "SEWConfig", {**ENCODER, "apply_spec_augment": False}, [("input_values", (1, 16000), "reals")]),
    "w2vbert": ("Wav2Vec2BertModel", "Wav2Vec2BertConfig", {**ENCODER, "apply_spec_augment": False}, [("input_features", (1, 200, 160), "reals")]),
    "conformer": (
        "Wav2Vec2ConformerModel",
        "Wav2Vec2ConformerConfig",
        {**ENCODER, "apply_spec_augment": False},
        [("input_values", (1, 16000), "reals")],
    ),
    "s2t": ("Speech2TextModel", "Speech2TextConfig", {**BOTH, "vocab_size": 4000}, [("input_features", (2, 400, 80), "reals"), ANSWER]),
    "ast": ("ASTModel", "ASTConfig", {**ENCODER, "max_length": 512}, [("input_values", (1, 512, 128), "reals")]),
    "dac": ("DacModel", "DacConfig", {"encoder_hidden_size": 32, "decoder_hidden_size": 512}, [("input_values", (1, 1, 16384), "reals")]),
    "hifigan": ("SpeechT5HifiGan", "SpeechT5HifiGanConfig", {}, [("spectrogram", (1, 60, 80), "reals")]),
    "moonshine": (
        "MoonshineModel",
        "MoonshineConfig",
        {"hidden_size": 288, "use_cache": False},
        [("input_values", (1, 16000), "reals"), ("decoder_input_ids", (1, 16), "words")],
    ),
    "beit": ("Data2VecVisionModel", "Data2VecVisionConfig", {**ENCODER, "use_mask_token": False}, [IMAGE]),
    "cvt": ("CvtModel", "CvtConfig", {}, [IMAGE]),
    "pvt": ("PvtV2Model", "PvtV2Config", {}, [IMAGE]),
    "glpn": ("GLPNForDepthEstimation", "GLPNConfig", {}, [picture(256)]),
    "dpt": (
        "DPTForDepthEstimation",
        "DPTConfig",
        {
            **ENCODER,
            "image_size": 224,
            "neck_hidden_sizes": [48, 96, 192, 384],
            "backbone_out_indices": [0, 1, 2, 3],
            "fusion_hidden_size": 128,
            "is_hybrid": False,
        },
        [IMAGE],
    ),
    "maskformer": ("MaskFormerForInstanceSegmentation", "MaskFormerConfig", {}, [picture(224)]),
    "mask2former": ("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", {}, [picture(224)]),
    "owlvit": ("OwlViTVisionModel", "OwlViTVisionConfig", {**ENCODER, "image_size": 224}, [IMAGE]),
    "clipseg": ("CLIPSegVisionModel", "CLIPSegVisionConfig", ENCODER, [IMAGE]),
    "vitdet": (
        "VitDetModel",
        "VitDetConfig",
        {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "window_size": 14, "window_block_indices": [0, 1, 2]},
        [IMAGE],
    ),
    "hf_efficientnet": (
        "EfficientNetModel",
        "EfficientNetConfig",
        {"width_coefficient": 1.0, "depth_coefficient": 1.1, "image_size": 224, "hidden_dim": 1280},
        [IMAGE],
    ),
    "tsmixer": (
        "PatchTSMixerForPrediction",
        "PatchTSMixerConfig",
        {"context_length": 512, "prediction_length": 96, "num_input_channels": 7, "d_model": 48, "num_layers": 3},
        [("past_values", (8, 512, 7), "reals")],
    ),
    "upernet": (
        "UperNetForSemanticSegmentation",
        "UperNetConfig",
        {
            "hidden_size": 128,
            "auxiliary_in_channels": 192,
            "backbone_config": (
                "ConvNextConfig",
                {"depths": [2, 2, 2, 2], "hidden_sizes": [48, 96, 192, 384], "out_features": ["stage1", "stage2", "stage3", "stage4"]},
            ),
        },
        [IMAGE],
    ),
    "detr": ("DetrModel", "DetrConfig", DETECTION, [picture(256)]),
    "conditional_detr": ("ConditionalDetrModel", "ConditionalDetrConfig", DETECTION, [picture(256)]),
    "dab_detr": ("DabDetrModel", "DabDetrConfig", {**DETECTION, "hidden_size": 128}, [picture(256)]),
    "vitpose": (
        "VitPoseForPoseEstimation",
        "VitPoseConfig",
        {
            "backbone_config": (
                "VitPoseBackboneConfig",
                {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "out_indices": [4], "num_experts": 1},
            )
        },
        [("pixel_values", (1, 3, 256, 192), "reals")],
    ),
    "depthanything": (
        "DepthAnythingForDepthEstimation",
        "DepthAnythingConfig",
        {
            "neck_hidden_sizes": [48, 96, 192, 384],
            "reassemble_hidden_size": 384,
            "backbone_config": (
                "Dinov2Config",
                {
                    "hidden_size": 384,
                    "num_hidden_layers": 4,
                    "num_attention_heads": 6,
                    "image_size": 224,
                    "patch_size": 14,
                    "out_features": ["stage1", "stage2", "stage3", "stage4"],
                    "reshape_hidden_states": False,
                },
            ),
        },
        [IMAGE],
    ),
    # At their own width and depth, or nearly so.
    "gpt2_small": ("GPT2LMHeadModel", "GPT2Config", {"use_cache": False}, [LONG]),
    "bert_base": ("BertModel", "BertConfig", {}, [("input_ids", (1, 384), "words"), ("attention_mask", (1, 384), "ones")]),
    "roberta_of_8": ("RobertaModel", "RobertaConfig", {"num_hidden_layers": 4}, [("input_ids", (8, 64), "words"), ("attention_mask", (8, 64), "ones")]),
    "llama_wide": ("LlamaForCausalLM", "LlamaConfig", WIDE, [("input_ids", (1, 256), "words")]),
    "llama_short": ("LlamaForCausalLM", "LlamaConfig", WIDE, [("input_ids", (1, 7), "words")]),
    "t5_small": ("T5Model", "T5Config", {"use_cache": False}, [PROMPT, ("decoder_input_ids", (1, 32), "words")]),
    "segformer_512": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, [picture(512)]),
    "vit_384": ("ViTModel", "ViTConfig", {"image_size": 384, "num_hidden_layers": 4}, [picture(384)]),
    "mamba_wide": (
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": 768, "num_hidden_layers": 2, "vocab_size": 8000, "use_cache": False},
        [PROMPT],
    ),
    "hubert_wide": (
        "HubertModel",
        "HubertConfig",
        {"hidden_size": 768, "num_hidden_layers": 3, "apply_spec_augment": False},
        [("input_values", (1, 32000), "reals")],
    ),
}
# diffusers': class, its arguments, inputs by name.
DIFFUSIONS = {
    "unet2d": (
        "UNet2DModel",
        {
            "sample_size": 64,
            "block_out_channels": (64, 128, 128, 256),
            "layers_per_block": 1,
            "attention_head_dim": 8,
            "down_block_types": ("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
            "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
        },
        [("sample", (1, 3, 64, 64), "reals"), ("timestep", (1,), "few")],
    ),
    "unetcond": (
        "UNet2DConditionModel",
        {"sample_size": 32, "block_out_channels": (96, 192, 384, 384), "layers_per_block": 1, "cross_attention_dim": 256, "attention_head_dim": 8},
        [("sample", (2, 4, 32, 32), "reals"), ("timestep", (2,), "few"), ("encoder_hidden_states", (2, 77, 256), "reals")],
    ),
    "dit": (
        "DiTTransformer2DModel",
        {"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 4, "sample_size": 32, "in_channels": 4, "out_channels": 8},
        [("hidden_states", (2, 4, 32, 32), "reals"), ("timestep", (2,), "few"), ("class_labels", (2,), "few")],
    ),
    "pixart": (
        "PixArtTransformer2DModel",
        {"num_attention_heads": 6, "attention_head_dim": 64, "num_layers": 4, "sample_size": 32, "cross_attention_dim": 384, "caption_channels": 256},
        [("hidden_states", (2, 4, 32, 32), "reals"), ("encoder_hidden_states", (2, 120, 256), "reals"), ("timestep", (2,), "few")],
    ),
    "sd3": (
        "SD3Transformer2DModel",
        {
            "sample_size": 32,
            "num_layers": 3,
            "attention_head_dim": 64,
            "num_attention_heads": 6,
            "joint_attention_dim": 256,
            "caption_projection_dim": 384,
            "pooled_projection_dim": 128,
        },
        [
            ("hidden_states", (1, 16, 32, 32), "reals"),
            ("encoder_hidden_states", (1, 77, 256), "reals"),
            ("pooled_projections", (1, 128), "reals"),
            ("timestep", (1,), "few"),
        ],
    ),
    "vae": (
        "AutoencoderKL",
        {
            "block_out_channels": (64, 128, 256),
            "down_block_types": ("DownEncoderBlock2D",) * 3,
            "up_block_types": ("UpDecoderBlock2D",) * 3,
            "layers_per_block": 1,
            "norm_num_groups": 32,
            "sample_size": 128,
        },
        [("sample", (1, 3, 128, 128), "reals")],
    ),
    "vaetiny": ("AutoencoderTiny", {}, [("sample", (1, 3, 128, 128), "reals")]),
    "vqmodel": (
        "VQModel",
        {
            "block_out_channels": (64, 128),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "num_vq_embeddings": 256,
        },
        [("sample", (1, 3, 64, 64), "reals")],
    ),
    "sana": (
        "SanaTransformer2DModel",
        {
            "num_attention_heads": 6,
            "attention_head_dim": 64,
            "num_layers": 3,
            "num_cross_attention_heads": 6,
            "cross_attention_head_dim": 64,
            "cross_attention_dim": 384,
            "caption_channels": 256,
            "sample_size": 16,
        },
        [("hidden_states", (1, 32, 16, 16), "reals"), ("encoder_hidden_states", (1, 64, 256), "reals"), ("timestep", (1,), "few")],
    ),
    "unet3d": (
        "UNet3DConditionModel",
        {"sample_size": 16, "block_out_channels": (64, 128, 128, 128), "layers_per_block": 1, "cross_attention_dim": 128, "attention_head_dim": 8},
        [("sample", (1, 4, 4, 16, 16), "reals"), ("timestep", (1,), "few"), ("encoder_hidden_states", (1, 16, 128), "reals")],
    ),
    "dcae": (
        "AutoencoderDC",
        {
            "attention_head_dim": 32,
            "encoder_block_out_channels": (64, 128, 128),
            "decoder_block_out_channels": (64, 128, 128),
            "encoder_layers_per_block": (1, 1, 1),
            "decoder_layers_per_block": (1, 1, 1),
            "encoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock"),
            "decoder_block_types": ("ResBlock", "ResBlock", "EfficientViTBlock"),
            "encoder_qkv_multiscales": ((), (), (5,)),
            "decoder_qkv_multiscales": ((), (), (5,)),
            "latent_channels": 16,
        },
        [("sample", (1, 3, 64, 64), "reals")],
    ),
}
LOW = "_bf16"
STEP, BATCH = "_train", 4
TRAINED = [
    name + STEP
    for name in (
        "resnet18",
        "mobilenetv3_large_100",
        "efficientnet_b0",
        "ghostnet_100",
        "densenet121",
        "regnety_008",
        "convnext_pico",
        "inception_next_tiny",
        "fastvit_t8",
        "edgenext_small",
        "mobilevit_s",
        "dla34",
        "deit_tiny_patch16_224",
        "mixer_s16_224",
        "poolformer_s12",
        "swin_tiny_patch4_window7_224",
        "xcit_tiny_12_p16_224",
        "mambaout_femto",
        "coat_lite_tiny",
        "lraspp",
        "r3d",
        "squeezenet",
        "shufflenet",
        "bert",
        "albert",
        "deberta",
        "gpt2",
        "llama",
        "gemma2",
        "mamba",
        "mamba2",
        "t5",
        "fnet",
        "whisper",
        "wav2vec2",
        "clipt",
        "segformer",
        "patchtst",
        "swin2sr",
    )
]
IN_BF16 = [name + LOW for name in """
bert llama gemma2 t5 gpt2 qwen3 phi deberta fnet mamba mixtral modernbert whisper wav2vec2 segformer siglip dit unet2d vae detr
deit_tiny_patch16_224 swin_tiny_patch4_window7_224 resnet18 convnext_pico poolformer_s12 efficientformer_l1 mobilevit_s mixer_s16_224
coat_lite_tiny xcit_tiny_12_p16_224 focalnet_tiny_srf densenet121 regnety_008 mobilenetv3_large_100 efficientnet_b0 shufflenet squeezenet
""".split()]
EIGHT = "_of_8_images"
IN_EIGHTS = [name + EIGHT for name in """
resnet18 mobilenetv3_large_100 efficientnet_b0 convnext_tiny regnety_008 densenet121 vit_small_patch16_224 swin_tiny_patch4_window7_224 mixer_s16_224
resnext50_32x4d seresnet50 res2net50_26w_4s ghostnet_100 mobilevit_s poolformer_s12 dpn68 resnest14d mixnet_s shufflenet
""".split()]
