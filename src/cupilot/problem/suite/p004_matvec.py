"""Product of a matrix with very long rows and a vector."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(m: int = 160, k: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, 1)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 2048, "k": 1048576}}
