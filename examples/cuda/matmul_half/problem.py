"""The product of two half-precision matrices, summed in single precision; b is stored transposed."""

import torch

PRECISION = "f16/f32"
SIZES = {"gpu": {"m": 2048, "k": 2048, "n": 2048}}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b.T


def get_inputs(m: int = 96, k: int = 128, n: int = 80) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(n, k)]


def get_init_inputs() -> list[object]:
    return []
