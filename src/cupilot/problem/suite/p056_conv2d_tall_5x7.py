"""Convolution of a tall image with a 5x7 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, (5, 7), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(
    batch: int = 2, in_channels: int = 64, height: int = 44, width: int = 30
) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, height, width)]


def get_init_inputs(in_channels: int = 64, out_channels: int = 128) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 8, "height": 512, "width": 256}}
