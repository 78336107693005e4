"""Real HLO modules written in PyTorch, as a user of PyTorch would: the peers of bench/models.py.

A peer has the parameters and results of the module that it is named after, in the same order. Its submodules bear the names that the
module's parameters tell ("params__Transformer____encoderblock_0____LayerNorm_0____bias__" is Transformer.encoderblock_0.LayerNorm_0's),
so that weights find their places by name, and one that is missing, left over or of another shape is an error. Sizes, windows and
epsilons are read off the modules' text. bench/torch_of_module.py runs them and compares their results with XLA's.
"""

import re

import torch
from torch import nn
from torch.nn import functional

# ---- From a module's parameters to PyTorch's weights


def path_of(name):
    """JAX's path in the name of a parameter: "params__head____bias__.1" is params['head']['bias'], here params/head/bias."""
    return re.sub(r"_{2,}", "/", re.sub(r"_*\.\d+$", "", name))


def below(values, *roots):
    """The values whose path begins with one of the roots, without it."""
    return {path.removeprefix(root + "/"): value for root in roots for path, value in values.items() if path.startswith(root + "/")}


def state_key(path):
    """PyTorch's name of what Flax calls `path`."""
    *modules, leaf = path.split("/")
    torch_leaf = {"kernel": "weight", "scale": "weight", "embedding": "weight", "mean": "running_mean", "var": "running_var"}
    return ".".join([*modules, torch_leaf.get(leaf, leaf)])


def in_torch_layout(value, path, shape):
    """Flax has inputs before outputs in kernels, windows before both, and a dimension for heads; PyTorch has outputs first."""
    if not path.endswith("/kernel"):
        return value.reshape(shape)
    if len(shape) == 4:
        return value.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return value.reshape(shape[1], shape[0]).T.contiguous()


def in_flax_layout(weight, path):
    if not path.endswith("/kernel"):
        return weight
    return weight.permute(2, 3, 1, 0) if weight.dim() == 4 else weight.T


def with_weights(make, values):
    """The network that make() gives, with `values` for weights."""
    with torch.device("meta"):  # nothing is initialised only to be written over
        network = make()
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    weights = {state_key(path): in_torch_layout(value, path, shapes[state_key(path)]) for path, value in values.items()}
    counters = {key: torch.zeros((), dtype=torch.int64) for key in shapes if key.endswith("num_batches_tracked")}
    network.load_state_dict({**weights, **counters}, assign=True)
    return network


def named(parent, modules):
    for name, module in modules.items():
        parent.add_module(name, module)


# ---- What a peer offers: run(*data) is timed; outputs(its result) are the module's, in order


class Forward:
    """A network, or a function, whose result is the module's."""

    def __init__(self, network, wrap):
        self.run = torch.no_grad()(wrap(network))

    def outputs(self, result):
        return [result]


def inference(make, *roots):
    """The peer of a network in evaluation mode, whose weights are the parameters below `roots`."""
    return lambda values, wrap: Forward(with_weights(make, below(values, *roots)).eval(), wrap)


def function(compute):
    """The peer of a function that has no weights."""
    return lambda values, wrap: Forward(compute, wrap)


# ---- ResNet-18: He et al., "Deep Residual Learning for Image Recognition", 2015; padding is TensorFlow's SAME


class BasicBlock(nn.Module):
    def __init__(self, channels, features, stride):
        super().__init__()
        self.stride = stride
        self.Conv_0 = nn.Conv2d(channels, features, 3, stride, padding=1 if stride == 1 else 0, bias=False)
        self.Conv_1 = nn.Conv2d(features, features, 3, padding=1, bias=False)
        self.BatchNorm_0, self.BatchNorm_1 = nn.BatchNorm2d(features), nn.BatchNorm2d(features)
        if stride > 1:
            self.conv_proj, self.norm_proj = nn.Conv2d(channels, features, 1, stride, bias=False), nn.BatchNorm2d(features)

    def forward(self, x):
        # SAME with stride 2 pads behind only, which Conv2d cannot.
        y = self.Conv_0(x if self.stride == 1 else functional.pad(x, (0, 1, 0, 1)))
        y = self.BatchNorm_1(self.Conv_1(functional.relu(self.BatchNorm_0(y))))
        return functional.relu((x if self.stride == 1 else self.norm_proj(self.conv_proj(x))) + y)


