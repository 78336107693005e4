"""Convolutions of real networks, for bench/convolutions_vs_torch.py: where each comes from, and its sizes."""

from typing import NamedTuple


class Convolution(NamedTuple):
    """`channels` of a square image (or cube) of `size` pixels, `features` of the result."""
    source: str
    size: int
    channels: int
    features: int
    window: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    rank: int = 2
    batch: int = 1
    type: str = "f32"

    @property
    def padding(self):
        return self.dilation * (self.window - 1) // 2

    @property
    def out(self):
        return (self.size + 2 * self.padding - self.dilation * (self.window - 1) - 1) // self.stride + 1

    @property
    def gflop(self):
        taps = self.window ** self.rank * self.channels // self.groups
        return 2e-9 * self.batch * self.out ** self.rank * taps * self.features

    @property
    def label(self):
        kind = " depthwise" if self.groups == self.channels else f" {self.groups} groups" if self.groups > 1 else ""
        more = (f"/{self.stride}" if self.stride > 1 else "") + (f" dilated {self.dilation}" if self.dilation > 1 else "")
        return (f"{self.batch}x{'x'.join([str(self.size)] * self.rank)}x{self.channels}->{self.features} "
                f"{'x'.join([str(self.window)] * self.rank)}{more}{kind} {self.type}")


RESNET50 = [
    Convolution("stem", 224, 3, 64, 7, 2),
    Convolution("block 1, reduce", 56, 256, 64, 1),
    Convolution("block 1", 56, 64, 64, 3),
    Convolution("block 1, expand", 56, 64, 256, 1),
    Convolution("block 2, strided", 56, 128, 128, 3, 2),
    Convolution("block 2, shortcut", 56, 256, 512, 1, 2),
    Convolution("block 2", 28, 128, 128, 3),
    Convolution("block 2, expand", 28, 128, 512, 1),
    Convolution("block 3, strided", 28, 256, 256, 3, 2),
    Convolution("block 3, shortcut", 28, 512, 1024, 1, 2),
    Convolution("block 3", 14, 256, 256, 3),
    Convolution("block 3, reduce", 14, 1024, 256, 1),
    Convolution("block 4, strided", 14, 512, 512, 3, 2),
    Convolution("block 4", 7, 512, 512, 3),
    Convolution("block 4, expand", 7, 512, 2048, 1),
]

EFFICIENTNET = [
    Convolution("efficientnet stem", 224, 3, 32, 3, 2),
    Convolution("block 1, depthwise", 112, 32, 32, 3, groups=32),
    Convolution("block 1, project", 112, 32, 16, 1),
    Convolution("block 2, expand", 112, 16, 96, 1),
    Convolution("block 2, strided", 112, 96, 96, 3, 2, groups=96),
    Convolution("block 2, project", 56, 96, 24, 1),
    Convolution("block 2, depthwise", 56, 144, 144, 3, groups=144),
    Convolution("block 3, strided", 56, 144, 144, 5, 2, groups=144),
    Convolution("block 3, expand", 28, 40, 240, 1),
    Convolution("block 3, depthwise", 28, 240, 240, 5, groups=240),
    Convolution("block 4, strided", 28, 240, 240, 3, 2, groups=240),
    Convolution("block 4, depthwise", 14, 480, 480, 3, groups=480),
    Convolution("block 4, project", 14, 480, 80, 1),
    Convolution("block 5, depthwise", 14, 672, 672, 5, groups=672),
    Convolution("block 6, strided", 14, 672, 672, 5, 2, groups=672),
    Convolution("block 6, expand", 7, 192, 1152, 1),
    Convolution("block 6, depthwise", 7, 1152, 1152, 5, groups=1152),
    Convolution("head", 7, 320, 1280, 1),
]

OTHERS = [
    Convolution("vgg 1", 224, 64, 64, 3),
    Convolution("vgg 5", 14, 512, 512, 3),
    Convolution("inception 5x5", 27, 64, 96, 5),
    Convolution("alexnet 5x5", 27, 64, 192, 5),
    Convolution("alexnet stem", 224, 3, 64, 11, 4),
    Convolution("convnext", 56, 96, 96, 7, groups=96),
    Convolution("convnext patches", 56, 96, 192, 2, 2),
    Convolution("vit patches", 224, 3, 768, 16, 16),
    Convolution("resnext", 28, 256, 256, 3, groups=32),
    Convolution("deeplab", 28, 256, 256, 3, dilation=2),
    Convolution("whisper", 1500, 384, 384, 3, rank=1),
    Convolution("video", 28, 64, 64, 3, rank=3),
    Convolution("video stem", 56, 3, 64, 3, rank=3),
]


def with_batch(batch, shapes):
    return [shape._replace(batch=batch) for shape in shapes]


BF16 = [shape._replace(type="bf16") for shape in
        (RESNET50[0], RESNET50[2], RESNET50[3], RESNET50[8], RESNET50[10], EFFICIENTNET[6], EFFICIENTNET[9])]

FAMILIES = {"resnet50": RESNET50, "resnet50x8": with_batch(8, RESNET50), "efficientnet": EFFICIENTNET,
            "efficientnetx8": with_batch(8, EFFICIENTNET), "others": OTHERS, "bf16": BF16}
