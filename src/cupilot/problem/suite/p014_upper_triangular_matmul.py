"""Product of two upper triangular matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.triu(torch.matmul(A, B))


def get_inputs(n: int = 704) -> list[torch.Tensor]:
    return [torch.triu(torch.randn(n, n)), torch.triu(torch.randn(n, n))]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"n": 4096}}
