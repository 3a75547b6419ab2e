"""GELU of half-precision numbers."""

import torch

PRECISION = "f16/f32"
SIZES = {"gpu": {"n": 1 << 27}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


def get_inputs(n: int = 40010) -> list[torch.Tensor]:
    return [torch.randn(n)]


def get_init_inputs() -> list[object]:
    return []
