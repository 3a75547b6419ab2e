"""Batch normalisation with the statistics of the batch (train mode)."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs(batch: int = 6, channels: int = 64, height: int = 88, width: int = 96) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels: int = 64) -> list[int]:
    return [channels]


SIZES = {"paper": {"batch": 64, "channels": 64, "height": 512, "width": 512}}