class ResNet18(nn.Module):
    SIZES = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]

    def __init__(self):
        super().__init__()
        self.conv_init, self.bn_init = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        named(self, {f"ResNetBlock_{i}": BasicBlock(*size) for i, size in enumerate(self.SIZES)})
        self.Dense_0 = nn.Linear(512, 10)

    def forward(self, images):
        x = functional.relu(self.bn_init(self.conv_init(images.permute(0, 3, 1, 2))))
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        for i in range(len(self.SIZES)):
            x = self.get_submodule(f"ResNetBlock_{i}")(x)
        return self.Dense_0(x.mean((2, 3)))


class TrainingStep:
    """A step of SGD with momentum on a ResNet-18's cross entropy. Running variances are PyTorch's, of n - 1, where Flax has n: apart by
    less than 1e-3 of them."""

    def __init__(self, values, wrap):
        self.values = values
        self.network = with_weights(ResNet18, below(values, "state_params", "state_batch_stats")).train()
        self.model = wrap(self.network)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9, fused=True)
        for path, trace in below(values, "state_opt_state_0/trace").items():
            weight = self.weight(path)
            self.optimizer.state[weight]["momentum_buffer"] = in_torch_layout(trace, path, weight.shape)

    def weight(self, path):
        return self.network.get_parameter(state_key(path))

    def run(self, images, labels):
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(images), labels.long())
        loss.backward()
        self.optimizer.step()
        return loss

    def outputs(self, loss):
        weights = {path: self.weight(path) for path in below(self.values, "state_params")}
        traces = {path: self.optimizer.state[weight]["momentum_buffer"] for path, weight in weights.items()}
        kept = [in_flax_layout(tensor.detach(), path) for tensors in (weights, traces) for path, tensor in tensors.items()]
        averages = [self.network.get_buffer(state_key(path)) for path in below(self.values, "state_batch_stats")]
        return [self.values["state_step"] + 1, *kept, *averages, loss.detach()]


# ---- ResNet-50 of Kolesnikov et al., "Big Transfer", 2019: norms of groups before convolutions, whose weights are standardised


class StandardizedConvolution(nn.Conv2d):
    def forward(self, x):  # pylint: disable=arguments-renamed
        variance, mean = torch.var_mean(self.weight, (1, 2, 3), correction=0, keepdim=True)
        return functional.conv2d(x, (self.weight - mean) / torch.sqrt(variance + 1e-10), None, self.stride, self.padding)


class BottleneckUnit(nn.Module):
    def __init__(self, channels, features, stride):
        super().__init__()
        self.gn1, self.gn2, self.gn3 = nn.GroupNorm(32, channels), nn.GroupNorm(32, features), nn.GroupNorm(32, features)
        self.conv1 = StandardizedConvolution(channels, features, 1, bias=False)
        self.conv2 = StandardizedConvolution(features, features, 3, stride, 1, bias=False)
        self.conv3 = StandardizedConvolution(features, 4 * features, 1, bias=False)
        self.projects = channels != 4 * features
        if self.projects:
            self.conv_proj = StandardizedConvolution(channels, 4 * features, 1, stride, bias=False)

    def forward(self, x):
        y = functional.relu(self.gn1(x))
        shortcut = self.conv_proj(y) if self.projects else x
        y = self.conv2(functional.relu(self.gn2(self.conv1(y))))
        return self.conv3(functional.relu(self.gn3(y))) + shortcut


