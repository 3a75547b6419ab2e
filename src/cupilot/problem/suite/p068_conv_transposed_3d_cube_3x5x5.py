"""Transposed convolution of a cubic volume with a 3x5x5 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose3d(in_channels, out_channels, (3, 5, 5), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 2, in_channels: int = 32, size: int = 11) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, size, size, size)]


def get_init_inputs(in_channels: int = 32, out_channels: int = 64) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 16, "size": 64}}
