"""Logistic sigmoid of every element."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


def get_inputs(rows: int = 52, columns: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
