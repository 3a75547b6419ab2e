"""The product of two matrices in single precision."""

import torch


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(m: int = 96, k: int = 120, n: int = 112) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []
