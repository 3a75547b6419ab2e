"""Layer normalisation over all dimensions but the first."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features: int, height: int, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm((features, height, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs(batch: int = 23, features: int = 48, height: int = 72, width: int = 80) -> list[torch.Tensor]:
    return [torch.randn(batch, features, height, width)]


def get_init_inputs(features: int = 48, height: int = 72, width: int = 80) -> list[int]:
    return [features, height, width]


SIZES = {"paper": {"batch": 16, "features": 64, "height": 256, "width": 256}}
