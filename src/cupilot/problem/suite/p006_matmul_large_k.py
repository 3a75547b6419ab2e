"""Matrix product with a small result and a very long inner dimension."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(m: int = 96, k: int = 49152, n: int = 80) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 256, "k": 524288, "n": 256}}
