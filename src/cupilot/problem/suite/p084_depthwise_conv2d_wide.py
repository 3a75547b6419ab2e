"""Depthwise convolution of a wide image with a square window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 3, channels: int = 128, height: int = 66, width: int = 130) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels: int = 128) -> list[int]:
    return [channels]


SIZES = {"paper": {"batch": 64, "height": 256, "width": 512}}