class ResNet50(nn.Module):
    UNITS = [3, 4, 6, 3]

    def __init__(self):
        super().__init__()
        self.root_block = nn.ModuleDict({"conv_root": StandardizedConvolution(3, 64, 7, 2, 3, bias=False)})
        channels = 64
        for i, units in enumerate(self.UNITS):
            block = nn.Module()
            for unit in range(units):
                block.add_module(f"unit{unit + 1:02}", BottleneckUnit(channels, 64 << i, 2 if i > 0 and unit == 0 else 1))
                channels = 256 << i
            self.add_module(f"block{i + 1}", block)
        self.add_module("norm-pre-head", nn.GroupNorm(32, channels))
        self.head = nn.Linear(channels, 1000)

    def forward(self, images):
        x = functional.max_pool2d(self.root_block["conv_root"](images.permute(0, 3, 1, 2)), 3, 2, 1)
        for i, units in enumerate(self.UNITS):
            for unit in range(units):
                x = self.get_submodule(f"block{i + 1}.unit{unit + 1:02}")(x)
        return self.head(functional.relu(self.get_submodule("norm-pre-head")(x)).mean((2, 3)))


# ---- Transformers over patches: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020; Tschannen et al., "CapPa", 2023

EPSILON, HEAD = 1e-6, 64


class Attention(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias) for _ in range(4))

    def forward(self, x, attended, is_causal=False):
        q, k, v = (y.unflatten(-1, (-1, HEAD)).transpose(1, 2) for y in (self.query(x), self.key(attended), self.value(attended)))
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.Dense_0, self.Dense_1 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.Dense_1(functional.gelu(self.Dense_0(x), approximate="tanh"))


class EncoderBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.LayerNorm_0, self.LayerNorm_1 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.MultiHeadDotProductAttention_0, self.MlpBlock_0 = Attention(width), Mlp(width)

    def forward(self, x):
        y = self.LayerNorm_0(x)
        x = x + self.MultiHeadDotProductAttention_0(y, y)
        return x + self.MlpBlock_0(self.LayerNorm_1(x))


class Encoder(nn.Module):
    """Patches of an image, encoded."""

    def __init__(self, width, layers):
        super().__init__()
        self.layers = layers
        self.embedding = nn.Conv2d(3, width, 16, 16)
        self.pos_embedding = nn.Parameter(torch.empty(1, 196, width))
        self.Transformer = nn.Module()
        named(self.Transformer, {f"encoderblock_{i}": EncoderBlock(width) for i in range(layers)})
        self.Transformer.encoder_norm = nn.LayerNorm(width, EPSILON)

    def forward(self, images):
        x = self.embedding(images.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).flatten(1, 2) + self.pos_embedding
        for i in range(self.layers):
            x = self.Transformer.get_submodule(f"encoderblock_{i}")(x)
        return self.Transformer.encoder_norm(x)


class Vit(Encoder):
    def __init__(self):
        super().__init__(width=768, layers=12)
        self.head = nn.Linear(768, 1000)

    def forward(self, images):
        return self.head(super().forward(images).mean(1))


class DecoderBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.LayerNorm1, self.LayerNorm2, self.LayerNorm3 = (nn.LayerNorm(width, EPSILON) for _ in range(3))
        self.SelfAttn, self.CrossAttn, self.MLP = Attention(width, bias=False), Attention(width, bias=False), Mlp(width)

    def forward(self, x, encoded):
        y = self.LayerNorm1(x)
        x = x + self.SelfAttn(y, y, is_causal=True)
        x = x + self.CrossAttn(self.LayerNorm2(x), encoded)
        return x + self.MLP(self.LayerNorm3(x))


