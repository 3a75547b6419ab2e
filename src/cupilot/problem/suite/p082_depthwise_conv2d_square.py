"""Depthwise convolution of a square image with a square window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 3, channels: int = 64, size: int = 128) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels: int = 64) -> list[int]:
    return [channels]


SIZES = {"paper": {"batch": 16, "size": 512}}
