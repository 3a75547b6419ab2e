"""Softmax of every row."""

import torch

SIZES = {"wide": {"rows": 1024, "columns": 4096}, "gpu": {"rows": 16384, "columns": 4096}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 96, columns: int = 1000) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
