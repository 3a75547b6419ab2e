"""A bias per column, then ReLU."""

import torch

SIZES = {"gpu": {"rows": 16384, "columns": 4096}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + bias)


def get_inputs(rows: int = 100, columns: int = 300) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(columns)]


def get_init_inputs() -> list[object]:
    return []
