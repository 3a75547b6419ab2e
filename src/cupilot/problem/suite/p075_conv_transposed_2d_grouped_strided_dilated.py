"""Strided, padded, dilated transposed convolution of an image in four groups, with a 3x5 window."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(
            in_channels,
            out_channels,
            (3, 5),
            stride=(2, 3),
            padding=(1, 2),
            dilation=(2, 1),
            groups=4,
            bias=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(
    batch: int = 2, in_channels: int = 32, height: int = 36, width: int = 70
) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, height, width)]


def get_init_inputs(in_channels: int = 32, out_channels: int = 64) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 16, "height": 128, "width": 256}}
