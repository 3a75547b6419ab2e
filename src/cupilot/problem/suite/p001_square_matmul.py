"""Product of two square matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(n: int = 720) -> list[torch.Tensor]:
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"n": 4096}}