class Cappa(nn.Module):
    """Captions: logits of each word after the ones before it."""

    def __init__(self, width=512, layers=6, words=32000, length=64):
        super().__init__()
        self.layers = layers
        self.encoder, self.decoder = Encoder(width, layers), nn.Module()
        self.pos_embedding_decoder = nn.Parameter(torch.empty(1, length, width))
        self.decoder.EmbedTargets = nn.Embedding(words, width)
        named(self.decoder, {f"EncDecBlock{i}": DecoderBlock(width) for i in range(layers)})
        self.decoder.LayerNorm, self.decoder.LogitsDense = nn.LayerNorm(width, EPSILON), nn.Linear(width, words)

    def forward(self, images, text):
        encoded = self.encoder(images)
        x = self.decoder.EmbedTargets(functional.pad(text, (1, 0))[:, :-1]) + self.pos_embedding_decoder
        for i in range(self.layers):
            x = self.decoder.get_submodule(f"EncDecBlock{i}")(x, encoded)
        return self.decoder.LogitsDense(self.decoder.LayerNorm(x))


# ---- DLRM: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019


def quotient(total, count):
    """0 where nothing was counted."""
    return torch.where(count == 0, 0.0, total / torch.where(count == 0, 1.0, count))


class Dlrm(nn.Module):
    """Keras' test step: the loss's and the error's averages so far, with this batch. Weights come in the order of its parameters."""

    def __init__(self, weights, averages):
        super().__init__()
        self.weights, self.averages = nn.ParameterList(weights), nn.ParameterList(averages)
        # Which products of two features are used. XLA and hlorun put 0, 1, 2 ... for the constant that the module's text leaves out.
        self.register_buffer("pairs", torch.arange(15))

    def dense(self, x, first):
        return torch.addmm(self.weights[first + 1], x, self.weights[first])

    def ratings(self, day_cos, day_sin, week_cos, week_sin, movie, age, gender, user, occupation, zip_code):
        bottom = functional.relu(self.dense(torch.cat([age, day_sin, day_cos, week_sin, week_cos], 1), 5))
        tables = zip((gender, zip_code, occupation, movie, user), self.weights)
        features = torch.stack([*(functional.embedding(*table) for table in tables), self.dense(bottom, 7)], 1)
        x = (features @ features.mT).flatten(1)[:, self.pairs]
        for first in (9, 11, 13):
            x = functional.relu(self.dense(x, first))
        return self.dense(x, 15)

    def forward(self, *data):
        errors = (self.ratings(*data[:-1])[:, 0] - data[-1]).square()
        loss, losses, error, rated = self.averages
        loss, losses = loss + errors.mean() * len(errors), losses + len(errors)
        error, rated = error + errors.sum(), rated + len(errors)
        return quotient(loss, losses), quotient(error, rated).sqrt(), loss, losses, error, rated


class DlrmStep(Forward):
    """The state that the module hands through is handed through."""

    def __init__(self, values, wrap):
        self.state = [value for path, value in values.items() if path.startswith("state_0")]
        super().__init__(Dlrm(self.state, [value for path, value in values.items() if path.startswith("state_2")]), wrap)

    def outputs(self, result):
        return [*result[:2], *self.state, *result[2:]]


# ---- Functions of JAX's users in bf16; PyTorch's accumulate in f32 too, and round less in between


def layer_norm(x):
    return functional.layer_norm(x, x.shape[-1:], eps=1e-5)


def sum_axis(x):
    return x.sum(-1)


# The module's folder and name: (its parameters that are data, the peer of its parameters' values; `wrap` is torch.compile, or nothing)
PEERS = {
    "small/layer_norm_1x4096x768_bf16": (["x"], function(layer_norm)),
    "small/sum_axis_1x4096x1024_bf16": (["x"], function(sum_axis)),
    "small/mha_block_1x12x128x64_bf16": (["q", "k", "v"], function(functional.scaled_dot_product_attention)),
    "small/dlrm_keras_jax_f32_test_step": (["data_0", "data_1"], DlrmStep),
    "inference/imagenette": (["images"], inference(ResNet18, "params", "batch_stats")),
    "inference/resnet50": (["img"], inference(ResNet50, "params")),
    "inference/vit": (["img"], inference(Vit, "params")),
    "inference/cappa": (["img", "text"], inference(Cappa, "params")),
    "training/imagenette": (["images", "labels"], TrainingStep),
}
