"""Transposed convolution of a square image with a 3x7 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(in_channels, out_channels, (3, 7), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 2, in_channels: int = 64, size: int = 48) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs(in_channels: int = 64, out_channels: int = 64) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 8, "size": 512}}
