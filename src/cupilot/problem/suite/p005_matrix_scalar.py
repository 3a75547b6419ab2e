"""Product of a matrix and a number."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, s: float) -> torch.Tensor:
        return A * s


def get_inputs(m: int = 2700, n: int = 4096) -> list[torch.Tensor | float]:
    return [torch.randn(m, n), 3.14]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 65536, "n": 16384}}
