"""Normalisation of groups of channels of every image."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs(batch: int = 13, channels: int = 64, height: int = 88, width: int = 96) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels: int = 64, groups: int = 8) -> list[int]:
    return [channels, groups]


SIZES = {"paper": {"batch": 112, "channels": 64, "height": 512, "width": 512}}
