"""Residual addition followed by layer normalisation of rows."""

import torch


class Model(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(columns)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x + residual)
        return y


def get_inputs(rows: int = 4300, columns: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs(columns: int = 1024) -> list[int]:
    return [columns]


SIZES = {"paper": {"rows": 32768, "columns": 4096}}
