"""Matrix product whose factors are both stored transposed."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A.T, B.T)


def get_inputs(m: int = 304, k: int = 1200, n: int = 640) -> list[torch.Tensor]:
    return [torch.randn(k, m), torch.randn(n, k)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 2048, "k": 8192, "n": 4096}}
