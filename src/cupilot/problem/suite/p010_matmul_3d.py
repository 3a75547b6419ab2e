"""Product of a stack of matrices and one matrix."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs(batch: int = 5, m: int = 200, k: int = 512, n: int = 384) -> list[torch.Tensor]:
    return [torch.randn(batch, m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 16, "m": 1024, "k": 2048, "n": 768}}
