"""Convolution of a sequence."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(in_channels, out_channels, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 3, in_channels: int = 64, length: int = 5200) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, length)]


def get_init_inputs(in_channels: int = 64, out_channels: int = 128) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 32, "length": 131072}}
