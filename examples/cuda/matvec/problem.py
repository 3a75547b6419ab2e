"""A matrix times a vector."""

import torch

SIZES = {"gpu": {"rows": 16384, "columns": 4096}}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return a @ x


def get_inputs(rows: int = 150, columns: int = 700) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(columns)]


def get_init_inputs() -> list[object]:
    return []
