"""Depthwise convolution of a square image with a column of three."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, (3, 1), groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 10, channels: int = 8, size: int = 200) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels: int = 8) -> list[int]:
    return [channels]


SIZES = {"paper": {"batch": 64, "size": 512}}
