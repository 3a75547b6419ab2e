"""GELU in the tanh form of GPT-2, written out."""

import math

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inner))


def get_inputs(rows: int = 1000, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 8192, "columns": 8192}}
