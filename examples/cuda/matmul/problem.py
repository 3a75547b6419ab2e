"""The product of two matrices in single precision."""

import torch

SIZES = {"gpu": {"m": 2048, "k": 2048, "n": 2048}}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(m: int = 96, k: int = 120, n: int = 112) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []
