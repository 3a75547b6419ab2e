"""GELU in its exact form, by the error function."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


def get_inputs(rows: int = 48, columns: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
