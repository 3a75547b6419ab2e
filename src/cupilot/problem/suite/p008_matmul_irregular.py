"""Product of two matrices whose extents no tile divides."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(m: int = 821, k: int = 491, n: int = 743) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 8205, "k": 2949, "n": 5921}}
