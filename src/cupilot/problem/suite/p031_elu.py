"""ELU: exponential linear unit."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.elu(x, alpha=self.alpha)


def get_inputs(rows: int = 36, columns: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(alpha: float = 1.0) -> list[float]:
    return [alpha]


SIZES = {"paper": {"rows": 4096, "columns": 393216}}
