"""Product of two lower triangular matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))


def get_inputs(n: int = 650) -> list[torch.Tensor]:
    return [torch.tril(torch.randn(n, n)), torch.tril(torch.randn(n, n))]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"n": 4096}}
