"""Networks in PyTorch beside bench/bert.py, as bench/torch_models.py and scripts/export_torch.py take them: each function gives a
module and the arguments of one call; seeds make others. Weights are PyTorch's own initial ones; running means and variances are not
0 and 1.
"""

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, PATCH, SIDE = 384, 6, 16, 224


class ResidualBlock(nn.Module):
    """He et al., "Deep Residual Learning for Image Recognition", 2015, figure 2."""

    def __init__(self, channels, features, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, features, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(features, features, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(features) for _ in range(2))
        self.across = nn.Conv2d(channels, features, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.across(x) + self.norms[1](self.second(y)))


class EncoderBlock(nn.Module):
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020: norms before attention and MLP."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Vit(nn.Module):
    """The small one's width, half its depth, without a class token."""

    def __init__(self, layers=6):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.randn(1, (SIDE // PATCH)**2, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(EncoderBlock() for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


def random(*shape, seed):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)),)


def mlp_inputs(seed=0):
    return random(256, 1024, seed=seed)


def residual_inputs(seed=0):
    return random(2, 64, 56, 56, seed=seed)


def vit_inputs(seed=0):
    return random(2, 3, SIDE, SIDE, seed=seed)


def seeded(make):
    """Weights must be the same in the process that exports: all are made after the seed is set."""
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm2d)):
            norm.running_mean.normal_(0.0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)
    return model


def mlp():
    def make():
        between = [layer for _ in range(3) for layer in (nn.Linear(2048, 2048), nn.GELU())]
        return nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), *between, nn.Linear(2048, 1000))

    return seeded(make), mlp_inputs()


def residual():
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)]
    return seeded(lambda: nn.Sequential(*(ResidualBlock(*size) for size in sizes))), residual_inputs()


def vit():
    return seeded(Vit), vit_inputs()
