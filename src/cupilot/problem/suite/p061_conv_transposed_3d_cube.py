"""Transposed convolution of a cubic volume with a cubic window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose3d(in_channels, out_channels, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 2, in_channels: int = 48, size: int = 14) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, size, size, size)]


def get_init_inputs(in_channels: int = 48, out_channels: int = 48) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 8, "size": 64}}
