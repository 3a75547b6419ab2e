"""Strided, padded transposed convolution of a volume in four groups, with a 3x5x7 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose3d(
            in_channels,
            out_channels,
            (3, 5, 7),
            stride=2,
            padding=(1, 2, 3),
            output_padding=1,
            groups=4,
            bias=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(
    batch: int = 2, in_channels: int = 32, depth: int = 8, height: int = 14, width: int = 28
) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, depth, height, width)]


def get_init_inputs(in_channels: int = 32, out_channels: int = 32) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 8, "depth": 12, "height": 24, "width": 48}}
