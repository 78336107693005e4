"""BERT-base's encoder in PyTorch, as bench/torch_models.py and scripts/export_torch.py take it: `make()` gives module and arguments.

Sizes and formulas: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2018:
12 layers of 12 heads over 768 features, 3,072 in between, 30,522 words, 512 positions; norms after the residual sums, GELU.
"""

import torch
from torch import nn

BATCH, LENGTH = 8, 128
WORDS, POSITIONS, WIDTH, HEADS, BETWEEN, LAYERS = 30522, 512, 768, 12, 3072, 12
EPSILON = 1e-12


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.widen, self.narrow = nn.Linear(WIDTH, BETWEEN), nn.Linear(BETWEEN, WIDTH)
        self.attended, self.done = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)

    def heads(self, x):
        return x.view(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, mask):
        attention = nn.functional.scaled_dot_product_attention(self.heads(self.query(x)), self.heads(self.key(x)),
                                                               self.heads(self.value(x)), attn_mask=mask)
        x = self.attended(x + self.output(attention.transpose(1, 2).reshape(x.shape)))
        return self.done(x + self.narrow(nn.functional.gelu(self.widen(x))))


class Encoder(nn.Module):
    """words, kinds: s32[batch, length]; mask: s32[batch, length], 1 where there is a word. Gives f32[batch, length, 768]."""

    def __init__(self):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, words, kinds, mask):
        x = self.norm(self.words(words) + self.kinds(kinds) + self.positions.weight[:words.shape[1]])
        hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, hidden)
        return x


def arguments(seed=0):
    """Sentences of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1), generator=generator)
    words = torch.randint(WORDS, (BATCH, LENGTH), generator=generator, dtype=torch.int32)
    kinds = (torch.arange(LENGTH) >= lengths // 2).to(torch.int32)
    return words, kinds.expand(BATCH, LENGTH).contiguous(), (torch.arange(LENGTH) < lengths).to(torch.int32)


def make():
    torch.manual_seed(0)
    model = Encoder().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.02)
    return model, arguments()
