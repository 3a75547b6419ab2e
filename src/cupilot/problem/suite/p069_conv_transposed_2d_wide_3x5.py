"""Transposed convolution of a wide image with a 3x5 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(in_channels, out_channels, (3, 5), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(
    batch: int = 4, in_channels: int = 64, height: int = 20, width: int = 38
) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, height, width)]


def get_init_inputs(in_channels: int = 64, out_channels: int = 128) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 64, "height": 128, "width": 256}}
