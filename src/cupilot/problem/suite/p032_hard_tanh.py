"""Hard hyperbolic tangent: every element clipped to [-1, 1]."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(x)


def get_inputs(rows: int = 54, columns: int = 196608) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
