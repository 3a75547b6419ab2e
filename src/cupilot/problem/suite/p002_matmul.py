"""Product of two matrices, all three extents different."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(m: int = 320, k: int = 1408, n: int = 704) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 2048, "k": 8192, "n": 4096}}
