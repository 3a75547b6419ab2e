"""Leaky ReLU: negative elements are scaled down."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, negative_slope: float) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, self.negative_slope)


def get_inputs(rows: int = 50, columns: int = 196608) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(negative_slope: float = 0.01) -> list[float]:
    return [negative_slope]


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
