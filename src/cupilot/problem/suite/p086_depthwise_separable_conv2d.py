"""Depthwise convolution followed by a 1x1 convolution that mixes the channels."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.depthwise = torch.nn.Conv2d(
            in_channels, in_channels, 3, padding=1, groups=in_channels, bias=False
        )
        self.pointwise = torch.nn.Conv2d(in_channels, out_channels, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.pointwise(self.depthwise(x))
        return y


def get_inputs(batch: int = 2, in_channels: int = 64, size: int = 112) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs(in_channels: int = 64, out_channels: int = 128) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 16, "size": 512}}
