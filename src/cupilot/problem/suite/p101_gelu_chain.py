"""A gated chain of activations in a module of the user's own, used twice."""

import torch
import torch.nn.functional as F


class Gate(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.gelu(x * self.scale)


class Model(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.first = Gate(columns)
        self.second = Gate(columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.second(self.first(x))
        return y


def get_inputs(rows: int = 1100, columns: int = 1536) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(columns: int = 1536) -> list[int]:
    return [columns]


SIZES = {"paper": {"rows": 16384, "columns": 8192}}
