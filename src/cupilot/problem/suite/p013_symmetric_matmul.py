"""Product of two symmetric matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(n: int = 680) -> list[torch.Tensor]:
    A, B = torch.randn(n, n), torch.randn(n, n)
    return [(A + A.T) / 2, (B + B.T) / 2]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"n": 4096}}
