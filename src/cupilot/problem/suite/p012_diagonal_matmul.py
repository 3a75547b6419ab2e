"""Product of a diagonal matrix, given by its diagonal, and a matrix."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.diag(A) @ B


def get_inputs(m: int = 640, n: int = 704) -> list[torch.Tensor]:
    return [torch.randn(m), torch.randn(m, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 4096, "n": 4096}}
