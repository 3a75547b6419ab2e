"""Logarithm of the softmax over long rows."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=self.dim)


def get_inputs(rows: int = 40, columns: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(dim: int = 1) -> list[int]:
    return [dim]


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
