"""Matrix products of real models, for bench/products_vs_torch.py: where each comes from, and its sizes."""

from typing import NamedTuple


class Product(NamedTuple):
    """[batch x] m x k by k x n. form: how lhs and rhs are stored, "n" as named, "t" transposed ("nt": rhs is [n][k])."""
    source: str
    m: int
    k: int
    n: int
    form: str = "nn"
    batch: int = 0  # 0: no batch dimension
    type: str = "f32"
    weights: bool = True  # rhs is a network's weights, which frameworks may keep packed

    @property
    def gflop(self):
        return 2e-9 * max(self.batch, 1) * self.m * self.k * self.n

    @property
    def label(self):
        batch = f"{self.batch} of " if self.batch else ""
        return f"{batch}{self.m}x{self.k}x{self.n} {self.form} {self.type}"


SKEWED = [
    # A residual network's 1x1 convolutions, 8 images of 224x224: pixels by channels.
    Product("resnet50 block 1, reduce", 25088, 64, 64),
    Product("resnet50 block 1, expand", 25088, 64, 256),
    Product("resnet50 block 1, next", 25088, 256, 64),
    Product("resnet50 block 2, expand", 6272, 128, 512),
    Product("resnet50 block 2, reduce", 6272, 512, 128),
    Product("resnet50 block 3, expand", 1568, 256, 1024),
    Product("resnet50 block 3, reduce", 1568, 1024, 256),
    Product("resnet50 block 4, expand", 392, 512, 2048),
    Product("resnet50 block 4, reduce", 392, 2048, 512),
    Product("resnet50 classifier, 8 images", 8, 2048, 1000, "nt"),
    Product("alexnet classifier, 1 image", 1, 9216, 4096, "nt"),
    Product("mobilenet expand, 1 image", 3136, 24, 144),
    Product("mobilenet project, 1 image", 3136, 144, 24),
    Product("mobilenet last, 1 image", 49, 320, 1280),
    # Transformers of images.
    Product("vit-b/16 qkv, 1 image", 197, 768, 2304),
    Product("vit-b/16 out, 1 image", 197, 768, 768),
    Product("vit-b/16 up, 1 image", 197, 768, 3072),
    Product("vit-b/16 down, 1 image", 197, 3072, 768),
    Product("vit-b/16 up, 8 images", 1576, 768, 3072),
    Product("vit-b/16 down, 8 images", 1576, 3072, 768),
    Product("vit-b/16 scores", 197, 64, 197, "nt", 12, weights=False),
    Product("vit-b/16 values", 197, 197, 64, "nn", 12, weights=False),
    Product("vit-b/16 weights' gradient", 768, 1576, 768, "tn", weights=False),
    Product("mixer tokens, 1 image", 768, 196, 384),
    Product("DiT-XL up, 256 patches", 256, 1152, 4608),
    Product("DiT-XL modulation, 2 images", 2, 1152, 6912),
    # Text encoders.
    Product("BERT-base out, 8 x 128", 1024, 768, 768, "nt"),
    Product("BERT-base up, 8 x 128", 1024, 768, 3072, "nt"),
    Product("BERT-base down, 8 x 128", 1024, 3072, 768, "nt"),
    Product("BERT-base scores, 8 x 128", 128, 64, 128, "nt", 96, weights=False),
    Product("BERT-base values, 8 x 128", 128, 128, 64, "nn", 96, weights=False),
    Product("BERT-base out, 1 x 128", 128, 768, 768, "nt"),
    Product("BERT-base vocabulary, 1 x 128", 128, 768, 30522, "nt"),
    Product("BERT-base pooler, 8", 8, 768, 768, "nt"),
    Product("MiniLM out, 1 x 32", 32, 384, 384, "nt"),
    Product("T5-small up, 64 tokens", 64, 512, 2048, "nt"),
    Product("whisper-tiny up", 1500, 384, 1536, "nt"),
    Product("whisper-tiny scores", 1500, 64, 1500, "nt", 6, weights=False),
    # Language models.
    Product("llama-7B out, 1 token", 1, 4096, 4096, "nt"),
    Product("llama-7B up, 1 token", 1, 4096, 11008, "nt"),
    Product("llama-7B down, 1 token", 1, 11008, 4096, "nt"),
    Product("llama3-8B keys, 1 token", 1, 4096, 1024, "nt"),
    Product("llama-7B out, 4 tokens", 4, 4096, 4096, "nt"),
    Product("llama-7B out, 8 tokens", 8, 4096, 4096, "nt"),
    Product("llama-7B out, 16 tokens", 16, 4096, 4096, "nt"),
    Product("tinyllama up, 64 tokens", 64, 2048, 5632, "nt"),
    Product("tinyllama down, 64 tokens", 64, 5632, 2048, "nt"),
    Product("llama scores, 1 of 1024 tokens", 1, 128, 1024, "nt", 32, weights=False),
    Product("llama values, 1 of 1024 tokens", 1, 1024, 128, "nn", 32, weights=False),
    Product("llama scores, 256 tokens", 256, 128, 256, "nt", 32, weights=False),
    Product("llama values, 256 tokens", 256, 256, 128, "nn", 32, weights=False),
    Product("gemma-2b up, 1 token", 1, 2048, 16384),
    Product("gemma-2b keys, 512 tokens", 512, 2048, 256),
    Product("gpt2 vocabulary, 1 token", 1, 768, 50257, "nt"),
    Product("cappa vocabulary, 16 tokens", 16, 768, 32000),
    # Recommenders, recurrent networks.
    Product("dlrm (keras) dense", 3616, 192, 192),
    Product("dlrm (keras) first", 3616, 15, 192),
    Product("dlrm bottom, 2048 rows", 2048, 13, 512, "nt"),
    Product("dlrm top, 2048 rows", 2048, 479, 1024, "nt"),
    Product("dlrm last, 2048 rows", 2048, 256, 1, "nt"),
    Product("dlrm interactions", 27, 128, 27, "nt", 2048, weights=False),
    Product("LSTM step, 1 row", 1, 512, 2048),
    Product("LSTM step, 32 rows", 32, 512, 2048),
    Product("LSTM step, 32 rows, small", 32, 128, 512),
]

SQUARES = [Product(f"square {n}", n, n, n, weights=False) for n in (512, 1024, 2048, 4096)]
BF16 = [Product(f"square {n}", n, n, n, type="bf16", weights=False) for n in (512, 1024, 2048)]
S8 = [Product(f"square {n}", n, n, n, type="s8", weights=False) for n in (512, 1024, 2048)]

FAMILIES = {"squares": SQUARES, "skewed": SKEWED, "bf16": BF16, "s8": S8}
